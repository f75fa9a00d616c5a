"""Documents that are no receipts, each with what it must be told: built from the clean base, one fault apiece."""

from __future__ import annotations

import copy
import gzip
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import rule_cases

MEBIBYTE = 1024 * 1024


@dataclass(frozen=True)
class Malformed:
    """One document. ``at`` is the path that the message must name and ``says`` words that it must hold."""

    name: str
    at: str
    says: str
    make: Callable[[], bytes] = field(repr=False)

    def __str__(self) -> str:
        return self.name


WHOLE = ""  # where: the document itself, which has no path


def tree() -> dict[str, Any]:
    """The clean receipt that every fault is laid over."""
    found = rule_cases.base("megatron")
    found["measurement"]["step_durations_seconds"] = found["measurement"]["step_durations_seconds"][:40]
    return found


def encoded(document: Mapping[str, Any]) -> bytes:
    """A document as bytes."""
    return json.dumps(document).encode()


def _with(path: str, value: Any) -> Callable[[], bytes]:
    def make() -> bytes:
        document = tree()
        rule_cases.put(document, path, copy.deepcopy(value))
        return encoded(document)

    return make


def _without(path: str) -> Callable[[], bytes]:
    def make() -> bytes:
        document = tree()
        assert rule_cases.take(document, path)
        return encoded(document)

    return make


def _spliced(before: str, after: str) -> Callable[[], bytes]:
    def make() -> bytes:
        text = json.dumps(tree())
        assert text.count(before) >= 1, before
        return text.replace(before, after, 1).encode()

    return make


def truncated() -> Iterator[Malformed]:
    """The document cut off at forty places, as a full disk or a killed writer leaves it."""
    for share in range(40):
        yield Malformed(
            f"cut after {share}/40",
            "line 1" if share else WHOLE,
            "not JSON" if share else "empty",
            lambda share=share: (lambda raw: raw[: len(raw) * share // 40])(encoded(tree())),
        )


# path → (wrong value, words of the message)
WRONG: Mapping[str, tuple[Any, str]] = {
    "run": ("x", "an object"),
    "run.launch": ("", "empty"),
    "run.lane": (7, "a text"),
    "run.kind": ("train", "not one of"),
    "run.outcome": (None, "not one of"),
    "run.provenance": ("guessed", "not one of"),
    "run.started": ("2026-03-02T09:00:00", "no zone"),
    "run.finished": ("2026-13-02T09:00:00Z", "not a time"),
    "run.tags": ("fast", "a list"),
    "run.tags[0]": (1, "a text"),
    "run.exit_code": ("0", "a whole number"),
    "run.start_step": (-1, "0 or more"),
    "run.supersedes": ("x", "an object"),
    "code.dirty": ("no", "true or false"),
    "code.imported_digest": ("ABC", "64 hex digits"),
    "hardware.chips": (0, "1 or more"),
    "hardware.hosts": (1.5, "a whole number"),
    "hardware.accelerator": (["H200"], "a text"),
    "platform.cuda": (13.2, "a text"),
    "wheels": (["torch"], "an object"),
    "wheels.torch": (2.12, "a version"),
    "wheels.mamba-ssm": ({"version": None}, "a text"),
    "flags.NVTE_DEBUG": ([1], "a text, a number or true/false"),
    "flags.CUDA_DEVICE_MAX_CONNECTIONS": ({"value": {}}, "a text, a number or true/false"),
    "patches.moe": ({"on": True}, "a text, a number or true/false"),
    "features.mtp": (None, "a text, a number or true/false"),
    "notes.links": ([1], "a text"),
    "model.hidden": ("3584", "a whole number"),
    "model.heads": (-28, "1 or more"),
    "model.experts": (2**70, "or less"),
    "model.family": ("mixture", "not one of"),
    "model.capacity_factor": ("1.0", "a number"),
    "model.tied_embeddings": (0, "true or false"),
    "parallelism.tensor": (True, "a whole number"),
    "parallelism.sequence": ("on", "true or false"),
    "batch.micro_batch": (4.0, "a whole number"),
    "batch.global_batch": ([64], "a whole number"),
    "numerics.learning_rate": ("3e-4", "a number"),
    "numerics.seed": (-1, "0 or more"),
    "numerics.adapters": (False, "an object"),
    "compile.posture": ("compiled", "not one of"),
    "compile.regions": ("moe", "a list"),
    "compile.cache_state": (True, "not one of"),
    "data.kind": ("mock", "not one of"),
    "path.intended": ("te", "an object"),
    "path.witnessed.cuda_graphs": ("yes", "true or false"),
    "path.witnessed.fallbacks": ({"aten::bmm": -1}, "0 or more"),
    "measurement.step_durations_seconds": (2.3, "a list"),
    "measurement.step_durations_seconds[3]": ("2.3", "a number"),
    "measurement.step_flags.warmup": (10, "a list"),
    "measurement.step_flags.cold": ([0], "not one of"),
    "measurement.window.start": (-1, "0 or more"),
    "measurement.tokens_per_step": (0, "1 or more"),
    "measurement.stated.tokens_per_second": (-1, "or more"),
    "measurement.stated.mfu": ("25.8 %", "a number"),
    "measurement.loss.values": ([11.1, "nan"], "a number"),
    "measurement.health.clock_spread": (1.5, "or less"),
    "measurement.path_counters": ({}, "a list"),
    "memory.chips": ({"0": {}}, "a list"),
    "memory.chips[0].phase": ("warm", "not one of"),
    "memory.chips[0].bytes_used": (-1, "0 or more"),
    "memory.chips[0].bytes_limit": ("141 GB", "a whole number"),
    "memory.predicted[0].bytes": (1e9, "a whole number"),
    "failure.class": ("oom", "not one of"),
    "evidence": ({"kind": "te-debug"}, "a list"),
    "evidence[0].sha256": ("0" * 63, "64 hex digits"),
    "evidence[0].level": ("proof", "not one of"),
}
# Where the message stands deeper than the value that is wrong.
DEEPER = {
    "wheels.mamba-ssm": "wheels.mamba-ssm.version",
    "flags.CUDA_DEVICE_MAX_CONNECTIONS": "flags.CUDA_DEVICE_MAX_CONNECTIONS.value",
    "notes.links": "notes.links[0]",
    "path.witnessed.fallbacks": "path.witnessed.fallbacks.aten::bmm",
    "measurement.loss.values": "measurement.loss.values[1]",
}


def wrong_types() -> Iterator[Malformed]:
    """One value of another type, or out of its range, apiece."""
    for path, (value, says) in WRONG.items():
        yield Malformed(f"{path} = {json.dumps(value)}", DEEPER.get(path, path), says, _with(path, value))


def unknown_keys() -> Iterator[Malformed]:
    """A key that no receipt has, in the document and in each of its objects."""
    places = ["", *(place for place in _objects(tree(), "") if place.partition(".")[0] not in rule_cases.OPEN_MAPS)]
    for place in places:
        path = f"{place}.unheard_of" if place else "unheard_of"
        yield Malformed(f"unknown key {path}", path, "no such key", _with(path, 1))


def _objects(node: Any, path: str) -> Iterator[str]:
    """Paths of the objects with fixed keys; of a list, the first row stands for all."""
    for key, value in node.items():
        inner = f"{path}.{key}" if path else key
        if isinstance(value, list) and value and isinstance(value[0], dict):
            inner, value = f"{inner}[0]", value[0]
        if isinstance(value, dict) and key not in ("step_flags", "fallbacks", "observed"):
            yield inner
            yield from _objects(value, inner)


def required_keys() -> Iterator[Malformed]:
    """Each required key left out."""
    for path in ("run", "run.launch", "run.lane", "run.kind", "run.outcome", "run.provenance", "run.started"):
        yield Malformed(f"without {path}", path, "required", _without(path))
    yield Malformed("without schema_version", "schema_version", "missing", _without("schema_version"))


def versions() -> Iterator[Malformed]:
    """Versions that this program cannot read."""
    for version, says in (("1.2", "upgrade"), ("2.0", "upgrade"), ("10.0", "upgrade"), ("0.9", "no version 0.9")):
        yield Malformed(f"version {version}", "schema_version", says, _with("schema_version", version))
    for value in ("one", "1", "1.0.0", "", "1.", ".1", "²." + "0", " 1.0", 1.0, 1, None, ["1.0"]):
        yield Malformed(f"version {value!r}", "schema_version", "", _with("schema_version", value))


HIDDEN, DURATION = '"hidden": 3584', '"step_durations_seconds": ['


def not_json() -> Iterator[Malformed]:
    """What other programs call JSON, and what numbers may not be."""
    for text in ("NaN", "Infinity", "-Infinity", "1e999", "-1e999"):
        says = "NaN" if text == "NaN" else "Infinity" if "Inf" in text else "too large"
        yield Malformed(
            f"{text} in a list",
            "measurement.step_durations_seconds[0]",
            says,
            _spliced(DURATION, f"{DURATION}{text}, "),
        )
    yield Malformed("huge integer", "model.hidden", "digits", _spliced(HIDDEN, f'"hidden": {"9" * 5000}'))
    yield Malformed("duplicate key", "model.hidden", "twice", _spliced(HIDDEN, f"{HIDDEN}, {HIDDEN}"))
    yield Malformed("duplicate section", "model", "twice", lambda: encoded(tree())[:-1] + b', "model": {}}')
    yield Malformed("duplicate flag", "flags.A", "twice", _spliced('"flags": {', '"flags": {"A": 1, "A": 2, '))
    yield Malformed("comment", "line 1", "not JSON", lambda: b"// a run\n" + encoded(tree()))
    yield Malformed("comma too many", "line 1", "not JSON", lambda: encoded(tree())[:-1] + b",}")
    yield Malformed("single quotes", "line 1", "not JSON", lambda: str(tree()).encode())
    yield Malformed("two documents", "line 1", "not JSON", lambda: encoded(tree()) * 2)
    yield Malformed("a raw newline in a text", "line 1", "not JSON", _spliced("nam56r-base", "nam56r\nbase"))
    yield Malformed("a lone surrogate", "run.context", "surrogate", _spliced("nam56r-base", "nam56r\\ud800base"))
    yield Malformed(
        "a lone surrogate as a key", "flags.\\udc00", "surrogate", _spliced('"flags": {', '"flags": {"\\udc00": 1, ')
    )
    yield Malformed("hexadecimal", "line 1", "not JSON", _spliced(HIDDEN, '"hidden": 0xE00'))
    yield Malformed("leading zero", "line 1", "not JSON", _spliced(HIDDEN, '"hidden": 03584'))


def not_text() -> Iterator[Malformed]:
    """Other encodings, and files that are something else."""
    for encoding in ("utf-16", "utf-8-sig"):
        yield Malformed(encoding, WHOLE, "byte-order mark", lambda to=encoding: json.dumps(tree()).encode(to))
    for encoding in ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"):
        yield Malformed(encoding, WHOLE, "UTF-16", lambda to=encoding: json.dumps(tree()).encode(to))
    yield Malformed(
        "latin-1", WHOLE, "not UTF-8", lambda: _spliced("nam56r-base", "Zürich")().decode().encode("latin-1")
    )
    yield Malformed("gzip", WHOLE, "gzip", lambda: gzip.compress(encoded(tree())))
    yield Malformed("an ELF header", "line 1", "not JSON", lambda: b"\x7fELF\x02\x01\x01" + b"\x01" * 500)
    yield Malformed("random bytes", WHOLE, "not UTF-8", lambda: bytes(range(128, 256)) * 40)
    for name, raw in {"empty": b"", "spaces": b" \t\n\r " * 50, "a newline": b"\n"}.items():
        yield Malformed(name, WHOLE, "empty", lambda raw=raw: raw)
    for text in ("[]", "null", "true", "1", '"run"', "[{}]"):
        yield Malformed(f"the value {text}", WHOLE, "not a JSON object", lambda text=text: text.encode())
    yield Malformed("an empty object", "schema_version", "missing", lambda: b"{}")


def too_much() -> Iterator[Malformed]:
    """Documents beyond the limits."""
    for size in (17, 100):
        yield Malformed(f"{size} MB of spaces after it", WHOLE, "16 MiB", lambda size=size: b" " * (size * MEBIBYTE))
    yield Malformed("deep lists", WHOLE, "32 levels", lambda: b'{"run": ' + b"[" * 100_000 + b"]" * 100_000 + b"}")
    yield Malformed("deep objects", WHOLE, "32 levels", lambda: b'{"a":' * 5000 + b"1" + b"}" * 5000)
    yield Malformed("deep and cut", WHOLE, "32 levels", lambda: b'{"notes": {"x": ' + b"[" * 1_000_000)
    yield Malformed("a string without end", "line 1", "not JSON", lambda: b'{"a": "' + b'\\"' * 500_000)
    steps = [0.5] * 100_001
    yield Malformed(
        "too many steps",
        "measurement.step_durations_seconds",
        "more than 100000 entries",
        _with("measurement.step_durations_seconds", steps),
    )
    flags = {f"F{index}": 1 for index in range(2001)}
    yield Malformed("too many flags", "flags", "more than 2000 entries", _with("flags", flags))
    yield Malformed("a long key", "flags.kkk", "200 characters", _with(f"flags.{'k' * 201}", 1))
    yield Malformed("a long text", "run.command", "10000 characters", _with("run.command", "x" * 10_001))


def every() -> list[Malformed]:
    """All of them."""
    sources = (truncated, wrong_types, unknown_keys, required_keys, versions, not_json, not_text, too_much)
    return [item for source in sources for item in source()]
