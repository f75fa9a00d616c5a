"""Shapes by axes: digests of geometry and layout beside every receipt, and early in the index of shapes.

They are filled in from the documents; of one that is damaged they stay null. A migration is frozen: it repeats what
`receipts/store/tables/`, `receipts/axes/shape.py` and `receipts/axes/effective.py` said on its day.
"""

import hashlib
import json
import re
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"

ADDED = {
    "geometry": "Digest of the axes of the model but its depth, and of the accelerator",
    "layout": "Digest of the axes of parallelism but its tuned constants",
}
SHAPE = (
    *("lane", "kind", "outcome", "geometry", "layout", "chips", "sequence_length", "micro_batch", "depth"),
    *("provenance", "status", "accelerator", "global_batch", "path_answer", "started", "tokens_per_second"),
    *("step_seconds", "mfu", "peak_bytes", "id"),
)
MODEL = (
    *("pattern", "alphabet", "hidden", "heads", "kv_heads", "head_dim", "ffn", "expert_ffn", "ffn_projections"),
    *("shared_expert_ffn", "vocabulary", "ssm_state", "ssm_heads", "ssm_groups", "experts", "top_k"),
    *("capacity_factor", "attention_kinds", "sparse_attention"),
)
PARALLELISM = (
    *("tensor", "sequence", "expert_tensor", "expert", "context", "pipeline", "virtual_pipeline", "schedule"),
    *("stage_layout", "shard", "replicate", "strategy", "reshard_after_forward", "mesh_axes", "placement"),
    "wrap_order",
)
FOLLOWS = {
    "sequence": "tensor",
    "virtual_pipeline": "pipeline",
    "schedule": "pipeline",
    "stage_layout": "pipeline",
}
WITHOUT_EXPERTS = {"top_k": 0, "capacity_factor": 0, "expert_ffn": 0, "shared_expert_ffn": 0}
ONE_KIND = re.compile(r"\d+\s*[×x]?\s*([A-Za-z][\w -]*)")
DEEPEST = 10_000
CHUNK = 200  # documents, of at most 16 MiB each and mostly of some 10 kB packed
MOST_BYTES = 1 << 26


def upgrade() -> None:
    sqlite = op.get_bind().dialect.name == "sqlite"
    for name, says in ADDED.items():
        if sqlite:
            # Added in place: making the table again would cost a copy of every row. The comment stays in its text.
            op.execute(f"ALTER TABLE receipts ADD COLUMN {name} BIGINT /* {says} */")
        else:
            op.add_column("receipts", sa.Column(name, sa.BigInteger(), nullable=True, comment=says))
    op.drop_index("receipts_shape", "receipts")
    fill(sqlite)
    op.create_index("receipts_shape", "receipts", SHAPE)


def fill(sqlite: bool) -> None:
    """Write the columns of the rows that are there. The trigger that refuses updates is lifted for it alone."""
    connection = op.get_bind()
    if connection.execute(sa.text("SELECT 1 FROM receipts LIMIT 1")).first() is None:
        return
    lift, hold = trigger(connection) if sqlite else table()
    connection.execute(sa.text(lift))
    update = sa.text("UPDATE receipts SET geometry = :geometry, layout = :layout WHERE seq = :at")
    for rows in keys(connection):
        connection.execute(update, rows)
    connection.execute(sa.text(hold))


def trigger(connection: sa.Connection) -> tuple[str, str]:
    made = connection.execute(
        sa.text("SELECT sql FROM sqlite_master WHERE type = 'trigger' AND name = 'receipts_no_update'")
    ).scalar_one()
    return "DROP TRIGGER receipts_no_update", made


def table() -> tuple[str, str]:
    change = "ALTER TABLE receipts {} TRIGGER receipts_no_update"
    return change.format("DISABLE"), change.format("ENABLE")


def keys(connection: sa.Connection) -> Iterator[list[dict[str, int]]]:
    """Number, geometry and layout of stored receipts, some at a time."""
    after = -1
    query = sa.text(
        "SELECT documents.receipt, body, accelerator FROM documents JOIN receipts ON receipts.seq = documents.receipt "
        "WHERE documents.receipt > :after ORDER BY documents.receipt LIMIT :most"
    )
    while rows := connection.execute(query, {"after": after, "most": CHUNK}).all():
        found = []
        for seq, body, accelerator in rows:
            try:
                tree = json.loads(zlib.decompressobj().decompress(bytes(body), MOST_BYTES))
                model, cut = stated(tree, "model", (*MODEL, "depth")), stated(tree, "parallelism", PARALLELISM)
            except (zlib.error, ValueError, AttributeError):
                continue  # damaged: whoever reads the receipt is told, and the others are upgraded
            switched_off(model, cut)
            machine = {} if accelerator is None else {"hardware.accelerator": canonical(accelerator)}
            geometry = {f"model.{name}": value for name, value in model.items()} | machine
            layout = {f"parallelism.{name}": value for name, value in cut.items()}
            found.append({"at": seq, "geometry": digest(geometry), "layout": digest(layout)})
        if found:
            yield found
        after = rows[-1].receipt


def stated(tree: Mapping[str, Any], section: str, names: tuple[str, ...]) -> dict[str, Any]:
    values = tree.get(section) or {}
    return {name: canonical(values[name]) for name in names if values.get(name) is not None}


def canonical(value: Any) -> Any:
    if isinstance(value, str):
        return "off" if value.lower() in ("none", "off") else value
    return int(value) if isinstance(value, float) and value.is_integer() else value


def switched_off(model: dict[str, Any], cut: dict[str, Any]) -> None:
    """What does nothing because of another setting, the shortest tile of the stack, and the kind of its attention."""
    for switch, degree in FOLLOWS.items():
        typed = cut.get(switch)
        if cut.get(degree) == 1 or typed is False or typed == "off" or (typed == 1 and typed is not True):
            cut[switch] = "off"
    if model.get("experts") == 0:
        model.update(WITHOUT_EXPERTS)
        cut.update(expert=1, expert_tensor=1)
    depth, text = model.pop("depth", None), model.get("pattern")
    if depth is not None and text is not None:
        model["pattern"] = shortest_tile(text, depth)
        kinds = ONE_KIND.fullmatch(model.get("attention_kinds") or "")
        if kinds is not None:
            model["attention_kinds"] = kinds[1]


def shortest_tile(text: str, depth: int) -> str:
    if not text or depth > DEEPEST or any(sign in text for sign in "/|[]"):
        return text
    stack = (text * -(-depth // len(text)))[:depth]
    for length in range(1, min(len(text), depth)):
        if stack == (stack[:length] * -(-depth // length))[:depth]:
            return stack[:length]
    return stack[: len(text)]


def digest(members: Mapping[str, Any]) -> int:
    text = json.dumps(members, sort_keys=True, separators=(",", ":"))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big", signed=True)
