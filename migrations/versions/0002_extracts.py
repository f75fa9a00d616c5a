"""The table of what plugins made of files of evidence, and its triggers, as SQL of each engine. Frozen with 0.2.0."""

from pathlib import Path

from alembic import op

from receipts.store.schema import execute

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    execute(op.get_bind(), Path(__file__).with_suffix(""))
