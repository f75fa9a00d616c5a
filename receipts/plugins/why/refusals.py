"""When a table must not explain: each refusal with what was met and what to do next.

A table adds up whatever the traces are: of a cut trace, of rank 0 against rank 1, of a launch against itself. What
makes it worth something is what is refused here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from fractions import Fraction
from typing import Any, Final, NamedTuple

from receipts.plugins.why.difference import TracedLaunch, common_ranks
from receipts.plugins.why.profile import Profile
from receipts.receipt import Parsed

MIN_STEPS: Final = 3
MAX_OTHER: Final = 0.10
MAX_SLOWER: Final = Fraction(15, 100)
MAX_RESIDUAL: Final = Fraction(25, 100)
MAX_LAUNCHES: Final = 2
THIN: Final = 0.5
_SLACK: Final = 120.0  # seconds: clocks of a trace and of a recorder, and what the launch did before it was recorded
RECORD: Final = "receipts record --why"
# Axes that change how many kernels a step launches.
_LAUNCHES: Final = (
    "posture",
    "*compile*",
    "cuda_graphs",
    "*cuda*graph*",
    "*fus*",
    "path.*",
    "*foreach*",
    "optimizer",
    "recompute",
    "adapters",
)
_WORK: Final = ("batch.*", "dimensions", "pattern", "routing", "model.*")
_HARDWARE: Final = ("hardware.*", "topology")


class Refusal(NamedTuple):
    """Why a table explains nothing: a name for programs, a sentence for people, and what to do."""

    name: str
    what: str
    do: str


def of_side(letter: str, launches: Sequence[TracedLaunch], receipts: Mapping[str, Parsed]) -> Iterator[Refusal]:
    """What one side's traces cannot carry."""
    if not launches:
        what = f"the store has no time profile of {letter}"
        yield Refusal(
            "no-trace",
            what,
            f"record it with a trace: {RECORD} -- COMMAND, or submit the receipt with --evidence TRACE",
        )
    for launch in launches:
        where = f"{letter} ({launch.name})"
        for rank, profiles in launch.profiles.items():
            yield from _of_profiles(f"{where} {rank}", profiles)
            for profile in profiles:
                yield from _of_another_launch(where, profile, receipts[launch.receipt])


def _of_profiles(where: str, profiles: Sequence[Profile]) -> Iterator[Refusal]:
    for profile in profiles:
        if profile.broken:
            yield Refusal(
                "broken",
                f"{where}: the trace is broken ({profile.broken}): what it lacks cannot be told from what was faster",
                "trace again, and let the profiler finish",
            )
        if profile.lost:
            yield Refusal("too-large", f"{where}: {profile.lost:,} events were too many to keep", "trace fewer steps")
    if not any(profile.marks for profile in profiles):
        yield Refusal(
            "no-marks",
            f"{where}: the trace marks no steps (ProfilerStep, NVTX, StepTraceAnnotation)",
            f"call prof.step() in each step, or use {RECORD}",
        )
        return
    kept = [step for profile in profiles for step in profile.kept]
    if len(kept) < MIN_STEPS:
        aside = sum(len(profile.steps) for profile in profiles) - len(kept)
        why = f", {aside} set aside" if aside else ""
        what = f"{where}: {len(kept)} whole steps are traced{why}, and {MIN_STEPS} are the fewest that tell a step from its neighbors"
        yield Refusal("few-steps", what, f"trace more steps (the last one of a trace has no end): {RECORD} -- COMMAND")
        return
    launched = [step.launches for step in kept]
    if min(launched) < THIN * max(launched):
        yield Refusal(
            "thinned",
            f"{where}: a step has {min(launched):,} kernels and another {max(launched):,}: events are missing",
            "trace again; a profiler whose buffer is full drops events",
        )
    other = sum(profile.told[2] for profile in profiles) / (sum(sum(profile.told) for profile in profiles) or 1)
    if other > MAX_OTHER:
        yield Refusal(
            "unclassed",
            f"{where}: {other:.0%} of the working time has no class, by operator or name, and {MAX_OTHER:.0%} is the most",
            "trace with CPU activities, so that kernels have their operators",
        )


def _of_another_launch(where: str, profile: Profile, receipt: Parsed) -> Iterator[Refusal]:
    """What a profile says of where it was made, against the receipt that lists its file."""
    facts, stated = profile.facts, receipt.stated
    do = "submit each receipt with the trace of its own launch"
    pairs = (
        ("host", facts.get("host"), stated.get("run.host")),
        ("torch", facts.get("torch"), stated.get("wheels.torch.version", stated.get("wheels.torch"))),
        ("jaxlib", facts.get("jaxlib"), stated.get("wheels.jaxlib.version", stated.get("wheels.jaxlib"))),
        ("CUDA", facts.get("cuda"), stated.get("platform.cuda")),
        ("accelerator", facts.get("accelerator"), stated.get("hardware.accelerator")),
        ("number of processes", facts.get("world"), stated.get("hardware.chips") if facts.get("accelerator") else None),
    )
    for name, traced, other in pairs:
        if traced and other and not _alike(name, traced, other):
            yield Refusal("another-launch", f"{where}: the trace is of {name} {traced}, and the receipt of {other}", do)
    processes = {item for item in facts.get("processes") or () if item}
    listed = stated.get("run.processes")
    if processes and isinstance(listed, list | tuple) and listed and not processes & set(listed):
        yield Refusal("another-launch", f"{where}: the trace is of process {min(processes)}, none of the receipt's", do)
    run, between = receipt.receipt.run, facts.get("between")
    if between and run.finished is not None:
        began, ended = run.started.timestamp() - _SLACK, run.finished.timestamp() + _SLACK
        if between[1] < began or between[0] > ended:
            yield Refusal("another-launch", f"{where}: the trace was made at another time than the launch", do)


def _alike(name: str, traced: Any, stated: Any) -> bool:
    if name == "host":
        return str(traced).partition(".")[0] == str(stated).partition(".")[0]
    if name == "accelerator":
        from receipts.receipt.accelerators import find_accelerator

        own, other = find_accelerator(str(traced)), find_accelerator(str(stated))
        return (
            own == other
            if own and other
            else str(traced).lower() in str(stated).lower() or own is None or other is None
        )
    left, right = str(traced), str(stated)
    return (
        left == right
        or left.startswith(f"{right}+")
        or right.startswith(f"{left}+")
        or left.split("+")[0] == right.split("+")[0]
    )


def of_pair(a: Sequence[TracedLaunch], b: Sequence[TracedLaunch], axes: Sequence[str]) -> Iterator[Refusal]:
    """What keeps the traces of two sides from being laid side by side. Both have some."""
    if not common_ranks(a, b):
        ranks = [", ".join(sorted({rank for launch in side for rank in launch.profiles})) for side in (a, b)]
        yield Refusal(
            "ranks",
            f"A is traced on {ranks[0]} and B on {ranks[1]}: ranks of a job differ by their part of it",
            "trace the same rank of both",
        )
        return
    sides = [[profile for launch in side for own in launch.profiles.values() for profile in own] for side in (a, b)]
    for name, key in (("accelerator", "accelerator"), ("number of processes", "world")):
        own, other = ({str(item.facts[key]) for item in side if item.facts.get(key)} for side in sides)
        if own and other and own != other:
            yield Refusal(
                "hardware",
                f"the {name} of A is {', '.join(sorted(own))}, that of B {', '.join(sorted(other))}",
                "compare launches on the same hardware",
            )
    for patterns, name, what in ((_HARDWARE, "hardware", "hardware"), (_WORK, "work", "work of a step")):
        if changed := [axis for axis in axes if _matches(axis, patterns)]:
            yield Refusal(
                name,
                f"the {what} differs ({', '.join(changed)}): a line would compare unlike steps",
                "compare launches that differ in how the step runs, not in what it computes",
            )
    options = [{name: on for item in side for name, on in (item.facts.get("options") or {}).items()} for side in sides]
    differ = sorted(name for name in options[0].keys() & options[1].keys() if options[0][name] != options[1][name])
    producers = [{item.producer for item in side} for side in sides]
    if differ or producers[0] != producers[1]:
        what = ", ".join(differ) or " and ".join("/".join(sorted(item)) for item in producers)
        yield Refusal(
            "options",
            f"the sides were traced otherwise ({what}): what profiling costs would become a line",
            "trace both with the same profiler and options",
        )
    counts = [_launches(side) for side in sides]
    if min(counts) * MAX_LAUNCHES < max(counts) and not any(_matches(axis, _LAUNCHES) for axis in axes):
        what = f"a step launches {float(counts[0]):,.0f} times in A and {float(counts[1]):,.0f} times in B, and no axis that fuses or compiles changed"
        yield Refusal("launches", what, "look for what else differs: receipts compare A B -v")


def _launches(profiles: Sequence[Profile]) -> Fraction:
    kept = [step.launches for profile in profiles for step in profile.kept]
    return Fraction(sum(kept), len(kept)) if kept else Fraction(0)


def _matches(axis: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(axis.lower(), pattern) for pattern in patterns)


def of_residual(
    measured: tuple[Fraction, Fraction], traced: tuple[Fraction, Fraction], noise: Fraction
) -> Iterator[Refusal]:
    """Whether the traced steps are those that were measured; all in nanoseconds a step."""
    effect, change = measured[1] - measured[0], traced[1] - traced[0]
    for letter, own, seen in zip("AB", measured, traced, strict=True):
        if own and (seen - own) / own > MAX_SLOWER:
            yield Refusal(
                "overhead",
                f"{letter} ran {float((seen - own) / own):.0%} slower while it was traced: the trace shows another step",
                "trace without record_shapes, with_stack and profile_memory, and only what computes",
            )
    if effect and change and (effect > 0) != (change > 0):
        yield Refusal(
            "sign",
            f"the traced steps differ by {_ms(change)}, the measured ones by {_ms(effect)}: the traces show the opposite",
            "trace more steps, more launches, or both sides in turns",
        )
        return
    residual = effect - change
    if abs(residual) > max(MAX_RESIDUAL * abs(effect), 2 * noise):
        yield Refusal(
            "residual",
            f"{_ms(residual)} of the measured {_ms(effect)} is not in the traces",
            "trace more steps, or steps that are like the measured ones",
        )


def _ms(value: Fraction) -> str:
    return f"{float(value) / 1e6:+.3f} ms"
