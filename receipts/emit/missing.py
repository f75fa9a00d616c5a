"""What the lane asks for and the run has not stated, with the words that state it."""

from __future__ import annotations

from receipts.emit.contract import contract, near

TYPE_CHECKING = False
if TYPE_CHECKING:
    from receipts.emit.facts import StatedFacts

CONTEXT = "the base configuration by name; what two receipts of one context leave unstated is held by it"
# How to state what is more than a leaf, by the beginning of its path.
HOW = (
    ("measurement.loss", "rec.loss(value) at the steps where the job reads it anyhow"),
    ("measurement.gradient_norm", "rec.gradient_norm(value)"),
    ("measurement.window", "Recorder(…, warmup=STEPS), or rec.window(start, stop)"),
    ("measurement.step_durations_seconds", "with rec.step(tokens=…): around each step"),
    ("measurement.tokens_per_step", "with rec.step(tokens=…)"),
    ("measurement.synchronisation", 'Recorder(…, synchronisation="loss read" | "device" | "none")'),
    ("memory.chips", 'rec.memory("steady", chip=0, peak_bytes=…), or a framework that a probe knows'),
    ("path.intended", "rec.path(NAME=…)"),
    (
        "path.witnessed",
        "rec.profile(steps=2), and receipts submit run.json --evidence FILE… reads it; "
        "rec.observe(NAME=…, kind=…, level=…, uri=…) states it",
    ),
    ("wheels", 'rec.state("wheels.NAME", version)'),
    ("evidence", "receipts submit run.json --evidence FILE… with the log, trace or compiled program"),
    ("run.context", 'Recorder(…, context="NAME")'),
    ("run.exit_code", "end the run: leave the with block, or call rec.finish()"),
    ("run.finished", "end the run: leave the with block, or call rec.finish()"),
)
_LEVELS = ("none", "intent", "backend", "kernels")


class UnstatedFact:
    """One fact that is not stated: its path (``a|b`` for either), who asks for it, and how to state it."""

    __slots__ = ("how", "path", "why")

    def __init__(self, path: str, why: str, how: str) -> None:
        self.path = path
        self.why = why
        self.how = how

    def __str__(self) -> str:
        return f"{self.path} ({self.why}): {self.how}"

    def __repr__(self) -> str:
        return f"UnstatedFact({self.path!r}, {self.why!r}, {self.how!r})"


def missing(facts: StatedFacts, lane: str) -> tuple[UnstatedFact, ...]:
    """What the lane's rules would leave open; for a lane that is not shipped, what every lane asks."""
    lanes = contract().lanes
    contracted = lanes.get(lane) or lanes["unlisted"]
    unstated = []
    if not facts.states("run.context"):
        unstated.append(UnstatedFact("run.context", "comparisons", f"{how('run.context')}: {CONTEXT}"))
    usual = {need: rule for need, rule in contract().needs.items() if need not in contracted["without"]}
    needs, less = usual | contracted["needs"], set[str]()
    for condition, change in contracted["where"].items():
        path, _, value = condition.partition("=")
        if str(facts.get(path)) == value:
            less.update(change["less"])
            needs |= change["also"]
    needs = {need: rule for need, rule in needs.items() if need not in less}
    for need, rule in needs.items():
        if not any(facts.states(option) or _installed(facts, option) for option in need.split("|")):
            unstated.append(UnstatedFact(need, rule, how(need.partition("|")[0])))
    code = contract().evidence_rule
    for name in contracted["witness"]:
        path = f"path.witnessed.{name}"
        if not facts.states(path) and path not in needs and path not in less:
            unstated.append(UnstatedFact(path, code, how(path)))
    best = max((_level(row) for row in facts.evidence), default=0)
    if best < _LEVELS.index(contracted["evidence"]):
        unstated.append(UnstatedFact("evidence", code, f"{how('evidence')}; level {contracted['evidence']} is needed"))
    return tuple(unstated)


def _installed(facts: StatedFacts, path: str) -> bool:
    """Whether a wheel is listed under another spelling of its name: `torch_xla` is `torch-xla`."""
    head, _, name = path.partition(".")
    plain = name.replace("-", "_").replace(".", "_").lower()
    return head == "wheels" and any(
        entry.replace("-", "_").replace(".", "_").lower() == plain for entry in facts.maps.get(head, ())
    )


def summary(items: tuple[UnstatedFact, ...]) -> list[str]:
    """The same in a few lines: what one kind of call states is grouped."""
    groups: dict[str, list[str]] = {}
    for item in items:
        plain = item.how.startswith("rec.state(") and not item.path.startswith("wheels.")
        witnessed = item.path.startswith("path.witnessed.")
        call = "rec.state(PATH, VALUE)" if plain else how("path.witnessed.") if witnessed else item.how
        groups.setdefault(call.replace("(=…", "(NAME=…"), []).append(item.path)
    return [f"{', '.join(paths)}: {call}" for call, paths in groups.items()]


def how(path: str) -> str:
    """The call that states a path."""
    name = path.rpartition(".")[2]
    for beginning, call in HOW:
        if path.startswith(beginning):
            return call.replace("NAME", name)
    return f'rec.state("{path}", …)'


def unknown_lane(lane: str) -> str:
    """What to say of a lane that does not ship; empty where it does."""
    lanes = contract().lanes
    if lane in lanes:
        return ""
    close = near(lane, list(lanes))
    close = close if "did you mean" in close else ""
    return f"there is no shipped lane {lane!r}{close}; without a lane file of yours it is judged as unlisted"


def _level(row: dict[str, object]) -> int:
    level = str(row.get("level", "none"))
    return _LEVELS.index(level) if row.get("sha256") and level in _LEVELS else 0
