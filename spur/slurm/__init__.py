"""Everything that is spelled as Slurm spells it, as tables: here, its configuration files.

May import: `spur.wire`, `spur.values`.

Read first: `parameters.py`, `configfile.py`, `conflines.py`.

Keeps: one row declares one word of Slurm's, with its source; loops derive every surface from the
rows. Nothing is silently dropped: what is read is honoured, or listed as not yet honoured, or
refused with its place.
"""
