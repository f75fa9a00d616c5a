"""The table of what plugins made of files of evidence, and its triggers.

Like the first it is generated until 0.2.0 is tagged, and so does nothing to a store that the first made anew.
"""

from alembic import op

from receipts.store.schema import add

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    add(op.get_bind(), "extracts")
