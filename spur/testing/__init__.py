"""Shipped test kit: virtual clock, simulated disk and network, builders."""
