"""Alembic environments, one folder for each database.

`controller` is the SQL read model of a controller; its script location is
`spur_migrations:controller`.

May import: the tables of `spur.store`.

Read first: `controller/env.py`.

Keeps: upgraded from empty, a database equals its tables; every migration has a way back.
"""
