"""What libraries print beside the steps: torch's watchdog, NCCL of itself, and hints that another way was taken.

A rank's stderr may hold nothing but the watchdog of its process groups, and it says how the run ended. Source:
`ProcessGroupNCCL.cpp` of torch 1.13 to 2.x. The outcome itself is read from the end of the log. What NCCL itself prints
with ``NCCL_DEBUG=INFO`` (or to ``NCCL_DEBUG_FILE``) tells its version, its network and the ranks of its communicators,
of which the largest need not be the whole job.

A library may say that it takes another way than the one it was made for. A hint of a missing package is a remark. Where
the line says which implementation of a path's leaf runs from there on, that is seen. Sources: Megatron-LM `core/`,
transformers' Mamba and gated delta-net models, flash-linear-attention, torch `nn/functional`, DeepSpeed `ops`.
"""

from __future__ import annotations

import re
from typing import ClassVar, Final

from receipts.ingest.prefix import is_source, rank_of, repeated
from receipts.ingest.reader import LineReader
from receipts.ingest.reading import Reading

_TIMEOUT: Final = re.compile(
    r"caught collective operation timeout: WorkNCCL\([^)]{0,200}?OpType=(?P<what>\w{1,40})[^\n]{0,200}?"
    r"Timeout\(ms\)=(?P<limit>\d{1,12})"
)
_MAX_NOTES: Final = 20
_VERSION: Final = re.compile(r"\bNCCL version (\d[\w.+]{1,60})")
_NETWORK: Final = re.compile(r"NCCL INFO Using (?:network|internal Network) (\S{1,40})")
_RANKS: Final = re.compile(r"NCCL INFO .{0,120}?\bn[rR]anks (\d{1,7})\b")


class NcclWatchdog(LineReader):
    """Reads collectives that timed out."""

    source: ClassVar[str] = "nccl-watchdog"
    anchors: ClassVar[tuple[bytes, ...]] = (b"caught collective operation timeout",)

    def line(self, text: str, number: int) -> bool:
        """Take one timeout."""
        match = _TIMEOUT.search(text)
        self.reading.records += 1
        if match is not None and self.reading.records <= _MAX_NOTES:
            rank = rank_of(text, match.start())
            where = f"rank {rank}: " if rank is not None else ""
            seconds = int(match["limit"]) / 1e3
            self.reading.remark("note", f"{where}{match['what']} timed out after {seconds:,.0f} s", number)
        return False


class NcclInfo(LineReader):
    """Reads what NCCL says of itself when a communicator is made."""

    source: ClassVar[str] = "nccl"
    anchors: ClassVar[tuple[bytes, ...]] = (b"NCCL INFO ", b"NCCL version ")

    def __init__(self) -> None:
        super().__init__()
        self._most = self._informs = 0
        self._networks: set[str] = set()

    def line(self, text: str, number: int) -> bool:
        """Take one line."""
        self._informs += "NCCL INFO " in text
        if match := _VERSION.search(text):
            self.reading.state("platform.nccl", match[1], f"NCCL version {match[1]}", number)
        elif match := _RANKS.search(text):
            self._most = max(self._most, int(match[1]))
        elif (match := _NETWORK.search(text)) and len(self._networks) < _MAX_NOTES:
            self._networks.add(match[1])
        return False

    def finish(self) -> Reading | None:
        """The reading; a version alone is that of the program which prints it."""
        self.reading.records += self._informs
        if self._most:
            network = f" over {', '.join(sorted(self._networks))}" if self._networks else ""
            what = f"NCCL's largest communicator has {self._most:,} ranks{network}: at least so many chips"
            self.reading.remark("note", what)
        return super().finish()


_SLOW: Final = r"The fast path is not available because (?:one|on) of [^\n]{1,300}"
# What a message says of the path: a leaf and its value.
_PATHS: Final = (
    ("ssm", "sequential", rf"{_SLOW}Falling back to (?:the )?(?:naive|sequential|slow) implementation"),
    ("ssm", "mambapy", rf"{_SLOW}Falling back to the mamba\.py"),
    ("ssm", "torch", rf"{_SLOW}is not installed\. Falling back to torch implementation"),
    (
        *("attention", "math"),
        r"[Ff]alling back to (?:the )?(?:eager|manual|naive|math) (?:attention|implementation of attention)",
    ),
)
_OTHERS: Final = "|".join(
    (
        r"(?:(?:Transformer Engine and )?Apex|Transformer Engine) (?:is|are) not installed\. "
        r"Falling back to [^\n\"']{1,80}",
        r"(?:DeepEP|HybridEP|deep_ep) [^\n\"']{1,80}[Ff]alling back to [^\n\"']{1,60}",
        r"[Gg]rouped ?(?:GEMM|gemm|MM|mm) [^\n\"']{1,100}[Ff]alling back to [^\n\"']{1,80}",
        r"Attempting to all-gather an unsupported quantized tensor\. Falling back to high-precision",
        r"cuBLASMp backend does not support bulk overlaps for [^\n\"]{1,120}",
        r"CuTeDSL [^\n\"']{1,120}[Ff]alling back to the CUDA C\+\+ kernel",
        r"Falling back to eager execution under torch\.compile: [^\n\"']{1,120}",
        r"(?i:fused (?:softmax|rope|cross[ -]entropy|layer ?norm) (?:is |kernel )?not available)[^\n\"']{0,100}",
    )
)
_HINTS: Final = tuple((leaf, value, re.compile(form)) for leaf, value, form in (*_PATHS, ("", "", _OTHERS)))


class FallbackHintsReader(LineReader):
    """Each message once, with its first line."""

    source: ClassVar[str] = "fallback-hints"
    anchors: ClassVar[tuple[bytes, ...]] = (
        *(b"alling back to", b"does not support bulk overlaps", b"The fast path is not available"),
        *(b"softmax not available", b"kernel not available", b"is not available, using"),
    )

    def line(self, text: str, number: int) -> bool:
        text = text[:2000]
        for leaf, value, form in _HINTS:
            match = form.search(text)
            if match is None or is_source(text, match.start()):
                continue
            self.reading.records += 1
            if leaf:
                self.reading.see(leaf, value, "backend", number, count=repeated(text))
            self.reading.remark("note", match[0].strip()[:300], number)
            break
        return False


READERS = (NcclWatchdog, NcclInfo, FallbackHintsReader)
