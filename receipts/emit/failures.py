"""How a run ended, from the exception that ended it: outcome, class, figures and words.

A plain reading, for the receipt that the run itself writes. `receipts recover` and `receipts merge` read the words
again with the engine's readers, which know many more messages; this one never guesses beyond the text.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any

# Words by which those who wait for others give up: watchdogs of collectives, rendezvous and barriers of the runtimes.
_HANGS = (
    r"watchdog caught collective operation timeout|ran for \d+ milliseconds before timing out"
    r"|(?:heartbeat monitor|watchdog)\b[^\n]{0,80}\b(?:timed out|stuck|got stuck|no heartbeat)"
    r"|timed out (?:after )?(?:waiting )?\d+\s?m?s (?:for|waiting for) (?:recv|send) operation"
    r"|timed out in:? ?(?:barrier|allreduce|allgather|broadcast)|monitoredbarrier[^\n]{0,80}timed? ?out"
    r"|threads? to join the rendezvous, but only|termination timeout for [^\n]{0,200} exceeded"
    r"|deadline_exceeded[^\n]{0,200}(?:barrier|collective|heartbeat)|barrier timed out"
)
# Words of those who lost somebody: they tell that another rank went, and not why.
_LOST = (
    r"connection (?:was )?(?:reset|closed|aborted) by (?:remote )?peer|connection was likely closed|broken pipe"
    r"|ncclremoteerror|remote process exit|peer closed connection|socket closed"
    r"|tasks? (?:have|has) crashed|leader (?:has )?(?:died|crashed)"
)
LONGEST = 8000
LONGEST_READ = 100_000
_UNITS = {"": 1, "B": 1, "BYTES": 1, "K": 1 << 10, "KIB": 1 << 10, "KB": 10**3, "M": 1 << 20, "MIB": 1 << 20}
_UNITS |= {"MB": 10**6, "G": 1 << 30, "GIB": 1 << 30, "GB": 10**9, "T": 1 << 40, "TIB": 1 << 40, "TB": 10**12}
_SIZE = r"([\d.]{1,20}) ?([A-Za-z]{0,5})"
_SPACES = {"hbm": "compile_hbm", "vmem": "compile_vmem", "smem": "compile_smem", "cmem": "compile_vmem"}
_FIGURES = {
    "requested_bytes": rf"(?:(?:[Tt]ried|trying|Unable|Attempting) to (?:allocate|reserve)|memory allocating) {_SIZE}",
    "limit_bytes": rf"(?:total capacity of|[Uu]sed [\d.]+\w? of) {_SIZE}",
    "free_bytes": rf"(?:of which|There are) {_SIZE}(?: is)? free",
    "used_bytes": rf"(?:this process has|\b[Uu]sed) {_SIZE}(?: memory in use| of)",
    "unallocated": rf"{_SIZE} is reserved by PyTorch but unallocated",
}


def of_exception(error: BaseException) -> tuple[str, dict[str, Any]]:
    """Outcome and leaves of ``failure`` of an exception that left the run. Step, phase and rank are the caller's."""
    kind = type(error)
    name = kind.__name__ if kind.__module__ in ("builtins", "__main__") else f"{kind.__module__}.{kind.__name__}"
    try:
        text = str(error)
    except Exception:
        text = ""
    message = f"{name}: {text}" if text else name
    message = message[:LONGEST_READ]
    failure: dict[str, Any] = {"message": message}
    where = operator(error.__traceback__)
    if where:
        failure["operator"] = where
    outcome, seen = of_text(message)
    return outcome, {**failure, **seen}


def of_text(message: str) -> tuple[str, dict[str, Any]]:
    """Outcome (`oom`, `nan`, `hang` or `crash`) of an error's words, with the class and the figures that they give."""
    import re

    low = message.lower()
    head = low.partition(":")[0]
    if head == "memoryerror" or "defaultcpuallocator" in low or "std::bad_alloc" in low or "oom-kill" in low:
        return "oom", {"class": "host", **_figures(message)}
    if "outofmemoryerror" in head or re.search(r"out of memory|resource_exhausted|ran out of memory", low):
        figures = _figures(message)
        unallocated = figures.pop("unallocated", None)
        failure = {"class": _class(low, figures, unallocated), **figures}
        chip = re.search(r"\b(?:GPU|XPU|TPU)[ _:](\d{1,5})\b", message)
        if chip is not None:
            failure["device"] = int(chip[1])
        return "oom", failure
    if head in ("floatingpointerror", "nonfiniteerror") or re.search(
        r"\b(?:loss|grad\w*|norm)\b[^.\n]{0,60}\b(?:is |was |became )?(?:nan|inf|not finite|non-?finite)\b"
        r"|\b(?:nan|non-?finite)\b[^.\n]{0,40}\b(?:loss|grad\w*)\b",
        low,
    ):
        return "nan", {"class": "not_oom"}
    return "hang" if hangs(low) else "crash", {"class": "not_oom"}


def hangs(text: str) -> bool:
    """Whether somebody says here that he gave up waiting for others."""
    import re

    return re.search(_HANGS, text, re.IGNORECASE) is not None


def bereft(text: str) -> bool:
    """Whether somebody says here that another went away: the failure is then the other's."""
    import re

    return re.search(_LOST, text, re.IGNORECASE) is not None


def _class(low: str, figures: dict[str, int], unallocated: int | None) -> str:
    import re

    space = re.search(r"memory space (\w{2,12})", low) or re.search(r"scoped (\w{2,12})", low)
    if space is not None and space[1] in _SPACES:
        return _SPACES[space[1]]
    if "loading program" in low:
        return "program_load"
    if "tried to allocate" not in low:
        return "runtime_alloc"
    requested, limit = figures.get("requested_bytes"), figures.get("limit_bytes")
    if requested is not None and limit is not None and requested > limit:
        return "oversized_request"
    if requested is not None and unallocated is not None and unallocated >= requested:
        return "fragmentation"
    return "capacity"


def _figures(message: str) -> dict[str, int]:
    import re

    figures: dict[str, int] = {}
    for name, pattern in _FIGURES.items():
        match = re.search(pattern, message)
        if match is not None and (unit := _UNITS.get(match[2].upper())) is not None:
            try:
                figures[name] = int(float(match[1]) * unit)
            except ValueError:
                continue
    return figures


def operator(trace: TracebackType | None) -> str | None:
    """Where it was raised: the file's own name, the line and the function of the innermost frame."""
    if trace is None:
        return None
    while trace.tb_next is not None:
        trace = trace.tb_next
    code = trace.tb_frame.f_code
    return f"{code.co_filename.replace(chr(92), '/').rpartition('/')[2]}:{trace.tb_lineno} in {code.co_name}"[:500]


def phase(steps: int, warmup: int | None, *, begun: bool, compiling: bool) -> str:
    """When it failed: `compile` inside a span of compiling, `startup` before a step, then by the warm-up."""
    if compiling:
        return "compile"
    if not steps and not begun:
        return "startup"
    return "first_window" if steps < max(warmup or 0, 1) else "steady"
