"""Spur-Cloud: tenants, sessions and bills, fed by the events of a cluster."""
