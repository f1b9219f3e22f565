"""Alembic environments, one folder for each database."""
