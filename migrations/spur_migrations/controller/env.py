"""Runs the migrations of the read model, for Alembic.

The database is the connection handed over in the configuration's attributes, or the URL given by
`-x url=...` on Alembic's command line. There is no default: a migration never guesses.
"""

from __future__ import annotations

from alembic import context
from sqlalchemy import Connection, create_engine

from spur.store.tables import METADATA


def run() -> None:
    """Run the migrations that Alembic was asked for."""
    connection = context.config.attributes.get("connection")
    if isinstance(connection, Connection):
        migrate(connection)
        return
    url = context.get_x_argument(as_dictionary=True).get("url")
    if not url:
        raise SystemExit("no database was named; nothing was changed\nhint: alembic -x url=URL ...")
    if context.is_offline_mode():
        context.configure(url=url, target_metadata=METADATA, literal_binds=True)
        with context.begin_transaction():
            context.run_migrations()
        return
    engine = create_engine(url)
    try:
        with engine.begin() as opened:
            migrate(opened)
    finally:
        engine.dispose()


def migrate(connection: Connection) -> None:
    """Run the migrations on an open connection; its owner commits."""
    context.configure(connection=connection, target_metadata=METADATA, render_as_batch=True)
    context.run_migrations()


run()
