"""A launch as the store takes it, without parsing and judging it again: its kind was, and the rest is put in.

All that a launch has of its own stands in its document, in its verdict, in its row and in two axes.
`benchmarks.scaling.proof` holds that what comes of it is what submitting the document gives.
"""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final, NamedTuple

from benchmarks.scaling.documents import WORDS, Size, tree
from benchmarks.scaling.launches import LASTS, Kind, Launch, commit, imported
from receipts import metrics
from receipts.axes import shape as shapes
from receipts.axes.configuration import AxisPart, Configuration, axis_part
from receipts.axes.lane import Lane
from receipts.axes.shape import Signature
from receipts.judging.judge import judge_receipt
from receipts.judging.rulebook import Rulebook
from receipts.receipt import Document, parse
from receipts.store import Prepared, prepare
from receipts.store.entries import pack

_OF_A_STATE: Final = ("code", "parallelism.bucket_bytes")  # axes in which launches of one kind may differ
_SUBMITTED: Final = LASTS * 2


_NAMES: Final = {word: name for name, word in WORDS.items()}
_WORDS: Final = re.compile("(" + "|".join(map(re.escape, _NAMES)) + ")")


class Text:
    """A text with words in it that stand for something else."""

    def __init__(self, raw: bytes) -> None:
        pieces = _WORDS.split(raw.decode())
        self._fixed = [piece.encode() for piece in pieces[::2]]
        self._names = [_NAMES[piece] for piece in pieces[1::2]]

    def with_(self, values: Mapping[str, str]) -> bytes:
        """The text with these values for the words."""
        made = [self._fixed[0]]
        for name, after in zip(self._names, self._fixed[1:], strict=True):
            made += (values[name].encode(), after)
        return b"".join(made)


class Template(NamedTuple):
    """A kind of launch, judged."""

    document: Text
    verdict: Text
    prepared: Prepared
    configuration: Configuration
    parts: Mapping[str, Any]
    lane: Lane


class Maker:
    """Makes launches ready to be written."""

    def __init__(self, size: Size) -> None:
        self._size = size
        self._rulebook = Rulebook()
        self._kinds: dict[Kind, Template] = {}
        self._configured = lru_cache(maxsize=4096)(self._configure)

    def made(self, launch: Launch, target: str | None = None) -> tuple[Prepared, bytes]:
        """The receipt of a launch, and its document; ``target`` is the id of the one that it replaces."""
        kind = self._template(launch.kind)
        values = _values(launch, target)
        raw = kind.document.with_(values)
        name = hashlib.sha256(raw).hexdigest()
        base = kind.prepared
        at = launch.started + _SUBMITTED
        row = base.row | {
            "id": name,
            "launch": values["launch"],
            "label": values["label"],
            "host": values["host"],
            "revision": values["commit"],
            "started": launch.started,
            "finished": launch.started + LASTS,
            "submitted_at": at,
            "supersedes": target,
        }
        verdict = base.verdict | {
            "judged_at": at,
            "body": pack(kind.verdict.with_({**values, "id": name, "start": name[:12]})),
        }
        configuration, signature = self._configured(launch.kind, launch.state, launch.bucket)
        if configuration.own:
            configuration = replace(configuration, anchor=name)
        return Prepared(name, row, len(raw), pack(raw), verdict, configuration, signature), raw

    def _template(self, kind: Kind) -> Template:
        found = self._kinds.get(kind)
        if found is None:
            if self._kinds and next(iter(self._kinds)).period != kind.period:
                self._kinds.clear()
                self._configured.cache_clear()
            found = self._kinds[kind] = self._judged(kind)
        return found

    def _judged(self, kind: Kind) -> Template:
        raw = json.dumps(tree(kind, self._size), separators=(",", ":")).encode()
        parsed = parse(Document(raw, "scale"))
        lane = self._rulebook.lanes.of(parsed.receipt.run.lane)
        launch = metrics.Launch(parsed, lane)
        made = prepare(launch, judge_receipt(parsed, lane, self._rulebook.rules, None, launch))
        said = zlib.decompress(made.verdict["body"]).replace(parsed.id.encode(), WORDS["id"].encode())
        return Template(
            Text(raw),
            Text(said.replace(parsed.id[:12].encode(), WORDS["start"].encode())),
            made,
            made.configuration,
            shapes.parts(parsed),
            lane,
        )

    def _configure(self, kind: Kind, state: int, bucket: int) -> tuple[Configuration, Signature | None]:
        template = self._template(kind)
        configuration = template.configuration
        words = {"commit": commit(state), "imported": imported(state), "bucket": str(bucket)}
        for axis in _OF_A_STATE:
            configuration = configuration.with_(axis, _put(configuration.parts[axis], words))
        if template.prepared.signature is None:
            return configuration, None
        code, layout = template.parts["code"], template.parts["parallelism"]
        parts = {
            **template.parts,
            "code": {**code, "commit": words["commit"]},
            "parallelism": {**layout, "parallelism.bucket_bytes": bucket},
        }
        return configuration, shapes.signature_of(parts, tuple(template.lane.nonessential_features))


def _put(part: AxisPart, words: Mapping[str, str]) -> AxisPart:
    text = part.value
    for name, value in words.items():
        text = text.replace(WORDS[name], value)
    return axis_part(part.axis, text)


def _values(launch: Launch, target: str | None) -> dict[str, str]:
    started = launch.started
    return {
        "launch": launch.name,
        "label": launch.label,
        "host": launch.host,
        "started": started.isoformat(),
        "finished": (started + LASTS).isoformat(),
        "commit": commit(launch.state),
        "imported": imported(launch.state),
        "bucket": str(launch.bucket),
        "profile": _digest("profile", launch),
        "metrics": _digest("metrics", launch),
        "target": target or "",
    }


def _digest(what: str, launch: Launch) -> str:
    """The digest of a file of evidence."""
    return hashlib.sha256(f"{what} {launch.number}".encode()).hexdigest()
