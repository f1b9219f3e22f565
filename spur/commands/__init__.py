"""Judging requests: decide against the state. Pure; imports everything below it."""
