"""StableHLO and MHLO text: what a framework handed to the compiler. It proves what was meant, and never what ran.

``stablehlo.custom_call @tpu_custom_call(…) {…, kernel_name = "splash_mha_fwd…"}`` and the generic form with
``call_target_name``; shardings as ``sdy.sharding`` or ``mhlo.sharding`` on the arguments of ``@main``.
"""

from __future__ import annotations

import re
from typing import Final

from receipts.ingest.evidence.witnesses import hlo_kernels
from receipts.ingest.reader import LineReader
from receipts.ingest.reading import Reading

MAX_TARGETS: Final = 500
# Long lines hold constants; a call's target and its kernel's name stand outside of them.
MAX_LOOKED_AT: Final = 1 << 16
_CALL: Final = re.compile(r"(?:stablehlo|mhlo)\.custom_call\"?[ (]@?(?:\"?([\w.$\-]{1,200}))?")
_TARGET: Final = re.compile(r'call_target_name = "([^"]{1,200})"')
_KERNEL: Final = re.compile(r'(?:kernel_name|name) = \\?"([\w.\-]{1,300})')
_MODULE: Final = re.compile(r"(?:^|\s)module @([\w.\-]{1,300})(?: attributes \{(.{0,2000}))?")
_PARTITIONS: Final = re.compile(r"mhlo\.num_partitions = (\d{1,9})")
_SHARDED: Final = re.compile(
    r"sdy\.sharding = #sdy\.sharding<@[\w\"]{1,100}, \[([^\]]{0,500})\]|mhlo\.sharding = \"([^\"]{0,500})\""
)


class Stablehlo(LineReader):
    """Custom calls and argument shardings as they were asked for."""

    source = "stablehlo"
    anchors = (
        b"stablehlo.custom_call",
        b"mhlo.custom_call",
        b"module @",
        b"func.func public @main",
        b"= stablehlo.dot_general",
    )

    def __init__(self) -> None:
        super().__init__()
        self._dialect = False
        self._named = False

    def line(self, text: str, number: int) -> bool:
        """A module's head, the step's arguments, or one call."""
        reading = self.reading
        if "custom_call" in text:
            self._call(text, number)
        elif "func.func public @main" in text:
            self._arguments(text)
        elif "stablehlo.dot_general" in text:
            reading.records += 1
            reading.count("dot_general")
        elif (module := _MODULE.search(text[:MAX_LOOKED_AT])) is not None:
            chips = _PARTITIONS.search(module[2] or "")
            self._named = self._named or chips is not None or module[1].startswith(("jit_", "pmap_", "IrToHlo"))
        return False

    def finish(self) -> Reading | None:
        """Counts and intents; None where no line of the dialect was there."""
        reading = self.reading
        if not (reading.records or self._named):
            return None
        reading.records = max(reading.records, 1)
        if self._named:
            reading.counters.setdefault(hlo_kernels.MOSAIC, 0)
        reading.remark("note", "StableHLO proves what was meant; the optimised program proves what was built")
        return reading

    def _call(self, text: str, number: int) -> None:
        reading = self.reading
        text = text if len(text) <= MAX_LOOKED_AT else text[:MAX_LOOKED_AT] + text[-MAX_LOOKED_AT:]
        call = _CALL.search(text)
        if call is None:
            return
        reading.records += 1
        named = _TARGET.search(text)
        target = call[1] if call[1] and call.group(0).find("@") >= 0 else named[1] if named else None
        if target is None or (target not in reading.counters and len(reading.counters) >= MAX_TARGETS):
            return
        reading.count(target)
        kernel = _KERNEL.search(text)
        meant = hlo_kernels.attention(target, kernel[1] if kernel else "")
        if meant is not None:
            reading.see("attention", meant, "intent", number)

    def _arguments(self, text: str) -> None:
        """How many arrays were asked to be split, and how many to be whole on every chip."""
        split = whole = 0
        for shardy, older in _SHARDED.findall(text):
            if '"' in shardy or "devices=" in older:
                split += 1
            else:
                whole += 1
        if split or whole:
            self.reading.records += 1
            self.reading.counters |= {"arguments_split": split, "arguments_replicated": whole}


READERS = (Stablehlo,)
