"""Lines in which a library says that it takes another way than the one it was made for.

A hint of a missing package is a remark. Where the line says which implementation of a path's leaf runs from there on,
that is seen. Sources: Megatron-LM `core/`, transformers' Mamba and gated delta-net models, flash-linear-attention,
torch `nn/functional`, DeepSpeed `ops`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar, Final

from receipts.ingest.evidence.reader import LineReader
from receipts.ingest.evidence.witnesses.te_prefix import is_source, repeated

MAX_HINTS: Final = 50


@dataclass(frozen=True, slots=True)
class Hint:
    """A message, and what it says of the path: a leaf with its value, or nothing."""

    pattern: re.Pattern[str]
    leaf: str = ""
    value: str = ""


_HINTS: Final = (
    Hint(re.compile(r"(?:Transformer Engine and )?Apex (?:is|are) not installed\. Falling back to [^\n\"']{1,80}")),
    Hint(re.compile(r"Transformer Engine (?:and Apex are|is) not installed\. Falling back to [^\n\"']{1,80}")),
    Hint(
        re.compile(
            r"The fast path is not available because (?:one|on) of [^\n]{1,300}Falling back to (?:the )?"
            r"(?:naive|sequential|slow) implementation"
        ),
        "ssm",
        "sequential",
    ),
    Hint(
        re.compile(r"The fast path is not available because (?:one|on) of [^\n]{1,300}Falling back to the mamba\.py"),
        "ssm",
        "mambapy",
    ),
    Hint(
        re.compile(
            r"The fast path is not available because one of the required librar(?:y|ies) is not installed\."
            r" Falling back to torch implementation"
        ),
        "ssm",
        "torch",
    ),
    Hint(
        re.compile(
            r"[Ff]alling back to (?:the )?(?:eager|manual|naive|math) (?:attention|implementation of attention)"
        ),
        "attention",
        "math",
    ),
    Hint(re.compile(r"(?:DeepEP|HybridEP|deep_ep) [^\n\"']{1,80}[Ff]alling back to [^\n\"']{1,60}")),
    Hint(re.compile(r"[Gg]rouped ?(?:GEMM|gemm|MM|mm) [^\n\"']{1,100}[Ff]alling back to [^\n\"']{1,80}")),
    Hint(re.compile(r"Attempting to all-gather an unsupported quantized tensor\. Falling back to high-precision")),
    Hint(re.compile(r"cuBLASMp backend does not support bulk overlaps for [^\n\"]{1,120}")),
    Hint(re.compile(r"CuTeDSL [^\n\"']{1,120}[Ff]alling back to the CUDA C\+\+ kernel")),
    Hint(re.compile(r"Falling back to eager execution under torch\.compile: [^\n\"']{1,120}")),
    Hint(
        re.compile(
            r"fused (?:softmax|rope|RoPE|cross[ -]entropy|layer ?norm) (?:is |kernel )?not available[^\n\"']{0,100}",
            re.I,
        )
    ),
)


class FallbackHintsReader(LineReader):
    """Each message once, with its first line."""

    source: ClassVar[str] = "fallback-hints"
    anchors: ClassVar[tuple[bytes, ...]] = (
        *(b"alling back to", b"does not support bulk overlaps", b"The fast path is not available"),
        *(b"softmax not available", b"kernel not available", b"is not available, using"),
    )

    def __init__(self) -> None:
        super().__init__()
        self._noted: set[str] = set()

    def line(self, text: str, number: int) -> bool:
        text = text[:2000]
        for hint in _HINTS:
            match = hint.pattern.search(text)
            if match is None or is_source(text, match.start()):
                continue
            self.reading.records += 1
            if hint.leaf:
                self.reading.see(hint.leaf, hint.value, "backend", number, count=repeated(text))
            if match[0] not in self._noted and len(self._noted) < MAX_HINTS:
                self._noted.add(match[0])
                self.reading.remark("note", match[0].strip()[:300], number)
            break
        return False


READERS = (FallbackHintsReader,)
