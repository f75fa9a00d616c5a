"""Section ``run``: which launch this is, when and where it ran, and how it ended."""

from typing import Annotated, Literal

from pydantic import AwareDatetime, Field

from receipts.receipt.leaf import (
    Count,
    Digest,
    Name,
    Section,
    Text,
    block,
    ending,
    note,
    observed,
    regime,
    replicate,
    section,
)
from receipts.receipt.maps import Observed

Kind = Literal["training", "microbench", "profile", "serving"]
Outcome = Literal["ok", "oom", "crash", "hang", "nan", "preempted"]
Provenance = Literal["measured", "quoted", "projected", "illustrative"]


class Supersedes(Section):
    """The receipt or launch that this one replaces, and why."""

    target: Name = note("Launch, or id, of the receipt that this one replaces.", required=True)
    reason: Text = note("Why the earlier receipt no longer stands.", required=True)


class Part(Section):
    """One of several launches whose steps a receipt joins, and its settings."""

    start_step: Count = note("First step taken from this launch.", required=True)
    launch: Name | None = note("The launch, or the file that it left behind.")
    ran: Observed | None = observed("Its settings, by leaf: `wheels.torch`, `code.commit`, `flags.XLA_FLAGS.…`.")


class Recorded(Section):
    """Which program wrote the document, and the digest by which an edit shows."""

    by: Name = note("The program: `recorder` (a recovered run too), `merge`, `ingest`.", required=True)
    digest: Digest = note(
        "SHA-256 of the document as it was written, with 64 zeros in place of this digest.", required=True
    )
    journals: Annotated[tuple[Digest, ...], Field(max_length=100_000)] | None = note(
        "SHA-256 of the recorder's journal, of each rank's in their order."
    )
    sources: Annotated[dict[Name, Name], Field(max_length=1000)] | None = note(
        "Leaves that `recorder` or a probe stated, each with its name. `flags.*` are the entries of a map that are not "
        "named; the job (`caller`) stated the others."
    )


class Run(Section):
    """One start of a job."""

    launch: Name = replicate(
        "Identity of the launch: a UUID from the recorder, otherwise the digest of host, start and command.",
        required=True,
    )
    lane: Name = note("Name of the lane, the contract that applies to the launch.", required=True)
    kind: Kind = regime("What was run.", required=True)
    outcome: Outcome = ending("How the launch ended.", required=True)
    provenance: Provenance = note(
        "Origin of the numbers: measured, quoted from elsewhere, projected, or illustrative.",
        required=True,
    )
    started: AwareDatetime = replicate("When the launch started, with its zone.", required=True)
    started_stated: Text | None = note("Source text of `started` if it is less exact than a second.")
    finished: AwareDatetime | None = observed("When it ended, with its zone.")
    label: Name | None = note("A label for people to read.")
    tags: tuple[Name, ...] | None = note("Words by which to search for it.")
    context: Name | None = note(
        "The base configuration by name or digest: launcher preset, config file, notebook section. "
        "If two receipts name the same context, it holds the settings that neither states."
    )
    session: Name | None = replicate(
        "The session that it was launched in, to answer one question: launches of one session belong together.",
        since="1.1",
    )
    host: Name | None = block("Host, or the first of several.")
    processes: tuple[Count, ...] | None = note("Process ids of its ranks, in their order, each on its own host.")
    site: Name | None = block("Data center, cloud zone or machine room.")
    command: Text | None = note("The command line, secrets redacted.")
    exit_code: int | None = ending("Exit status of the process; negative for a signal.")
    supersedes: Supersedes | None = section("The receipt of the same launch that this one replaces.")
    witness_for: Name | None = note(
        "The launch, by name or id, whose path this launch witnesses, usually under a profiler."
    )
    resumed_from: Name | None = note("Checkpoint or launch from which this one resumed.")
    start_step: Count | None = note("First step of a resumed launch.")
    parts: tuple[Part, ...] | None = observed("The launches whose steps it joins, if there are several.")
    recorded: Recorded | None = section("Who wrote the document; absent from one that a person wrote.")
    entries: Annotated[dict[Name, Count], Field(max_length=100)] | None = note(
        "Entries of maps, lists and sections when the receipt was written, by path: `wheels`, `memory.chips`, …."
    )
