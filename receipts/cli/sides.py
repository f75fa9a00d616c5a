"""The two sides of a comparison: the words that name them on a command line, and the receipts behind the words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from receipts.base.errors import UsageError
from receipts.cli.session import Session, fetch, is_file, named, parsed_file, several, witnessing

if TYPE_CHECKING:
    from receipts.judging.verdict import Comparison
    from receipts.questions.comparisons import Sides
    from receipts.receipt import Parsed
    from receipts.store import Decision, Store

METRIC = click.option("--metric", "-m", default="tokens_per_second", show_default=True, help="The metric to compare.")
WAIVE = click.option(
    "--waive", "-w", multiple=True, metavar='AXIS="REASON"', help="Do not count an axis that the lane allows to waive."
)
STUDY = click.option(
    "--study",
    metavar="NAME",
    help="A study of validators/studies.toml: its axes change together on purpose, and count as one.",
)
_OPTIONS = (
    click.argument("a", metavar="A"),
    click.argument("b", metavar="B"),
    METRIC,
    WAIVE,
    STUDY,
    click.option("--also-a", multiple=True, metavar="A", help="Another launch of side A."),
    click.option("--also-b", multiple=True, metavar="B", help="Another launch of side B."),
    click.option("--witness", multiple=True, metavar="FILE|ID", help="A launch that shows the path of one of A or B."),
    click.option("--no-replicates", is_flag=True, help="Do not add the store's replicates to each side."),
)
_NAMES = ("metric", "waive", "study", "witness", "no_replicates")
Command = Callable[..., Any]


class ComparisonOptions:
    """What a command line says of a comparison, as it was typed."""

    # No dataclass: every --help would load `dataclasses`.

    def __init__(
        self,
        sides: tuple[tuple[str, ...], tuple[str, ...]],
        *,
        metric: str,
        waive: tuple[str, ...],
        study: str | None,
        witness: tuple[str, ...],
        no_replicates: bool,
    ) -> None:
        self.sides = sides
        self.metric = metric
        self.waive = waive
        self.study = study
        self.witness = witness
        self.replicates = not no_replicates

    def __repr__(self) -> str:
        return f"Asked({self.sides!r}, metric={self.metric!r}, study={self.study!r})"

    @property
    def all_files(self) -> bool:
        """Whether every word names a file, so that no store has to be asked."""
        return all(is_file(word) for side in (*self.sides, self.witness) for word in side)


def of_two_sides(command: Command) -> Command:
    """Give a command the arguments and options that say what is compared; it takes them as one ``asked``."""

    @wraps(command)
    def call(*given: Any, a: str, b: str, also_a: tuple[str, ...], also_b: tuple[str, ...], **options: Any) -> Any:
        sides = (*several(a), *also_a), (*several(b), *also_b)
        asked = ComparisonOptions(sides, **{name: options.pop(name) for name in _NAMES})
        return command(*given, asked=asked, **options)

    for option in reversed(_OPTIONS):
        call = option(call)
    return call


class GatheredSides(NamedTuple):
    """Both sides as far as they count, the verdict on them, and what was decided on their receipts."""

    sides: Sides
    verdict: Comparison
    decided: list[Decision]


def gather(session: Session, asked: ComparisonOptions, *, stored: bool, prove: bool = False) -> GatheredSides:
    """The receipts of both sides, compared.

    With ``stored`` a store is asked: for what the words name, for replicates, for its noise floor. A launch that is
    named by a file, id or pin stands for its side; those of a label or pattern as far as they count. Raises what
    `fetch` does, and UsageError for a ``--witness`` that witnesses none of them. With ``prove`` errors carry proofs.
    """
    witnesses = [item for group in fetch(session, asked.witness) for item in group] if asked.witness else []
    if not stored:
        groups = [[item for group in fetch(session, side) for item in group] for side in asked.sides]
        return _compared(None, session, asked, groups, None, witnesses, prove)
    from receipts.questions.comparisons import names_one

    with session.open_store(looked_up=[word for side in asked.sides for word in side]) as store:
        matches = [
            [(word, [parsed_file(word)] if is_file(word) else named(store, word)) for word in side]
            for side in asked.sides
        ]
        every = [pair for side in matches for pair in side]
        own = {item.id for word, group in every if is_file(word) or names_one(word, group) for item in group}
        return _compared(
            store, session, asked, [[one for _, g in side for one in g] for side in matches], own, witnesses, prove
        )


def _compared(
    store: Store | None,
    session: Session,
    asked: ComparisonOptions,
    groups: Sequence[list[Parsed]],
    own: set[str] | None,
    witnesses: Sequence[Parsed],
    prove: bool,
) -> GatheredSides:
    from receipts.questions.comparisons import Comparisons

    a, b = groups
    comparisons = Comparisons(store, session.rulebook, witnesses=witnesses)
    pools = (comparisons.pool(a, b), comparisons.pool(b, a)) if asked.replicates else (a, b)
    sides = comparisons.sides(*pools, asked.metric, own)
    witnessing(witnesses, [*sides.a, *sides.b])
    verdict = comparisons.verdict(sides, waivers=waivers(asked.waive), study=asked.study, prove=prove)
    decided = store.published.decisions([item.id for item in (*sides.a, *sides.b)]) if store is not None else []
    return GatheredSides(sides, verdict, decided)


def waivers(words: tuple[str, ...]) -> dict[str, str]:
    """``--waive axis="reason"`` as a map. Raises UsageError for one without a reason."""
    options = {}
    for word in words:
        axis, separator, reason = word.partition("=")
        if not separator or not reason.strip():
            raise UsageError(f'--waive {word}: write --waive {axis or "AXIS"}="the reason why it cannot matter"')
        options[axis.strip()] = reason.strip().strip("\"'")
    return options
