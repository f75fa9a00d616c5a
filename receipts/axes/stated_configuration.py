"""What a receipt says of its configuration alone, as every launch of that configuration says it.

Rules that read nothing else find the same in all of them, and are asked once (`receipts.judging.judge`); what follows
from settings is worked out once (`receipts.axes.settings`). The identity of a configuration is another idea
(`receipts.axes.configuration`): it is made of effective values, and rules on a configuration read what was typed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import orjson

from receipts.receipt import Parsed
from receipts.receipt.document import Receipt
from receipts.receipt.leaf import Section

_WHOLE: Final = (
    *("hardware", "platform", "wheels", "flags", "patches", "features", "model", "parallelism", "batch"),
    *("numerics", "path"),
)
# What stays of the sections in which a launch says things of its own, too.
_PARTS: Final[Mapping[str, tuple[str, ...]]] = {
    "run": ("lane", "kind", "outcome", "provenance"),
    "code": ("commit", "dirty", "imported_digest"),
    "compile": (
        *("posture", "regions", "backend", "cuda_graph_implementation", "cuda_graph_scope", "warmup_policy"),
        "cache_state",
    ),
    "data": ("dataset", "tokenizer", "kind"),
    "failure": ("phase",),
}
_GONE: Final = tuple(name for name in Receipt.model_fields if name not in (*_WHOLE, *_PARTS, "schema_version"))


def stated_configuration(parsed: Parsed) -> Parsed:
    """The receipt without what its launch alone says: it has no id, and states nothing that was measured."""
    changes: dict[str, Section | None] = dict.fromkeys(_GONE)
    for name, stays in _PARTS.items():
        section = getattr(parsed.receipt, name)
        if section is not None:
            changes[name] = section.model_copy(update=dict.fromkeys(vars(section).keys() - set(stays)))
    return replace(parsed, id="", raw=b"", source="", receipt=parsed.receipt.model_copy(update=changes))


def configuration_key(parsed: Parsed) -> bytes:
    """All that `stated_configuration` leaves in a receipt, as one text: equal keys mean equal results."""
    sections = vars(parsed.receipt)
    parts = [sections[name] and [getattr(sections[name], field) for field in fields] for name, fields in _PARTS.items()]
    content: list[Any] = [[sections[name] for name in _WHOLE], parts]
    try:
        return orjson.dumps(content, default=vars)
    except TypeError:  # an integer of more than 64 bits, or half a surrogate pair
        return json.dumps(content, default=vars).encode()
