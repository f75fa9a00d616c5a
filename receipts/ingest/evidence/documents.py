"""A whole file as one JSON document, as scripts keep counters and events; what is none says so on the reading."""

from __future__ import annotations

import json
from typing import Any

from receipts.ingest.evidence.reading import Reading
from receipts.ingest.evidence.stream import Source


def json_document(source: Source, reading: Reading, what: str) -> list[Any] | dict[str, Any] | None:
    """The list or object; None, with a remark, where the file is broken or larger than ``what`` can be."""
    content = source.document()
    try:
        found = None if content is None else json.loads(content)
    except (ValueError, RecursionError) as error:
        reading.remark("broken", f"no JSON document: {error!s:.100}")
        return None
    if isinstance(found, list | dict):
        return found
    reading.remark("broken", f"larger than {what} can be; not read")
    return None
