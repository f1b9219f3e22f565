"""State as a fold of the log: tables, apply, invariants. Pure; imports events, wire, values."""
