"""Recorded behaviour of a real Slurm, replayed against a cluster of Spur and judged case by case.

Read first: `cases.py` (what is recorded), `judge.py` (what counts as the same).
"""
