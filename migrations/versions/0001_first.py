"""The first schema: what `receipts/store/tables/` and `receipts/store/sql/guards.py` define.

It may be edited until 0.2.0 is tagged, so it is generated from them. When the tag is set, the tables are written out
here: later revisions change a schema that stands still.
"""

from alembic import op

from receipts.store.schema import create

revision = "0001"
down_revision = None


def upgrade() -> None:
    create(op.get_bind())
