"""What rules, comparisons and preflights ask of a store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from receipts.axes.configuration import Configuration
from receipts.axes.settings import LaunchSettings
from receipts.axes.signature import Signature
from receipts.judging.facts import EarlierFailure, Facts
from receipts.receipt import Parsed
from receipts.store.database import Database
from receipts.store.entries import Entry
from receipts.store.kept import kept_files
from receipts.store.query import facts as facts_module
from receipts.store.query import neighbours as near
from receipts.store.query import replicates
from receipts.store.query import shapes as shapes_module
from receipts.store.query import signatures as signatures_module
from receipts.store.query.facts import SettingsOf
from receipts.store.query.neighbours import Neighbour
from receipts.store.query.shapes import ShapeOutcomes
from receipts.store.query.signatures import Known

if TYPE_CHECKING:
    from receipts.store.query.lines import Line
    from receipts.store.query.mixtures import Between
    from receipts.store.query.recurring import Alike

# What one command alone asks is imported where it is asked: every command opens a store.


class Queries:
    """What rules, comparisons and preflights ask of a store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def __repr__(self) -> str:
        return f"Queries({self._database!r})"

    def facts(self, group: Parsed | Sequence[Parsed]) -> Facts:
        """Facts for judging receipts, stored or not."""
        with self._database.reading() as connection:
            every = [group] if isinstance(group, Parsed) else group
            return self._with_kept(facts_module.facts(connection, every, self._database.once), every)

    def facts_of_new(self, group: Sequence[Parsed], settings: SettingsOf = LaunchSettings) -> list[Facts]:
        """Facts for judging receipts that are about to be submitted, one for each; fewer questions than `facts`."""
        with self._database.at_once() as connection:
            known = facts_module.facts_of_new(connection, group, self._database.actor(connection), settings)
        return [self._with_kept(item, [one]) for item, one in zip(known, group, strict=True)]

    def _with_kept(self, facts: Facts, group: Sequence[Parsed]) -> Facts:
        """The facts, with which of the listed files the store keeps; asked only for what a reader read."""
        listed = {entry.sha256 for item in group for entry in item.receipt.evidence or () if entry.read}
        kept = kept_files(self._database.address) if listed else None
        return replace(facts, kept=kept.held(filter(None, listed))) if kept is not None else facts

    def failed_before(self, parsed: Parsed) -> list[EarlierFailure]:
        """Earlier launches of this receipt's signature that failed, the newest first."""
        with self._database.reading() as connection:
            return signatures_module.failed_before(connection, parsed)

    def same_signature(self, signature: Signature) -> tuple[list[Known], list[Known]]:
        """Launches of a signature that stand: those that worked and those that failed, the newest first."""
        with self._database.reading() as connection:
            return signatures_module.same(connection, signature)

    def dominating(self, signature: Signature) -> tuple[list[Known], list[Known]]:
        """Launches that differ in pressure alone: larger ones that worked and smaller ones that ran out of memory."""
        with self._database.reading() as connection:
            larger = signatures_module.larger_worked(connection, signature)
            return larger, signatures_module.smaller_failed(connection, signature)

    def reached(self, lane: str, since: datetime | None = None, until: datetime | None = None) -> list[ShapeOutcomes]:
        """Shapes that measured training of a lane sustained or ran out of memory at, whole or in part unstated."""
        with self._database.reading() as connection:
            return shapes_module.reached(connection, lane, since, until)

    def failed_alike(self, ids: Sequence[str]) -> list[Alike]:
        """Failed launches that share a signature with one of these, by signature, the oldest first."""
        from receipts.store.query import recurring as alike_module

        with self._database.reading() as connection:
            return alike_module.failed_alike(connection, ids)

    def replicate_candidates(
        self, parsed: Parsed, ran: Configuration | None = None, until: datetime | None = None
    ) -> list[str]:
        """Ids of stored launches that may differ from this one in no axis; the caller compares them.

        Those that ended as it did come first, of these what is a sample of the rate, and the newest; of a
        launch that ended well also those that failed. Those that ran after ``until`` are left out.

        With ``ran``, its configuration, they are looked up where the axis index holds its lane.
        """
        with self._database.reading() as connection:
            return replicates.candidates(connection, parsed, ran, until)

    def neighbours(
        self, parsed: Parsed, ran: Configuration, axis: str | None = None, limit: int = near.MOST_VALUES
    ) -> list[Neighbour]:
        """Stored launches that may differ in one axis from a receipt, stored or not, which ran this configuration.

        By axis, the newest first, at most ``limit`` configurations an axis; the caller compares them.
        """
        with self._database.reading() as connection:
            return near.neighbours(connection, parsed, ran, axis, limit)

    def mixtures(
        self, a: Configuration, b: Configuration, differing: Sequence[str], kind: str, *, beyond: bool = False
    ) -> list[Between]:
        """Stored configurations that have each differing axis as one of the two has it; see `query.mixtures`.

        ``beyond``: those that have one of these axes as neither has it.
        """
        from receipts.store.query import mixtures as between

        with self._database.reading() as connection:
            look = between.detours if beyond else between.mixtures
            return look(connection, a, b, differing, kind)

    def line(self, ran: Configuration, kind: str, until: datetime | None = None) -> list[Entry]:
        """Launches that differ from a configuration in code, wheels, image and driver alone, the oldest first."""
        from receipts.store.query import lines

        with self._database.reading() as connection:
            return lines.launches(connection, ran, kind, until)

    def recent_lines(self, since: datetime, lane: str | None = None) -> list[Line]:
        """Lines with a launch submitted since a moment, each with its newest launches."""
        from receipts.store.query import lines

        with self._database.reading() as connection:
            return lines.recent(connection, since, lane)

    def holds_lane(self, ran: Configuration) -> bool:
        """Whether the axis index holds every receipt of a configuration's lane, as it is read now."""
        with self._database.reading() as connection:
            return near.holds_lane(connection, ran.lane, ran.catalogue)
