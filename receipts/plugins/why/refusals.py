"""When a table must not explain: each refusal with what was met and what to do next.

A table adds up whatever the traces are: of a cut trace, of rank 0 against rank 1, of a launch against itself. What
makes it worth something is what is refused here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from fractions import Fraction
from typing import Any, Final, NamedTuple

from receipts.plugins.why.classes import GRAPH
from receipts.plugins.why.difference import TracedLaunch, common_ranks
from receipts.plugins.why.profile import Profile
from receipts.publish.text import words
from receipts.receipt import Parsed
from receipts.receipt.accelerators import find_accelerator

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
    *("posture", "*compile*", "cuda_graphs", "*cuda*graph*", "*fus*", "path.*", "*foreach*", "optimizer", "recompute"),
    *("adapters", "precision", "*attention*", "*attn*"),
)
_WORK: Final = ("batch.*", "dimensions", "pattern", "routing", "model.*")
_HARDWARE: Final = ("hardware.*", "topology")
MINUS: Final = "\u2212"
say = words("why")


class Refusal(NamedTuple):
    """Why a table explains nothing: a name for programs, a sentence for people, and what to do."""

    name: str
    what: str
    do: str


# Sentences whose advice is not that of their refusal.
_ADVISED: Final = ("graphs",)


def refusal(name: str, sentence: str = "", /, **values: Any) -> Refusal:
    """A refusal by its name; its ``sentence``, if that is not called as it is."""
    advice = f"{sentence if sentence in _ADVISED else name}_do"
    return Refusal(name.replace("_", "-"), say(sentence or name, **values), say(advice, record=RECORD))


def of_side(
    letter: str, launches: Sequence[TracedLaunch], receipts: Mapping[str, Parsed], *, span: bool = False
) -> Iterator[Refusal]:
    """What one side's traces cannot carry. With ``span`` a trace needs no marked steps."""
    if not launches:
        yield refusal("no_trace", side=letter)
    for launch in launches:
        where = f"{letter} ({launch.name})"
        for rank, profiles in launch.profiles.items():
            yield from _of_profiles(f"{where} {rank}", profiles, span=span)
            for profile in profiles:
                yield from _of_another_launch(where, profile, receipts[launch.receipt])


def _of_profiles(where: str, profiles: Sequence[Profile], *, span: bool) -> Iterator[Refusal]:
    for profile in profiles:
        if profile.broken:
            yield refusal("broken", where=where, why=profile.broken)
        if profile.lost:
            yield refusal("too_large", where=where, count=profile.lost)
    marks, kept = [profile.marks for profile in profiles], [step for profile in profiles for step in profile.kept]
    if not any(marks) and not span:
        yield refusal("no_marks", where=where)
        return
    if any(marks) and span:
        yield refusal("marks", where=where, marks=max(marks))
    if max(marks) > MIN_STEPS and not any(profile.steps for profile in profiles):
        yield refusal("few_steps", "unplaced", where=where, marks=max(marks))
        return
    if len(kept) < (1 if span else MIN_STEPS):
        count = sum(len(profile.steps) for profile in profiles) - len(kept)
        aside = say("aside", count=count) if count else ""
        yield refusal("few_steps", where=where, kept=len(kept), aside=aside, least=MIN_STEPS)
        return
    launched = [step.launches for step in kept]
    if min(launched) < THIN * max(launched):
        yield refusal("thinned", where=where, least=min(launched), most=max(launched))
    other = sum(profile.told[2] for profile in profiles) / (sum(sum(profile.told) for profile in profiles) or 1)
    if other > MAX_OTHER:
        graphs = sum(
            step.times[profile.classes.index(GRAPH)]
            for profile in profiles
            for step in profile.kept
            if GRAPH in profile.classes
        )
        rows = "graphs" if graphs * 2 > sum(profile.told[2] for profile in profiles) else ""
        yield refusal("unclassed", rows, where=where, share=other, most=MAX_OTHER)


def _of_another_launch(where: str, profile: Profile, receipt: Parsed) -> Iterator[Refusal]:
    """What a profile says of where it was made, against the receipt that lists its file."""
    facts, stated, run = profile.facts, receipt.stated, receipt.receipt.run
    pairs = (
        ("host", facts.get("host"), run.host),
        ("torch", facts.get("torch"), stated.get("wheels.torch.version")),
        ("jaxlib", facts.get("jaxlib"), stated.get("wheels.jaxlib.version")),
        ("CUDA", facts.get("cuda"), stated.get("platform.cuda")),
        ("accelerator", facts.get("accelerator"), stated.get("hardware.accelerator")),
        ("a job of", facts.get("world"), stated.get("hardware.chips") if facts.get("accelerator") else None),
    )
    for name, traced, other in pairs:
        if traced and other and not _alike(name, str(traced), str(other)):
            yield refusal("another_launch", where=where, name=name, traced=traced, stated=other)
    processes, listed = set(facts.get("processes") or ()), stated.get("run.processes")
    if processes and isinstance(listed, list | tuple) and listed and not processes & set(listed):
        yield refusal("another_launch", "another_process", where=where, process=min(processes))
    between = facts.get("between")
    if between and run.finished is not None:
        began, ended = run.started.timestamp() - _SLACK, run.finished.timestamp() + _SLACK
        if between[1] < began or between[0] > ended:
            yield refusal("another_launch", "another_time", where=where)


def _alike(name: str, traced: str, stated: str) -> bool:
    if name == "host":
        return traced.partition(".")[0] == stated.partition(".")[0]
    if name == "accelerator":
        own, other = find_accelerator(traced), find_accelerator(stated)
        return own is None or other is None or own == other
    # A local version (`+cu128`) is not always in both.
    return traced.partition("+")[0] == stated.partition("+")[0]


def of_pair(a: Sequence[TracedLaunch], b: Sequence[TracedLaunch], axes: Sequence[str]) -> Iterator[Refusal]:
    """What keeps the traces of two sides from being laid side by side. Both have some."""
    if not common_ranks(a, b):
        ranks = [", ".join(sorted({rank for launch in side for rank in launch.profiles})) for side in (a, b)]
        yield refusal("ranks", a=ranks[0], b=ranks[1])
        return
    sides = [[profile for launch in side for own in launch.profiles.values() for profile in own] for side in (a, b)]
    for name, key in (("accelerator", "accelerator"), ("number of processes", "world")):
        own, other = ({str(item.facts[key]) for item in side if item.facts.get(key)} for side in sides)
        if own and other and own != other:
            yield refusal("hardware", name=name, a=", ".join(sorted(own)), b=", ".join(sorted(other)))
    for patterns, what in ((_HARDWARE, "hardware"), (_WORK, "work of a step")):
        if changed := [axis for axis in axes if _matches(axis, patterns)]:
            yield refusal("work", what=what, axes=", ".join(changed))
    options = [{name: on for item in side for name, on in (item.facts.get("options") or {}).items()} for side in sides]
    differ = sorted(name for name in options[0].keys() & options[1].keys() if options[0][name] != options[1][name])
    producers = [{item.producer for item in side} for side in sides]
    if differ or producers[0] != producers[1]:
        names = ", ".join(differ) or " and ".join("/".join(sorted(item)) for item in producers)
        yield refusal("options", what=names)
    counts = [_launches(side) for side in sides]
    if min(counts) * MAX_LAUNCHES < max(counts) and not any(_matches(axis, _LAUNCHES) for axis in axes):
        yield refusal("launches", a=float(counts[0]), b=float(counts[1]))


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
            yield refusal("overhead", side=letter, share=float((seen - own) / own))
    if effect and change and (effect > 0) != (change > 0):
        yield refusal("sign", traced=_ms(change), measured=_ms(effect))
    elif abs(effect - change) > max(MAX_RESIDUAL * abs(effect), 2 * noise):
        yield refusal("residual", residual=_ms(effect - change), measured=_ms(effect))


def _ms(value: Fraction) -> str:
    return f"{float(value) / 1e6:+.3f} ms".replace("-", MINUS)
