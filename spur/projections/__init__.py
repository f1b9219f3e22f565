"""State as a fold of the log. Pure; imports values, events, slurm and wire.

Start with `state.py` (the tables), `apply.py` (the one door through which the log becomes state)
and `react.py` (what the shells owe because of it). One file per subject.

The room keeps these: state is written by `apply` alone, through `put` and `delete`; an entry that
fails has changed nothing; any tail above the commit index can be undone; equal logs give equal
digests, whatever the hash seed, the time zone or the locale.
"""
