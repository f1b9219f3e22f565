"""The SQL read model that follows the log by cursor: it answers what memory has forgotten.

So far: its tables. The projector that fills them comes with accounting.

May import: SQLAlchemy, `spur.projections` and what lies below it.

Read first: `tables.py`.

Keeps: rows and cursor change in one transaction, so each event counts exactly once; nothing is only
here, the model can be dropped and rebuilt from the log.
"""
