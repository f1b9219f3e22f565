"""The SQL read model that follows the log by cursor: it answers what memory has forgotten.

Events are folded into rows by one arm each; the projector (`spur.controller.projector`) feeds them.

May import: SQLAlchemy, Alembic, `spur.projections` and what lies below it.

Read first: `tables.py`, `model.py`, `jobs.py`, `records.py`.

Keeps: rows and cursor change in one transaction, so each event counts exactly once; nothing is only
here, the model can be dropped and rebuilt from the log.
"""
