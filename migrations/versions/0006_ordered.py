"""Indexes in the order of what is asked of them: placements by facet with their configuration, configurations by lane
with their number, and launches of a shape by what counts of them.

A list by several axes walks the order of time and reads no row of the table; a shape's launches are counted without the
invalid ones. A migration is frozen: it repeats what `receipts/store/tables/` said on its day.
"""

from alembic import op

revision = "0006"
down_revision = "0005"

SHAPE = (
    *("lane", "kind", "outcome", "chips", "sequence_length", "micro_batch", "depth", "provenance", "status"),
    *("accelerator", "global_batch", "path_answer", "started", "tokens_per_second", "step_seconds", "mfu"),
    *("peak_bytes", "id"),
)
INDEXES = {
    "placements_facet": ("placements", ("facet", "at", "receipt", "configuration")),
    "configurations_lane": ("configurations", ("lane", "catalogue", "seq")),
    "receipts_shape": ("receipts", SHAPE),
}


def upgrade() -> None:
    for name, (table, columns) in INDEXES.items():
        op.drop_index(name, table)
        op.create_index(name, table, columns)
