"""The first schema: what its tables and triggers were when 0.2.0 was released, as SQL of each engine. Frozen."""

from pathlib import Path

from alembic import op

from receipts.store.schema import execute

revision = "0001"
down_revision = None


def upgrade() -> None:
    execute(op.get_bind(), Path(__file__).with_suffix(""))
