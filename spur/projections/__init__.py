"""State as a fold of the log: tables, apply, invariants. Pure; imports values, events, slurm and wire."""
