"""The two sides of a comparison: the words that name them on a command line, and the receipts behind the words."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from receipts.cli.session import Session, fetch, is_file, named, parsed_file, several, witnessing
from receipts.errors import UsageError

if TYPE_CHECKING:
    from receipts.compare import Request
    from receipts.facts import Facts
    from receipts.receipt import Parsed
    from receipts.store import Decision

    Gathered = tuple[list[Parsed], list[Parsed], Facts, list[Decision]]

METRIC = click.option("--metric", "-m", default="tokens_per_second", show_default=True, help="What to compare on.")
WAIVE = click.option(
    "--waive", "-w", multiple=True, metavar='AXIS="REASON"', help="Do not count an axis that the lane allows to waive."
)
STUDY = click.option(
    "--study",
    metavar="NAME",
    help="A study of validators/studies.toml: its axes move together on purpose, and count as one.",
)
_OPTIONS = (
    click.argument("a", metavar="A"),
    click.argument("b", metavar="B"),
    METRIC,
    WAIVE,
    STUDY,
    click.option("--also-a", multiple=True, metavar="A", help="A further launch of side A."),
    click.option("--also-b", multiple=True, metavar="B", help="A further launch of side B."),
    click.option("--witness", multiple=True, metavar="FILE|ID", help="A launch that shows the path of one of A or B."),
    click.option("--no-replicates", is_flag=True, help="Do not add the store's equal launches to each side."),
)
_NAMES = ("metric", "waive", "study", "witness", "no_replicates")
Command = Callable[..., Any]


class Asked:
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

    def request(self, facts: Facts) -> Request:
        """The question to `receipts.compare`. Raises UsageError for a waiver without a reason."""
        from receipts.compare import Request

        return Request(metric=self.metric, waivers=waivers(self.waive), study=self.study, facts=facts)


def of_two_sides(command: Command) -> Command:
    """Give a command the arguments and options that say what is compared; it takes them as one ``asked``."""

    @wraps(command)
    def call(*given: Any, a: str, b: str, also_a: tuple[str, ...], also_b: tuple[str, ...], **options: Any) -> Any:
        sides = (*several(a), *also_a), (*several(b), *also_b)
        asked = Asked(sides, **{name: options.pop(name) for name in _NAMES})
        return command(*given, asked=asked, **options)

    for option in reversed(_OPTIONS):
        call = option(call)
    return call


def gather(session: Session, asked: Asked, *, stored: bool) -> Gathered:
    """The receipts of both sides, the facts about them, and what was decided on them.

    With ``stored`` a store is asked: for what the words name, for replicates, for its noise floor. Raises what `fetch`
    does, and UsageError for a ``--witness`` that witnesses none of them.
    """
    witnesses = [item for group in fetch(session, asked.witness) for item in group] if asked.witness else []
    if stored:
        left, right, facts, decided = _from_store(session, asked)
        facts = facts.beside([*left, *right, *witnesses])
    else:
        from receipts.facts import Facts

        left, right = ([item for group in fetch(session, side) for item in group] for side in asked.sides)
        facts, decided = Facts.among([*left, *right, *witnesses]), []
    witnessing(witnesses, [*left, *right])
    return left, right, facts, decided


def _from_store(session: Session, asked: Asked) -> Gathered:
    from receipts.noise import noise_floor, wants_floor, with_floor
    from receipts.replicates import with_replicates

    with session.open_store(sought=[word for side in asked.sides for word in side]) as store:
        groups = [
            [item for word in side for item in ([parsed_file(word)] if is_file(word) else named(store, word))]
            for side in asked.sides
        ]
        lane = session.rulebook.lanes.of(groups[0][0].receipt.run.lane)
        if asked.replicates:
            groups = [with_replicates(store, group, lane, other) for group, other in (groups, groups[::-1])]
        facts = store.facts([*groups[0], *groups[1]])
        if wants_floor(groups, asked.metric):
            facts = with_floor(facts, noise_floor(store, groups[0][0], lane))
        decided = store.decisions([item.id for group in groups for item in group])
        return groups[0], groups[1], facts, decided


def waivers(words: tuple[str, ...]) -> dict[str, str]:
    """``--waive axis="reason"`` as a map. Raises UsageError for one without a reason."""
    found = {}
    for word in words:
        axis, separator, reason = word.partition("=")
        if not separator or not reason.strip():
            raise UsageError(f'--waive {word}: write --waive {axis or "AXIS"}="the reason why it cannot matter"')
        found[axis.strip()] = reason.strip().strip("\"'")
    return found
