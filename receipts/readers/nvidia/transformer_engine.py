"""Transformer Engine's own word on its attention backend: the debug log, the prints before it, and JAX's.

The logger `DotProductAttention` (TransformerEngine `pytorch/attention/dot_product_attention/utils.py`, before 2.3
`pytorch/attention.py`) tells a selection when it is made, not when it is used: `Running with … backend` at level 1,
`Selected backend = …` and the reasons at level 2. Applications that own the root logger give these lines a form of
their own, so that the messages are looked for, not the prefix. Versions 1.2 to 1.7 print at every call.

`Running with config={…}` of Transformer Engine: versions, and what the attention was asked for.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import ClassVar, Final

from receipts.ingest import vocabulary
from receipts.ingest.literals import Brackets, literal
from receipts.ingest.prefix import is_quoted, is_source, rank_of, repeated, repeated_before
from receipts.ingest.reader import LineReader
from receipts.ingest.reading import AllocationFailure, Place, Reading, Tally

_LEAVES: Final = {
    "transformer_engine_version": "wheels.transformer-engine",
    "flash_attn_version": "wheels.flash-attn",
    "flash_attn_3_version": "wheels.flash-attn-3",
    "flash_attn_4_version": "wheels.flash-attn-4",
    "cudnn_version": "platform.cudnn",
    "cuda_version": "platform.cuda",
}
# Objects print themselves as `<Version('2.4.2')>`, and classes as `<class 'torch.Tensor'>`.
_REPR = re.compile(r"""<(?:[\w.]+\(\s*|class\s+)['"]([^'"]*)['"]\)?>""")
_VERSION = re.compile(r"v?\d+(?:\.\d+)*[\w.+-]*")
# What a reader of the notes wants to know of a selection.
_TOLD: Final = (
    *("compute_capability", "qkv_dtype", "qkv_layout", "attn_mask_type", "window_size", "max_seqlen_q"),
    *("head_dim_qk", "context_parallel", "deterministic", "is_training", "fp8"),
)


def state_config(reading: Reading, text: str, line: int, *, cut: bool) -> None:
    """State the versions in a printed config; of one that is cut its whole entries count."""
    # The entries as text; of a dict that is cut, without the last one, which may be half of one.
    value = literal(text)
    pairs = [(name, str(entry)) for name, entry in value.items()] if isinstance(value, dict) else []
    entries = {name: match[1] if (match := _REPR.fullmatch(entry)) else entry for name, entry in pairs}
    if cut and entries:
        entries.popitem()
    if "attn_mask_type" not in entries and "qkv_dtype" not in entries and "transformer_engine_version" not in entries:
        return
    reading.records += 1
    for key, leaf in _LEAVES.items():
        version = entries.get(key, "")
        if _VERSION.fullmatch(version):
            reading.state(leaf, version, version, line)
    if _VERSION.fullmatch(version := entries.get("transformer_engine_version", "")):
        reading.version = reading.version or version
    summary = ", ".join(f"{key}={entries[key][:40]}" for key in _TOLD if key in entries)
    if summary:
        reading.remark("note", f"selected for {summary}", line)
    if entries.get("fp8", "") == "True":
        reading.see("compute_dtype", "fp8", "intent", line)
    if cut:
        reading.remark("broken", "the printed config is cut; its whole entries were read", line)


FUSED, FLASH, UNFUSED = "FusedAttention", "FlashAttention", "UnfusedDotProductAttention"
PATHS: Final = {FUSED: "te_fused", FLASH: "te_flash", UNFUSED: "te_unfused"}
_KINDS: Final = ("running", "selected", "printed", "warned")
MAX_REASONS: Final = 60
MAX_CONFIG_LINES: Final = 60
MAX_RANKS: Final = 4096
_SUB_BACKENDS: Final = {"0": "F16_max512_seqlen", "1": "F16_arbitrary_seqlen", "2": "FP8"}

_SELECTION = re.compile(
    r"(?P<kind>Running with |Selected backend = )(?P<name>[A-Z][A-Za-z]{3,40})(?P<backend> backend\b|\s*$|\s{2})?"
    r"(?: \((?P<what>version |sub-backend )?(?P<detail>[^)%]{1,80})\))?"
)
# A sentence goes on where a message has ended.
_SENTENCE = re.compile(r" [a-z]+ [a-z]+\b")
_PRINTED = re.compile(
    r"\[(?P<where>\w{1,60})\]: using (?:(?P<flash>flash-attn)|(?P<cudnn>cuDNN)|(?P<unfused>[Uu]nfused)"
    r"|(?P<fp8>FP8) (?:forward|backward)|(?P<wide>non-FP8) (?:forward|backward))"
    r"(?: (?P<version>\d[\w.+]*))?(?:[^\n(]{0,40}\((?:sub-)?backend (?P<sub>\d+)\))?"
)
_JAX = re.compile(
    r"Selected fused attention backend: (?P<backend>[\w.]{1,80})"
    r"|(?P<none>No fused attention backend available; falling back)"
    r"|(?P<warned>Falling back to the unfused attention backend as fused attention"
    r"|Fall back to the unfused attention\.)"
)
_AVAILABLE = re.compile(r"Available backends = \{(?P<text>[^}]{1,400})\}")
_REASON = re.compile(
    r"Disabling (?:(?:FlashAttention|FusedAttention|UnfusedDotProductAttention)\b|all backends)[^\"']*"
)
_RECORDS: Final = ("DotProductAttention]:", "DotProductAttention:", "Running with ", "Selected b")
_NO_BACKEND: Final = "No dot product attention backend is available for the provided inputs"
_CONFIG: Final = "Running with config={"
_QUANTIZER = re.compile(
    r"\b(?P<where>\w{1,80}\.(?:forward|backward)) >> [^>]{1,40}>> {1,4}(?P<name>\w{1,40}?)_quantizer {0,8}: "
    r"(?P<type>(?!None\b)\w{1,40})"
)
_HINT = re.compile(r"flash-attn(?: v\d)? may provide important feature support or performance improvement")
_SUPPORT = re.compile(
    r"Device compute capability [\d.]+ or higher required for \w+ execution|MXFP8 .{0,40}not supported on"
)
_GROUPED: Final = "Fallback to cuBLAS grouped GEMM"
_USERBUFFERS = re.compile(r"!!! \[UB(?:P2P)?\]")


class TransformerEngineReader(LineReader):
    """Every selection of an attention backend, with its count, its reasons, and the versions that made it."""

    source: ClassVar[str] = "te-debug"
    anchors = vocabulary.anchors("transformer_engine")

    def __init__(self) -> None:
        super().__init__()
        # Selections of a backend by a rank, and by the kind of their message.
        self._selected = Tally[tuple[str, int | None]](MAX_RANKS)
        self._kinds = Counter[tuple[str, int | None, str]]()
        self._details, self._reasons, self._notes = Tally[str](), Tally[str](MAX_REASONS), Tally[str](MAX_REASONS)
        self._config = Brackets(MAX_CONFIG_LINES)
        self._choices: list[tuple[str, int | None, str]] = []

    def line(self, text: str, number: int) -> bool:
        if self._config:
            # Another record may begin before a config that goes on could end.
            head = text.partition("}")[0][:200]
            if not any(mark in head for mark in _RECORDS):
                return self._config.more(text, glued=True) or self._configured(text, number)
            self._configured("", number)
        if self._choices and (times := repeated_before(text)) is not None:
            for choice in self._choices:
                self._kinds[choice] += times - 1
        self._choices = []
        begin = text.find(_CONFIG)
        if begin >= 0 and not is_source(text, begin):
            goes_on = self._config.begin(text[begin + len(_CONFIG) - 1 :], number)
            return goes_on or self._configured(text, number)
        self._selections(text, number)
        self._remarks(text, number)
        return bool(self._choices)

    def finish(self) -> Reading | None:
        if self._config:
            self._configured("", 0)
        reading = self.reading
        for (name, rank), line in self._selected.first.items():
            # One selection is reported at level 2 and again at level 1.
            count = max(self._kinds[name, rank, kind] for kind in _KINDS)
            reading.count(name, count)
            if name in PATHS:
                reading.see("attention", PATHS[name], "backend", line, rank=rank, count=count)
        for what, line in self._details.first.items():
            reading.remark("note", what, line)
        for text, count in self._reasons.items():
            reading.blame("path.witnessed.attention", text, count)
        for notes in (self._reasons, self._notes):
            for text, count in notes.items():
                reading.remark("note", f"{text} ({count} times)" if count > 1 else text, notes.first[text])
        return super().finish()

    def _selections(self, text: str, number: int) -> None:
        for match in _SELECTION.finditer(text):
            running = match["kind"].startswith("Running")
            template = "%" in text[match.end() : match.end() + 16]
            prose = template or is_quoted(text, *match.span()) or _SENTENCE.match(text, match.end())
            if prose or (running and match["backend"] is None):
                continue
            if match["name"] in PATHS or match["name"] == "NoBackend":
                if match["name"] == "NoBackend" and not running:
                    self._note("Transformer Engine selected no attention backend: training cannot start", number)
                self._select("running" if running else "selected", match["name"], text, match.start(), number)
                self._detail(match["name"], match["what"], match["detail"], number)
        if "]: using " in text:
            for match in _PRINTED.finditer(text):
                if is_source(text, match.start()):
                    continue
                attention = "Attn" in match["where"] or "Attention" in match["where"]
                if attention and (match["fp8"] or match["wide"]):
                    self.reading.records += 1
                    self._note(f"{match['where']} used {'FP8' if match['fp8'] else 'no FP8'}", number)
                elif match["fp8"] or match["wide"]:
                    self.reading.records += 1
                    self.reading.see("gemm", "te_fp8" if match["fp8"] else "te", "backend", number)
                    if match["fp8"]:
                        self.reading.see("compute_dtype", "fp8", "backend", number)
                elif attention:
                    name = FLASH if match["flash"] else FUSED if match["cudnn"] else UNFUSED
                    self._select("printed", name, text, match.start(), number)
                    self._detail(
                        name, "sub-backend " if match["sub"] else "version ", match["sub"] or match["version"], number
                    )
        if "attention backend" in text or "to the unfused attention" in text:
            for match in _JAX.finditer(text):
                if is_source(text, match.start()):
                    continue
                backend = match["backend"] or ""
                name = UNFUSED if not backend or "no_backend" in backend.lower() else FUSED
                self._select("warned" if match["warned"] else "selected", name, text, match.start(), number)
                if backend:
                    self._details.add(f"{name} backend {backend.rsplit('.', 1)[-1]}", number)

    def _select(self, kind: str, name: str, text: str, at: int, number: int) -> None:
        rank = rank_of(text, at)
        if not self._selected.add((name, rank), number):
            rank = None
            self._selected.first.setdefault((name, rank), number)
        self._kinds[name, rank, kind] += repeated(text)
        self._choices.append((name, rank, kind))
        self.reading.records += 1

    def _detail(self, name: str, what: str | None, detail: str | None, number: int) -> None:
        if not detail:
            return
        if name == FUSED or what == "sub-backend ":
            known = _SUB_BACKENDS.get(detail)
            self._details.add(f"{name} sub-backend {detail}{f' ({known})' if known else ''}", number)
        elif what == "version " or detail[0].isdigit():
            self._details.add(f"{name} version {detail}", number)
            wheel = "flash-attn" if detail.startswith("2") else f"flash-attn-{detail[0]}"
            self.reading.state(f"wheels.{wheel}", detail, detail, number)

    def _remarks(self, text: str, number: int) -> None:
        if "Disabling" in text:
            for match in _REASON.finditer(text):
                if not is_source(text, match.start()):
                    self.reading.records += 1
                    # In one sentence: without the list of what would be supported.
                    reason = match[0].partition(" Supported:")[0].partition("\\n")[0].strip().rstrip(".")[:300]
                    self._reasons.add(reason, number, repeated(text))
        if (available := _AVAILABLE.search(text)) and "%s" not in available["text"]:
            self._note(f"available: {available['text']}", number)
        begin = text.find(_NO_BACKEND)
        if begin >= 0 and not is_source(text, begin):
            self.reading.records += 1
            if not any(failure.message == _NO_BACKEND for failure in self.reading.failures):
                failure = AllocationFailure(
                    Place(number), is_oom=False, class_="not_oom", message=_NO_BACKEND, rank=rank_of(text, begin)
                )
                self.reading.failures.append(failure)
            self._note("no attention backend takes the inputs, and the run ended there", number)
        if quantizer := _QUANTIZER.search(text):
            what = f"{quantizer['where']} quantizes {quantizer['name']} ({quantizer['type']})"
            self._note(f"{what}; printing this reads the device", number)
        for form, what in ((_HINT, ": a hint that a package is missing, no proof of a path"), (_SUPPORT, "")):
            if hint := form.search(text):
                self._note(f"{hint[0]}{what}", number)
        at = text.find(_GROUPED)
        if at >= 0 and not is_source(text, at):
            self.reading.records += 1
            self.reading.fall_back("te_cutlass_grouped_gemm", repeated(text))
        if _USERBUFFERS.search(text) and "{" not in text:
            self.reading.records += 1
            self.reading.see("overlap", "tp_comm", "backend", number)

    def _note(self, text: str, number: int) -> None:
        self.reading.records += 1
        self._notes.add(text, number)

    def _configured(self, text: str, number: int) -> bool:
        """Take the config, and what is glued behind it on its last line; whether that may go on below."""
        state_config(self.reading, self._config.take(), self._config.line, cut=self._config.cut)
        rest = text.rpartition("}")[2] if not self._config.cut else ""
        if rest.strip():
            self._selections(rest, number)
            self._remarks(rest, number)
        return bool(self._choices)


READERS = (TransformerEngineReader,)
