"""Spur-Cloud: tenants, sessions and bills, fed by the events of a cluster.

So far: its settings and its version. What it serves comes with its own milestone.

May import: `spur.client`, `spur.wire`, `spur.slurm`, `spur.events`, `spur.values`.

Read first: `settings.py`.

Keeps: it never decides anything for a cluster; it follows the events and asks through the client.
"""

from spur import __version__

__all__ = ["__version__"]
