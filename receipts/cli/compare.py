"""``receipts compare``, ``neighbours`` and ``noise``: what a difference means, and the noise that it is held against.

The two sides of a comparison come first: the options and words that name them, which other commands take as well, and
the receipts behind the words.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from receipts.base.errors import StoreError, UsageError, every
from receipts.cli import output
from receipts.cli.session import Answer, Session, is_file, one, parsed_file, several, verb

if TYPE_CHECKING:
    from receipts.api.comparison import Comparison
    from receipts.axes.lane import Grade
    from receipts.publish.page import Page
    from receipts.questions.gate import Required
    from receipts.questions.noise import LaneNoise
    from receipts.questions.sides import Join
    from receipts.stats.noise import SelfCheck
    from receipts.store import Store


METRIC = click.option(
    "--metric", "-m", default="tokens_per_second", show_default=True, help="The metric to compare, such as mfu."
)
WAIVE = click.option(
    "--waive", "-w", multiple=True, metavar='AXIS="REASON"', help="Do not count an axis that the lane allows to waive."
)
STUDY = click.option(
    "--study",
    metavar="NAME",
    help="A study of validators/studies.toml: its axes change together on purpose, and count as one.",
)
# As in `receipts.axes.lane`, which no --help may load.
GRADES = ("typed", "recorded", "evidenced", "kept")
GRADE = click.option(
    "--grade", type=click.Choice(GRADES), default=GRADES[0], help="Ask every receipt for at least this grade (R316)."
)
_OPTIONS = (
    click.argument("a", metavar="A", required=False),
    click.argument("b", nargs=-1, metavar="B…"),
    click.option("--cold", metavar="A", help="A, which compiled from a cold cache: compares compile_seconds."),
    click.option("--warm", metavar="B", help="B, the same configuration from a warm cache."),
    METRIC,
    WAIVE,
    STUDY,
    click.option("--also-a", multiple=True, metavar="A", help="Another launch of side A."),
    click.option("--also-b", multiple=True, metavar="B", help="Another launch of side B."),
    click.option("--witness", multiple=True, metavar="FILE|ID", help="A launch that shows the path of one of A or B."),
    GRADE,
    click.option(
        *("--only", "--no-replicates", "only"), is_flag=True, help="Only the launches that are named; add none."
    ),
    click.option("--pool", is_flag=True, help="Every stored launch of both configurations, whatever its day or label."),
)
WARM_CACHE = "warm-cache"  # the study in which the cache state may differ
_NAMES = ("metric", "waive", "study", "witness", "grade", "only", "pool")
Command = Callable[..., Any]


class ComparisonOptions(NamedTuple):
    """What a command line says of a comparison, as it was typed."""

    # No dataclass: every --help would load `dataclasses`.
    sides: tuple[tuple[str, ...], tuple[str, ...]]
    metric: str
    waive: tuple[str, ...]
    study: str | None
    witness: tuple[str, ...]
    only: bool = False
    pool: bool = False
    grade: Grade = "typed"

    @property
    def words(self) -> tuple[tuple[str, ...], ...]:
        """What names side A, side B and their witnesses."""
        return (*self.sides, self.witness)

    @property
    def join(self) -> Join:
        """Which stored launches join those that are named."""
        return "only" if self.only else "all" if self.pool else "session"

    @property
    def all_files(self) -> bool:
        """Whether every word names a file, so that no store has to be asked."""
        return all(is_file(word) for side in self.words for word in side)


def of_two_sides(command: Command) -> Command:
    """Give a command the arguments and options that say what is compared; it takes them as one ``options``."""

    @wraps(command)
    def call(
        *given: Any,
        a: str | None,
        b: tuple[str, ...],
        cold: str | None,
        warm: str | None,
        also_a: tuple[str, ...],
        also_b: tuple[str, ...],
        **rest: Any,
    ) -> Any:
        if cold is not None or warm is not None:
            if cold is None or warm is None or a is not None:
                raise UsageError("a cold cache is compared with a warm one: --cold A --warm B, and no other side")
            a, b = cold, (warm,)
            rest.update(metric="compile_seconds", study=WARM_CACHE)
        if a is None or not b:
            raise click.MissingParameter(param_hint="'B'" if a else "'A'", param_type="argument")
        sides = (*several(a), *also_a), (*(word for item in b for word in several(item)), *also_b)
        if rest["only"] and rest["pool"]:
            raise UsageError("--only adds no launch and --pool adds all: give one of them")
        options = ComparisonOptions(sides, **{name: rest.pop(name) for name in _NAMES})
        return command(*given, options=options, **rest)

    for option in reversed(_OPTIONS):
        call = option(call)
    return call


def gather(session: Session, options: ComparisonOptions, *, stored: bool) -> Comparison:
    """The receipts of both sides, compared.

    With ``stored`` a store is asked: for what the words name, the launches of its session, the noise floor. A launch
    that is named by a file, id or pin represents its side; those of a label or pattern as far as they count. Raises
    what `compared` does, and UsageError for a ``--witness`` that witnesses none of them.
    """
    from receipts.api.comparison import compared

    read = iter(every(parsed_file, (word for side in options.words for word in side if is_file(word))))
    a, b, witnesses = ([next(read) if is_file(word) else word for word in side] for side in options.words)
    looked_up = [word for side in options.sides for word in side]
    return compared(
        session.opened(looked_up=looked_up) if stored else None,
        session.rulebook,
        a,
        b,
        metric=options.metric,
        witnesses=witnesses,
        waivers=waivers(options.waive),
        study=options.study,
        grade=options.grade,
        join=options.join,
        beside=None if stored or len(looked_up) == 2 else _existing(session),
    )


def _existing(session: Session) -> Store | None:
    """The store, if there is one: files that somebody chose are counted beside it, and need none."""
    try:
        return session.store if session.server is None else None
    except StoreError:
        return None


def waivers(words: tuple[str, ...]) -> dict[str, str]:
    """``--waive axis="reason"`` as a map. Raises UsageError for one without a reason."""
    reasons = {}
    for word in words:
        axis, separator, reason = word.partition("=")
        if not separator or not reason.strip():
            raise UsageError(f'--waive {word}: write --waive {axis or "AXIS"}="the reason why it cannot matter"')
        reasons[axis.strip()] = reason.strip().strip("\"'")
    return reasons


def _requirement(_context: click.Context, _option: click.Parameter, text: str | None) -> Required | None:
    from receipts.questions.gate import read_requirement

    wanted = read_requirement(text) if text is not None else None
    if text is not None and wanted is None:
        raise click.BadParameter(f"{text!r} is none of faster, not-slower, not-slower=2%, equivalent")
    return wanted


@verb("compare")
@of_two_sides
@click.option(
    "--require",
    metavar="faster|not-slower[=SHARE]|equivalent",
    callback=_requirement,
    help="A gate: exit 0 if B is that, 1 if it is not, 3 if it is not proven. not-slower=2% allows 2 %.",
)
@click.option(
    "--standing",
    type=click.Choice(["attributed", "any"]),
    default="attributed",
    show_default=True,
    help="With --require: any also takes an effect whose cause is not shown.",
)
@click.option("--junit", metavar="FILE", help="With --require: also write the answer as a JUnit report.")
@click.option("--record", is_flag=True, help="Store the verdict.")
@click.option(
    "--format", "form", type=click.Choice(["text", "line", "markdown", "json"]), default="text", show_default=True
)
@click.option("--verbose", "-v", "opened", is_flag=True, help="Show all: settings that are held, warnings, memory.")
def compare(
    session: Session,
    options: ComparisonOptions,
    require: Required | None,
    standing: str,
    junit: str | None,
    record: bool,
    form: str,
    opened: bool,
) -> Answer | int:
    """Compare B against A: two receipts, or two groups of launches.

    A and B are files, ids or unique id prefixes, labels, label=GLOB, or @pins; ID,ID names several launches of a side.
    Two files need no store; with a store, launches of the session and witnesses are added.

    Examples:
      receipts compare before.json after.json
      receipts compare 3f9c 81aa --metric step_seconds
      receipts compare 'label=base*' 'label=cand*'
      receipts compare @golden 81aa --waive flags.NCCL_ALGO="pinned by the site"
      receipts compare 3f9c 81aa --study fixed-accumulation --format markdown
      receipts compare a.json b.json --witness a-profile.json --witness b-profile.json
      receipts compare @golden 'label=nightly*' --require not-slower
      receipts compare --cold 3f9c --warm 81aa
      receipts compare @golden pr-1.json pr-2.json pr-3.json --require not-slower=1% --junit gate.xml

    The first line is the answer; the last one holds the three answers behind it: is it one experiment? did it run on
    the intended path? what is the effect? Option -v opens what is folded. Findings: E rejects, I leaves a question
    open, W is a warning; receipts rules CODE explains one. Exit codes: 0 accepted, 1 rejected, 2 wrong call or input, 3
    inconclusive.
    """
    if junit is not None and require is None:
        raise UsageError("--junit reports a gate; add --require")
    stored = record or not options.all_files
    if stored and session.team is not None:
        given = {"--record": record, "--require": require, "--junit": junit, "--grade": options.grade != "typed"}
        session.team.refuse(given)
        return session.team.compare(options, "json" if session.as_json else form, opened=opened)
    compared = gather(session, options, stored=stored)
    verdict = compared.verdict
    if record:
        session.store.record(compared.proved)
    session.as_json |= form == "json"
    notes = _payback(compared, session, verdict.metric) if form == "text" else ()
    answer = Answer(compared.to_json, lambda: _shown(compared, form), verdict.exit_code, notes, opened)
    if require is None:
        return answer
    from receipts.questions.gate import required

    gate = required(verdict, require.kind, require.margin, any_standing=standing == "any")
    margin = f"={100 * require.margin:g}%" if require.margin is not None else ""
    output.note(f"--require {require.kind}{margin}: {gate.why}")
    if junit is not None:
        from receipts.base import files
        from receipts.publish.junit import gate_report

        files.write(junit, gate_report(verdict, f"{require.kind}{margin}", gate.answer, gate.why), over=True)
    return answer._replace(code=gate.exit_code)


def _payback(compared: Comparison, session: Session, metric: str) -> tuple[str, ...]:
    """What a cold cache costs beside a warm one; with ``--metric compile_seconds`` any longer compile."""
    from receipts.questions.regime import payback

    a, b = (session.rulebook.launch(side[0]) for side in (compared.sides.a, compared.sides.b))
    answer = payback(a, b)
    return (str(answer),) if answer is not None and (answer.of_caches or metric == "compile_seconds") else ()


def _shown(compared: Comparison, form: str) -> Page | str:
    """The comparison as a page, or in one line, or as Markdown."""
    verdict = compared.verdict
    if form == "line":
        return f"{verdict.label_a} → {verdict.label_b}: {verdict.last_line()}"
    if form == "markdown":
        from receipts.publish.markdown import markdown

        return markdown(compared.page())
    return compared.page()


NOT_INDEXED = "the index does not hold every receipt of this lane as it is read; run: receipts db reindex"


@verb("neighbours")
@click.argument("receipt", metavar="ID|FILE")
@click.option("--axis", "-a", metavar="AXIS", help="Only receipts that differ in this axis; see: receipts axes.")
@METRIC
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="Show at most this many configurations per axis, the newest.",
)
def neighbours(session: Session, receipt: str, axis: str | None, metric: str, limit: int) -> Answer:
    """Show every stored receipt that differs in one axis, with effect and verdict.

    Examples:
      receipts neighbours 3f9c
      receipts neighbours @golden --axis parallelism.tensor
      receipts neighbours run.json --metric step_seconds --limit 50
      receipts neighbours @golden --json

    Each is compared in its session and with its witnesses, as receipts compare does; the best of an axis comes first.
    Exit codes: 0 neighbours were found, 2 wrong call or input, 3 none can be compared.
    """
    from receipts.api.lists import neighbours_as_data
    from receipts.axes import axis_named
    from receipts.publish.neighbours import page
    from receipts.questions.neighbours import neighbours

    if axis is not None:
        axis = axis_named(axis)
    of, advance = one(session.store, receipt), session.progress.at
    answer = neighbours(session.store, of, session.rulebook, metric=metric, axis=axis, limit=limit, progress=advance)
    notes = () if answer.indexed else (NOT_INDEXED,)
    return Answer(lambda: neighbours_as_data(answer), lambda: page(answer, axis), answer.exit_code, notes)


@verb("noise")
@click.option("--lane", metavar="LANE", help="One lane only.")
def noise(session: Session, lane: str | None) -> Answer:
    """Show how much identical launches vary (the noise floor), and check the statistics on them.

    Examples:
      receipts noise
      receipts noise --lane nvidia-megatron --json

    σ is the standard deviation of a launch's log step time, pooled over launches of one configuration. δ is the
    smallest effect that matters: people choose it, and noise does not change it. ~ means that too little is stored.
    Exit codes: 0 a floor was measured, 1 the self-check failed, 2 wrong call, 3 nothing measured yet.
    """
    from receipts.publish.noise import page
    from receipts.questions.noise import survey
    from receipts.stats.noise import combined_checks

    lanes = session.rulebook.lanes
    if lane is not None:
        lanes.get(lane)
    floors = survey(session.store, lanes, lane)
    check = combined_checks([item.check for item in floors])
    alarm = check.alarm or any(item.check.alarm for item in floors)
    return Answer(
        lambda: {"classes": [_noise_data(item) for item in floors], "self_check": _self_check(check)},
        lambda: page(floors, check),
        1 if alarm else 0 if any(item.floor.sigma is not None for item in floors) else 3,
    )


def _noise_data(item: LaneNoise) -> dict[str, Any]:
    """One class as JSON: shape and floor unfolded, what the data do not carry as null."""
    from receipts.publish.noise import missing

    return {
        **asdict(item.shape),
        "stored": item.stored,
        **asdict(item.floor),
        "declared_sigma": item.declared,
        "delta": item.delta,
        "delta_source": item.delta_source,
        "self_check": _self_check(item.check),
        "missing": missing(item),
    }


def _self_check(check: SelfCheck) -> dict[str, Any]:
    return {**check._asdict(), "share": check.share}
