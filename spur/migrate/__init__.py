"""What a site's scripts and slurm.conf come to here, told before the site moves.

May import: `spur.commands`, `spur.projections`, `spur.events`, `spur.slurm`, `spur.wire`,
`spur.values`.

Read first: `report.py`, `scripts.py`, `site.py`.

Keeps: nothing is read from a disk or asked of a cluster here; a verdict says what to write instead.
"""
