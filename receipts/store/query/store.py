"""What rules, comparisons and preflights ask of a store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from receipts.axes.replicates import LaunchSettings
from receipts.judging.facts import Facts
from receipts.receipt import Parsed
from receipts.store.database import Repository, reads
from receipts.store.kept import kept_files
from receipts.store.query import facts as facts_module
from receipts.store.query import lines, mixtures, replicates, shapes, signatures
from receipts.store.query import neighbours as near
from receipts.store.query.facts import SettingsOf


class Queries(Repository):
    """What rules, comparisons and preflights ask of a store."""

    failed_before = reads(signatures.failed_before)
    same_signature = reads(signatures.same)
    dominating = reads(signatures.dominating)
    ran_out = reads(signatures.ran_out)
    reached = reads(shapes.reached)
    reached_with = reads(facts_module.of_geometry)
    failed_alike = reads(signatures.failed_alike)
    replicate_candidates = reads(replicates.candidates)
    alike = reads(replicates.alike)
    neighbours = reads(near.neighbours)
    mixtures = reads(mixtures.mixtures)
    line = reads(lines.launches)
    recent_lines = reads(lines.recent)
    holds_lane = reads(near.holds_lane)

    def facts(self, group: Parsed | Sequence[Parsed]) -> Facts:
        """Facts for judging receipts, stored or not."""
        with self.database.reading() as connection:
            every = [group] if isinstance(group, Parsed) else group
            return self._with_kept(facts_module.facts(connection, every, self.database.once), every)

    def facts_of_new(self, group: Sequence[Parsed], settings: SettingsOf = LaunchSettings) -> list[Facts]:
        """Facts for judging receipts that are about to be submitted, one for each; fewer questions than `facts`."""
        with self.database.at_once() as connection:
            known = facts_module.facts_of_new(connection, group, self.database.actor(connection), settings)
        return [self._with_kept(item, [one]) for item, one in zip(known, group, strict=True)]

    def _with_kept(self, facts: Facts, group: Sequence[Parsed]) -> Facts:
        """The facts, with which of the listed files the store keeps; asked only for what a reader read."""
        listed = {entry.sha256 for item in group for entry in item.receipt.evidence or () if entry.read}
        kept = kept_files(self.database.address) if listed else None
        return replace(facts, kept=kept.held(filter(None, listed))) if kept is not None else facts
