"""Everything that is spelled as Slurm spells it, as tables: options, formats, sentences, files.

May import: `spur.wire`, `spur.values`.

Read first: of the commands `options.py`, `formats.py`, `columns/jobs.py`; of the configuration
files `parameters.py`, `configfile.py`, `conflines.py`.

Keeps: one row declares one word of Slurm's, with its source; loops derive every surface from the
rows. Nothing is silently dropped: what is read is honoured, or listed as not yet honoured, or
refused with its place. Clock, zone and names of users arrive as arguments.
"""
