"""What the commands with Slurm's names share: the session with a cluster, people, time, the queue.

Read first: `session.py`.
"""
