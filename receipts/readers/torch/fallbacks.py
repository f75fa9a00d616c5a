"""Lines in which a library says that it takes another way than the one it was made for.

A hint of a missing package is a remark. Where the line says which implementation of a path's leaf runs from there on,
that is seen. Sources: Megatron-LM `core/`, transformers' Mamba and gated delta-net models, flash-linear-attention,
torch `nn/functional`, DeepSpeed `ops`.
"""

from __future__ import annotations

import re
from typing import ClassVar, Final

from receipts.ingest.prefix import is_source, repeated
from receipts.ingest.reader import LineReader

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


READERS = (FallbackHintsReader,)
