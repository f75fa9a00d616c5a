"""The two sides of a comparison: the words that name them on a command line, and the receipts behind the words."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from receipts.base.errors import StoreError, UsageError, every
from receipts.cli.session import Session, is_file, parsed_file, several

if TYPE_CHECKING:
    from receipts.api.comparison import Comparison
    from receipts.axes.lane import Grade
    from receipts.questions.sides import Join
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
