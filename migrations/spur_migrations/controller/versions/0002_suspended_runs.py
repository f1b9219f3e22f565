"""How long runs were suspended."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns; the rows that are there are made anew from the log."""
    with op.batch_alter_table("runs") as runs:
        runs.add_column(sa.Column("paused_time_ns", sa.BigInteger(), nullable=True))
        runs.add_column(sa.Column("paused_ns", sa.BigInteger(), nullable=False, server_default="0"))
    with op.batch_alter_table("runs") as runs:
        runs.alter_column("paused_ns", server_default=None)


def downgrade() -> None:
    """Remove the columns."""
    with op.batch_alter_table("runs") as runs:
        runs.drop_column("paused_ns")
        runs.drop_column("paused_time_ns")
