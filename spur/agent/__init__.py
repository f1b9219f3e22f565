"""spurd: what runs on each host. It attends the controllers, and starts and tends jobs.

May import: `spur.server`, `spur.client`, `spur.slurm`, `spur.wire`, `spur.values`.

Read first: `manifest.py`, `machine.py`, `agent.py`, `supervisor.py`.

Keeps: nothing of a user's runs before its manifest and claim are on disk; an attempt runs at most
once on a node; a supervisor outlives the agent that asked for it.
"""
