"""Spur: a GPU-first, Slurm-compatible scheduler whose whole state is one replicated log."""

__all__ = ["__version__"]

__version__ = "0.1.0"
