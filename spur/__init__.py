"""Spur: a GPU-first, Slurm-compatible scheduler whose whole state is one replicated log."""
