"""What Spur does so far, shown to a stranger: jobs, then controllers that lose nothing.

    ops/demo [jobs | failover]

May import: every room of the product.

Read first: `jobs.py`, `failover.py`, `stage.py`.

Keeps: what is shown is what happened; a step that went wrong ends the demonstration.
"""
