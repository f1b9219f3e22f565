"""State as a fold of the log. Pure; one file per subject.

May import: `spur.events`, `spur.wire`, `spur.values`.

Read first: `state.py` (the tables), `apply.py` (the one door through which the log becomes state),
`react.py` (what the shells owe because of it).

Keeps: state is written by `apply` alone, through `put` and `delete`; an entry that fails has
changed nothing; any tail above the commit index can be undone; equal logs give equal digests,
whatever the hash seed, the time zone or the locale.
"""
