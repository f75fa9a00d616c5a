"""The receipt, version 1.1: one immutable JSON document about one launch; its open maps, ``inputs`` and ``run``.

The other sections are in `receipts.receipt.configuration` and `receipts.receipt.measurement`. An open map
(``features``, ``flags``, ``patches``, ``wheels``, ``notes``) may carry ``complete: true``: the whole set was
captured, so an absent key is the stated value *unset*. Annotations are evaluated here (no ``annotations`` of
``__future__``): pydantic would compile their text at every start.
"""

from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, AwareDatetime, Field, StringConstraints
from pydantic_core import PydanticCustomError

from receipts.receipt.configuration import (
    Batch,
    Code,
    Compile,
    Data,
    Hardware,
    Model,
    Numerics,
    Parallelism,
    Path,
    Platform,
)
from receipts.receipt.leaf import (
    Count,
    Digest,
    Name,
    Section,
    Text,
    axis,
    block,
    ending,
    given,
    note,
    observed,
    regime,
    replicate,
    section,
)
from receipts.receipt.measurement import Failure, Measurement, Memory

COMPLETE = "complete"
Key = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Scalar = bool | int | float | Annotated[str, StringConstraints(max_length=10_000)]


class Wheel(Section):
    """An installed distribution."""

    version: Name = axis("Full version with its local tag.", of="wheels", required=True)
    digest: Name | None = observed("Digest of the installed files.")
    editable: bool | None = observed("Whether a source checkout shadows the wheel.")


class Flag(Section):
    """A flag whose time of setting is known."""

    value: Scalar = axis("Value.", required=True)
    before_runtime: bool | None = observed("Whether it was set before the runtime was imported.")


def _captured(entries: dict[str, Any]) -> dict[str, Any]:
    """``complete`` says whether the whole set was captured, and nothing else may stand there."""
    if not isinstance(entries.get(COMPLETE, True), bool):
        raise PydanticCustomError("complete_type", "its `complete` must be true or false")
    return entries


def _versions(entries: dict[str, Any]) -> dict[str, Any]:
    for key, entry in entries.items():
        if key != COMPLETE and isinstance(entry, bool):
            raise PydanticCustomError(
                "wheel_type", "{key} must be a version, or an object with its version", {"key": key}
            )
    return entries


Wheels = Annotated[
    dict[Key, bool | Name | Wheel], Field(max_length=2000), AfterValidator(_captured), AfterValidator(_versions)
]
Flags = Annotated[dict[Key, Scalar | Flag], Field(max_length=2000), AfterValidator(_captured)]
OpenMap = Annotated[dict[Key, Scalar], Field(max_length=2000), AfterValidator(_captured)]
Observed = Annotated[dict[Key, Scalar], Field(max_length=2000)]
Notes = Annotated[dict[Key, Scalar | tuple[Text, ...]], Field(max_length=200)]


class Evidence(Section):
    """A parsed observation, with the place and digest of the file that it came from."""

    kind: Name = note("What the file is: te-debug, torch-profile, hlo, metrics, ….", required=True)
    producer: Name | None = note("Program that wrote the file.")
    version: Name | None = note("Version of the producer.")
    uri: Text | None = note("Location of the file.")
    sha256: Digest | None = note("SHA-256 of the file.")
    level: Annotated[str, StringConstraints(pattern=r"^(intent|backend|kernels)$")] | None = note(
        "Its level: `intent` (requested), `backend` (the selection was logged), `kernels` (they ran)."
    )
    observed: Observed | None = observed("What was read from it.")
    read: dict[Key, Text] | None = note(
        "The reader's record: each leaf that it read from the file, with the place there (a line, a record)."
    )


InputMap = Annotated[dict[Key, Scalar], Field(max_length=4000)]


class InputFile(Section):
    """A file or folder that an option, or the program, names."""

    option: Name | None = note("The option that names it, without its dashes; `#0` for a word of the command line.")
    name: Name = given("Its name, relative to the checkout where it lies in one.", required=True)
    kind: Literal["config", "data", "folder", "output"] | None = note(
        "How it is read: settings, data, a folder's listing; `output` for a place that the run itself made."
    )
    sha256: Digest | None = given("SHA-256 of its bytes; of a folder, of the sorted names and sizes.")
    bytes: Count | None = note("Its size.", unit="bytes")
    flat: InputMap | None = given("Its settings by dotted keys, where it was read as a configuration.")


def _map(description: str) -> Any:
    declared: dict[str, Any] = {"role": "input", "open": True, "since": "1.1"}
    return Field(default=None, description=description, json_schema_extra={"receipts": declared})


class Inputs(Section):
    """What the launch was started with. Two launches of one program with equal inputs are one configuration."""

    program: Name | None = given("The program: a script relative to its checkout, `-m module`, or a command's name.")
    options: InputMap | None = _map("Options of the program, by key without dashes: what the command line gave.")
    defaults: InputMap | None = _map(
        "Defaults that the program's source declares, by key: of options, and of variables as `env.NAME`."
    )
    files: Annotated[tuple[InputFile, ...], Field(max_length=64)] | None = Field(
        default=None, description="Configuration files, data files and folders that the options name."
    )
    environment: InputMap | None = _map("Environment variables that the program reads, by name.")
    launcher: InputMap | None = _map("Options of the launchers before the program, by launcher and key.")
    resolved: InputMap | None = _map("Settings as the program or its framework resolved them, by dotted key.")
    capture: Annotated[Text, StringConstraints(min_length=1)] | None = note(
        "`whole` if all of the above was captured, otherwise the reasons why not.", ranks="capture"
    )


Kind = Literal["training", "microbench", "profile", "serving"]
Outcome = Literal["ok", "oom", "crash", "hang", "nan", "preempted", "unknown"]
# Nothing shows a failure: the launch is a sample. Only `ok` is a success, and holds a shape.
UNFAILED: Final = ("ok", "unknown")
Provenance = Literal["measured", "quoted", "projected", "illustrative"]


class Supersedes(Section):
    """The receipt or launch that this one replaces, and why."""

    target: Name = note("Launch, or id, of the receipt that this one replaces.", required=True)
    reason: Text = note("Why the earlier receipt no longer stands.", required=True)


class Job(Section):
    """The job of a cluster's scheduler that held the launch."""

    scheduler: Name | None = note("Scheduler: `slurm`, `jobset`, `ray`, ….", since="1.1", ranks="first")
    id: Name | None = note("The job's id.", since="1.1", ranks="first")
    name: Name | None = note("The job's name.", since="1.1", ranks="first")
    step: Name | None = note("Step of the job.", since="1.1", ranks="first")
    array: Name | None = note("Array and task.", since="1.1", ranks="first")
    attempt: Name | None = note("How often the job was requeued or restarted before.", since="1.1", ranks="first")
    queue: Name | None = note("Queue or partition.", since="1.1", ranks="first")


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
    outcome: Outcome = ending("How the launch ended.", required=True, ranks="code")
    provenance: Provenance = note(
        "Origin of the numbers: measured, quoted from elsewhere, projected, or illustrative.",
        required=True,
    )
    started: AwareDatetime = replicate(
        "When the launch started, with its zone.", required=True, ranks="code", files="earliest"
    )
    started_stated: Text | None = note("Source text of `started` if it is less exact than a second.", files="first")
    finished: AwareDatetime | None = observed("When it ended, with its zone.", ranks="code", files="latest")
    label: Name | None = note("A label for people to read.", ranks="first", files="first")
    tags: tuple[Name, ...] | None = note("Words by which to search for it.")
    context: Name | None = note(
        "The base configuration by name or digest: launcher preset, config file, notebook section. "
        "If two receipts name the same context, it holds the settings that neither states."
    )
    session: Name | None = replicate(
        "The session that it was launched in, to answer one question: launches of one session belong together.",
        since="1.1",
    )
    host: Name | None = block("Host, or the first of several.", ranks="code", files="first")
    processes: tuple[Count, ...] | None = note(
        "Process ids of its ranks, in their order, each on its own host.", ranks="code"
    )
    site: Name | None = block("Data center, cloud zone or machine room.", files="first")
    command: Text | None = note("The command line, secrets redacted.", ranks="first", files="first")
    job: Job | None = section("The job of a cluster's scheduler that held it.")
    exit_code: int | None = ending("Exit status of the process; negative for a signal.", ranks="code")
    supersedes: Supersedes | None = section("The receipt of the same launch that this one replaces.")
    witness_for: Name | None = note(
        "The launch, by name or id, whose path this launch witnesses, usually under a profiler."
    )
    resumed_from: Name | None = note("Checkpoint or launch from which this one resumed.")
    start_step: Count | None = note("First step of a resumed launch.")
    parts: tuple[Part, ...] | None = observed("The launches whose steps it joins, if there are several.")
    recorded: Recorded | None = section("Who wrote the document; absent from one that a person wrote.")
    entries: Annotated[dict[Name, Count], Field(max_length=100)] | None = note(
        "Entries of maps, lists and sections when the receipt was written, by path: `wheels`, `memory.chips`, ….",
        ranks="code",
    )


VERSION = "1.1"


def _open_map(description: str, role: str = "axis") -> Any:
    """An open map: each of its keys is a leaf, and, where its role is axis, an axis of its own."""
    return Field(default=None, description=description, json_schema_extra={"receipts": {"role": role, "open": True}})


class Receipt(Section):
    """One launch: what ran, where, on what, what was intended, what was seen, what it measured.

    A missing value means *not stated*. Nothing is filled with a default. Unknown keys are refused, except in the
    open maps. Units stand in names. The document's id is the SHA-256 of its bytes as they came.
    """

    schema_version: Annotated[str, StringConstraints(pattern=r"^\d+\.\d+$")] = note(
        "Version of this schema, major.minor.", required=True
    )
    run: Run = Field(description="Which launch this is, when and where it ran, how it ended.")
    code: Code | None = section("The source that was imported.")
    inputs: Inputs | None = section("What the launch was started with.")
    hardware: Hardware | None = section("The machine.")
    platform: Platform | None = section("The software below the wheels.")
    wheels: Wheels | None = Field(
        default=None,
        description="Installed distributions: version with local tag, or an object with version and digest.",
        json_schema_extra={"receipts": {"role": "axis", "open": True, "axis": "wheels"}},
    )
    flags: Flags | None = _open_map(
        "Flags and environment, one key a flag and a sub-flag (`XLA_FLAGS.…`, `LIBTPU_INIT_ARGS.…`)."
    )
    patches: OpenMap | None = _open_map("Patches applied to the software, by name.")
    features: OpenMap | None = _open_map("Switches of the model and the training loop, by name.")
    model: Model | None = section("The architecture.")
    parallelism: Parallelism | None = section("Degrees and sharding.")
    batch: Batch | None = section("Shape of a step.")
    numerics: Numerics | None = section("Arithmetic and optimization.")
    compile: Compile | None = section("Compile posture and cost.")
    data: Data | None = section("What was trained on.")
    path: Path | None = section("Intended and witnessed path.")
    measurement: Measurement | None = section("What was measured.")
    memory: Memory | None = section("Bytes by chip and phase.")
    failure: Failure | None = section("Why it did not end well.")
    evidence: tuple[Evidence, ...] | None = section("Files that observations were read from.")
    notes: Notes | None = _open_map("Free text and attachments by URI.", role="note")
