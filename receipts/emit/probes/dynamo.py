"""torch.compile: what it compiled and when, by its own counters and its own callbacks.

Counts are of compilation and not of execution: a graph break counts once, however often it is run through.
Sources: `torch/_dynamo/utils.py` (`counters`, `compilation_time_metrics`), `torch/_dynamo/callback.py` (2.5 on).
"""

from __future__ import annotations

from time import perf_counter

from receipts.emit.probes import imported, pytorch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from receipts.emit.probing import ProbeOutput

NAME = "torch.compile"
_UTILS, _CALLBACK = "torch._dynamo.utils", "torch._dynamo.callback"
_LIMITS = ("recompile limit exceeded", "cache size limit exceeded", "recompile_limit reached")
_MAX_EVENTS = 10_000


class DynamoListener:
    """Listens to torch.compile: each compilation with the steps that had ended, and the time of all."""

    def __init__(self, stated: ProbeOutput) -> None:
        self._stated = stated
        self._begun = 0.0
        self.seconds = 0.0
        # Steps that had ended, and whether one was running.
        self.events: list[tuple[int, bool]] = []
        self.recordings = 0

    def started(self, *given: Any) -> None:
        """Called by torch.compile before it compiles; what goes wrong here must not reach the job."""
        try:
            self._begun = perf_counter()
            trigger = getattr(getattr(given[0], "callback_trigger", None), "name", "") if given else ""
            if trigger == "CUDAGRAPH_RECORDING":
                self.recordings += 1
            elif len(self.events) < _MAX_EVENTS:
                stated = self._stated
                if trigger in ("", "DYNAMO"):
                    # A backward pass that is compiled later is part of its forward's program.
                    self.events.append((stated.steps, stated.inside))
                if stated.inside:
                    # `0/2` is the third compilation of the first frame.
                    number = str(getattr(given[0], "compile_id", "")).partition("/")[2] if given else ""
                    again = number.partition("_")[0] not in ("", "0")
                    stated.mark_step("recompile" if again else "compile")
        except Exception as error:
            self._stated.note(f"a compilation could not be noted: {type(error).__name__}: {error}")

    def ended(self, *_given: Any) -> None:
        """Called by torch.compile when it has compiled."""
        if self._begun:
            self.seconds += perf_counter() - self._begun
            self._begun = 0.0

    def late(self, warmup: int, steps: int) -> int:
        """Compilations inside steps after the warm-up."""
        return sum(inside and warmup <= step < steps for step, inside in self.events)


def at_start(stated: ProbeOutput) -> None:
    """Listen, where torch.compile is there already."""
    stated.kept["first"] = graphs()
    imported.read_each(stated, _listen)


def at_phase(stated: ProbeOutput, phase: str) -> None:
    """Listen from here on, where torch.compile came since; keep what it had compiled after the first step."""
    if phase == "post_step0":
        stated.kept["step0"] = graphs()
    if phase != "steady":
        imported.read_each(stated, _listen)


def at_warm(stated: ProbeOutput) -> None:
    """Keep what it had compiled when the warm-up ended."""
    stated.kept["warm"] = graphs()
    imported.read_each(stated, _listen)


def at_end(stated: ProbeOutput) -> None:
    """State compilations, graph breaks, the cache and its time."""
    listener: DynamoListener | None = stated.kept.get("listener")
    handler = imported.part(_CALLBACK, "callback_handler")
    if listener is not None and handler is not None:
        handler.remove_start_callback(listener.started)
        handler.remove_end_callback(listener.ended)
    if imported.module("torch") is not None and not imported.any_of(("torch_xla", "jax")):
        imported.read_each(stated, _counts, _graphs_of_cuda)


def counters() -> dict[str, dict[str, int]]:
    """`torch._dynamo.utils.counters` as plain numbers; empty where torch.compile was never used."""
    groups: Mapping[str, Mapping[str, Any]] = imported.part(_UTILS, "counters") or {}
    return {
        str(group): {str(name): int(count) for name, count in dict(counts).items() if isinstance(count, int)}
        for group, counts in dict(groups).items()
    }


def graphs() -> int:
    """Programs that torch.compile has made so far."""
    return counters().get("stats", {}).get("unique_graphs", 0)


def _listen(stated: ProbeOutput) -> None:
    handler = imported.part(_CALLBACK, "callback_handler")
    if handler is None or "listener" in stated.kept:
        return
    listener = DynamoListener(stated)
    handler.register_start_callback(listener.started)
    handler.register_end_callback(listener.ended)
    # What was compiled before it listened is not in its events.
    stated.kept["listener"], stated.kept["unheard"] = listener, graphs()


def _counts(stated: ProbeOutput) -> None:
    groups = counters()
    graphs = groups.get("stats", {}).get("unique_graphs", 0)
    frames = groups.get("frames", {}).get("total", 0)
    if graphs < max(stated.kept.get(name, 0) for name in ("first", "step0", "warm")):
        stated.note("torch.compile's counters were cleared while the job ran: what it compiled in all is not known")
        return
    stated.put("compile.compiles", graphs)
    stated.put("compile.compiles_after_warmup", _late(stated, graphs))
    if not frames and not graphs:
        stated.put("path.witnessed.posture", "eager")
        stated.put("compile.cache_state", "off")
        return
    stated.put("compile.graph_breaks", _breaks(groups))
    stated.put("path.witnessed.posture", posture(stated, groups))
    # Programs from the cache on disk: Inductor's, or where nobody asked it, the one around it.
    inductor, autograd = groups.get("inductor", {}), groups.get("aot_autograd", {})
    hits, misses = inductor.get("fxgraph_cache_hit", 0), inductor.get("fxgraph_cache_miss", 0)
    if not hits and not misses:
        hits, misses = autograd.get("autograd_cache_hit", 0), autograd.get("autograd_cache_miss", 0)
    if hits or misses:
        stated.put("compile.cache_hits", hits)
        stated.put("compile.cache_misses", misses)
    if hits and misses:
        stated.note(f"the compile cache held {hits} programs and not {misses} others: neither cold nor warm")
    elif hits or misses:
        stated.put("compile.cache_state", "warm" if hits else "cold")
    elif inductor.get("fxgraph_cache_bypass", 0) or not getattr(
        imported.module("torch._inductor.config"), "fx_graph_cache", True
    ):
        stated.put("compile.cache_state", "off")
    listener: DynamoListener | None = stated.kept.get("listener")
    times: Mapping[str, list[float]] = imported.part(_UTILS, "compilation_time_metrics") or {}
    seconds = next((sum(times[name]) for name in ("_compile.compile_inner", "_compile") if name in times), None)
    if listener is not None and not stated.kept["unheard"]:
        seconds = listener.seconds
    stated.put("compile.compile_seconds", seconds)
    limited = {**groups.get("graph_break", {}), **groups.get("unimplemented", {})}
    hit = sum(count for name, count in limited.items() if _limited(name))
    if hit:
        stated.note("a recompile limit was reached: the function runs uncompiled from there on")
        stated.counter("torch.compile.recompile_limit", hit, expected=0)
    # Compiled functions by name, where the caller says that regions are what is compiled.
    records = imported.part(_UTILS, "get_compilation_metrics") or tuple
    names = [_qualified(record) for record in records() if getattr(record, "co_name", None)]
    regions = list(dict.fromkeys(names))[:100]
    if stated.get("compile.posture") == "regional":
        stated.put("compile.regions", regions or None)
    elif regions:
        stated.note(f"compiled functions: {', '.join(regions)[:2000]}")


def _breaks(groups: Mapping[str, Mapping[str, int]]) -> int:
    """Places where a graph ended, and functions that were given up: what breaks inside a loop of Python's ends both.

    Of one such function there may be several reasons, and a function without anything to compile is given up without.
    """
    reasons = sum(count for name, count in groups.get("unimplemented", {}).items() if not _limited(name))
    frames = groups.get("frames", {})
    given_up = max(1, min(reasons, frames.get("total", 0) - frames.get("ok", 0))) if reasons else 0
    return sum(groups.get("graph_break", {}).values()) + given_up


def posture(stated: ProbeOutput, groups: Mapping[str, Mapping[str, int]]) -> str | None:
    """What was compiled, as far as counters tell; None where it may be a region or all of it.

    A function that torch.compile could not take runs as Python. One graph into which every parameter of the model goes
    is the whole; how many there are only the caller knows.
    """
    if not groups.get("stats", {}).get("unique_graphs", 0):
        return "eager"
    if _breaks(groups) or any(_limited(name) for name in groups.get("unimplemented", {})):
        return "regional"
    every = stated.get("model.parameters_total")
    records = imported.part(_UTILS, "get_compilation_metrics")
    taken = [getattr(record, "param_numel", None) for record in (records() if records is not None else ())]
    return "whole_graph" if every is not None and every in taken else None


def _limited(name: str) -> bool:
    return any(word in name.lower() for word in _LIMITS)


def _late(stated: ProbeOutput, graphs: int) -> int | None:
    """Compilations once the warm-up was over; None where it cannot be told."""
    listener: DynamoListener | None = stated.kept.get("listener")
    warm = stated.kept.get("warm")
    if warm is None:
        # The warm-up was not seen to end: nothing after the first step is nothing after the warm-up.
        return 0 if stated.kept.get("step0") == graphs and stated.steps else None
    if listener is not None and stated.kept["unheard"] <= warm and stated.warmup is not None:
        return listener.late(stated.warmup, stated.steps)
    return graphs - int(warm)


def _qualified(record: Any) -> str:
    """`bias_swiglu` in …/site-packages/megatron/core/fusions/x.py as the module's name and the function's."""
    file = str(getattr(record, "co_filename", "") or "").replace("\\", "/")
    for folder in ("/site-packages/", "/dist-packages/", "/src/"):
        _, separator, tail = file.rpartition(folder)
        if separator:
            return f"{tail.removesuffix('.py').replace('/', '.')}.{record.co_name}"
    return f"{file.rpartition('/')[2].removesuffix('.py')}.{record.co_name}".lstrip(".")


def _graphs_of_cuda(stated: ProbeOutput) -> None:
    listener: DynamoListener | None = stated.kept.get("listener")
    if pytorch.on_cpu():
        stated.put("compile.cuda_graph_implementation", "none")
    if pytorch.cuda_begun() and listener is not None and listener.recordings:
        stated.put("compile.cuda_graph_implementation", "inductor")
        stated.put("path.witnessed.cuda_graphs", True)
        stated.counter("torch.compile.cudagraph_recordings", listener.recordings)
    skips = counters().get("inductor", {}).get("cudagraph_skips", 0)
    if skips:
        stated.counter("torch.compile.cudagraph_skips", skips)
