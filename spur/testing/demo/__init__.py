"""What Spur does so far, shown to a stranger: jobs on a cluster, then a log that can't be lost.

    ops/demo [jobs | failover]

May import: every room of the product.

Read first: `jobs.py`, `log.py`, `narrator.py`.

Keeps: what is shown is what happened; a step that went wrong ends the demonstration.
"""
