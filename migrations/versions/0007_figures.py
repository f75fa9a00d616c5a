"""Indexes on figures, by lane and outcome: a list of what few launches reach reads those and no others.

A migration is frozen: it repeats what `receipts/store/tables/` said on its day.
"""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

FIGURES = ("tokens_per_second", "step_seconds", "mfu", "peak_bytes")


def upgrade() -> None:
    for name in FIGURES:
        stated = sa.text(f"{name} IS NOT NULL")
        columns = ["lane", "outcome", name]
        op.create_index(f"receipts_{name}", "receipts", columns, sqlite_where=stated, postgresql_where=stated)
