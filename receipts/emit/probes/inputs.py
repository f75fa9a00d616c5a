"""What the launch was started with: options, files that they name, variables that the project's source reads.

The command line is taken at the recorder's start. The project's files are searched then as far as the time goes, and
the rest when the run has ended, unless it has changed in between. What an option's absence means is read from
the source as well: a default that is declared outright.
"""

from __future__ import annotations

import math
import os
import re
import time

from receipts.emit import configuration, own_launch, python_source
from receipts.emit.launch_values import flat, key_of
from receipts.emit.own_launch import NamedFiles
from receipts.emit.probes import environment, imported
from receipts.emit.python_source import SourceReads, declared
from receipts.emit.secrets import allowed, secret_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from receipts.emit.probing import ProbeOutput

NAME = "inputs"
MAY_BLOCK = True
# What the start may take for sources, and how many are read then whatever that takes.
BUDGET_SECONDS = 0.03
MIN_MODULES = 50
# Numbers and addresses of processes, and what a machine or a login sets: never what an experimenter did.
_OTHERS = re.compile(
    r"(?:(?:GROUP_|LOCAL_|ROLE_|NODE_)?(?:RANK|WORLD_SIZE)|HOME|USER|LOGNAME|HOST(?:NAME)?|(?:OLD)?PWD|TMP(?:DIR)?|TEMP|SHELL"
    r"|PATH|DISPLAY|TERM|LANG|COLUMNS|LINES|VIRTUAL_ENV|CI|EDITOR|PORT|JOB_ID|PROCESS_ID|NUM_PROCESSES|NNODES|JOB_NAME|JOB_UID)"
    r"|(?:SLURM|SSH|MASTER|TORCHELASTIC|OMPI|PMIX?|PALS|MV2|LSB|PBS|KUBERNETES|XDG|RECEIPTS|CONDA|JUPYTER|COORDINATOR"
    r"|TPU|GITHUB|LC|COVERAGE|PYTEST|JOB_COMPLETION|JOBSET|REPLICATED_JOB|KUEUE|SKYPILOT|FLUX|JSM|MPI_LOCAL"
    r"|MEGASCALE_(?:COORDINATOR|NUM_SLICES|SLICE|PORT)|RAY_(?:JOB|NODE|RAYLET|ADDRESS|WORKER))_?.*"
)


def at_start(stated: ProbeOutput) -> None:
    """State program, options and launcher, and what the sources that are imported by now read."""
    main = imported.main_file()
    root = own_launch.checkout(main) if main else os.getcwd()
    known = declared(_text(main))
    given, before, several = own_launch.words(main, known)
    files = NamedFiles(root)
    stated.kept |= {"main": main, "given": given, "files": files, "reads": SourceReads(), "variables": dict(os.environ)}
    # What is not said in time is not captured: a disk may hold this up until it is given up.
    stated.kept |= {"taken": set(), "defaults": {}, "fields": {}, "unread": stated.local_rank == 0}
    stated.kept["declared"] = {key_of(flag) for flag in known}
    doubts = stated.kept["doubts"] = own_launch.doubts(main, stated.rank, stated.world, several)
    if main:
        stated.put("inputs.program", own_launch.within(root, main))
    stated.inputs("launcher", {key: text for key, text in before.items() if os.path.abspath(text) != stated.out})
    if lost := stated.inputs("options", {key: files.relative(text) for key, text in given.items()}):
        doubts.append(f"{lost} options are beyond the bounds")
    _composed(stated)
    _say(stated)
    if stated.local_rank == 0:
        for option, text in given.items():
            files.take(option, text)
        until = time.perf_counter() + BUDGET_SECONDS
        _read_sources(stated, until)
        _state_reads(stated, until)
        _say(stated)


def at_end(stated: ProbeOutput) -> None:
    """State what sources that came later read, places that the run made, and data that were left for now."""
    if stated.local_rank == 0:
        _read_sources(stated, math.inf)
        _state_reads(stated, math.inf)
        stated.kept["reads"].forget()
        python_source.syntax_tree.cache_clear()
        for row in stated.kept["files"].at_end(stated.out):
            stated.file(row)
        _say(stated)


def _composed(stated: ProbeOutput) -> None:
    """State the configuration that Hydra has composed of its files, as it wrote it down before it called the job."""
    held = imported.part("hydra.core.hydra_config", "HydraConfig")
    hydra = getattr(getattr(held.instance(), "cfg", None), "hydra", None) if held is not None else None
    if hydra is None:
        return
    path = os.path.join(hydra.runtime.output_dir, hydra.output_subdir or ".hydra", "config.yaml")
    try:
        with open(path, "rb") as stream:
            composed = configuration.file_settings(path, stream.read())
    except OSError:
        composed = None
    stated.kept["files"].composes = True
    if composed is not None:
        stated.kept["composed"] = True
        stated.inputs("resolved", composed)


def _read_sources(stated: ProbeOutput, until: float) -> None:
    reads: SourceReads = stated.kept["reads"]
    taken: set[str] = stated.kept["taken"]
    modules = imported.module_files()
    if main := stated.kept["main"]:
        modules["__main__"] = main
    own = imported.project_files(modules)
    for number, name in enumerate(sorted(own, key=lambda name: (name != "__main__", name))):
        if number >= MIN_MODULES and time.perf_counter() > until:
            stated.kept["unread"] = True
            return
        if name in taken or not (name == "__main__" or own[name].endswith((".py", ".pyw"))):
            continue
        taken.add(name)
        try:
            with open(own[name], "rb") as stream:
                reads.take(name, stream.read(), os.path.dirname(own[name]))
        except OSError:
            stated.kept["doubts"].append(f"{name} could not be read")
    stated.kept["unread"] = False


def _state_reads(stated: ProbeOutput, until: float) -> None:
    reads: SourceReads = stated.kept["reads"]
    files: NamedFiles = stated.kept["files"]
    reads.finish()
    _state_defaults(stated, reads, files, until)
    for name, folder in sorted(reads.files):
        files.take("", name, beside=folder)
    kept: dict[str, str] = {}
    # The variables at the start; of those that the source sets itself what the process was executed with.
    executed = environment.executed_with()
    variables = {name: text for name, text in stated.kept["variables"].items() if name not in reads.assigned}
    variables |= {name: executed[name] for name in reads.assigned if name in executed}
    for name, text in variables.items():
        if (reads.wants(name) or name in files.variables) and _own(name):
            kept[name] = files.relative(text)
            files.take(f"environment.{name}", text, folders=False)
    stated.inputs("environment", kept)
    for row in files.rows:
        stated.file(row)


def _state_defaults(stated: ProbeOutput, reads: SourceReads, files: NamedFiles, until: float) -> None:
    known: dict[str, str | None] = stated.kept["defaults"]
    fields: dict[str, str | None] = stated.kept["fields"]
    before = {name for name, text in (fields | known).items() if text is not None}
    kinds = (
        (reads.options, python_source.option_defaults, known),
        (reads.fields, python_source.dataclass_defaults, fields),
    )
    for sources, read, defaults in kinds[: 1 + reads.of_fields]:
        for name in sorted(sources, key=lambda name: name != "__main__"):
            if name == "__main__" or time.perf_counter() < until:
                read(sources.pop(name).decode("utf-8", "replace"), defaults)
    for name in stated.kept["declared"] & fields.keys():
        fields[name] = None  # an option that is declared by its own name is that one
    for name, default in reads.defaults.items():
        if name not in reads.assigned and _own(name):
            key = f"env.{name}"
            known[key] = default if known.setdefault(key, default) == default else None
    every = fields | known
    if torn := sorted(name for name in before if every[name] is None):
        stated.kept["doubts"].append(f"two defaults of {', '.join(torn[:5])}")
    declared = {name: text for name, text in every.items() if text is not None and name not in before}
    if reads.executes and not before:
        # The script lets a file of settings, or its command line, assign its globals.
        assigned = python_source.assigned_values(_text(stated.kept["main"]), whole=False)
        declared = flat(assigned or {}) | declared
    stated.inputs("defaults", declared)
    given = {*stated.kept["given"], *(f"env.{name}" for name in stated.kept["variables"])}
    for option, text in declared.items():
        if option not in given:
            files.take(re.sub(r"^env\.", "environment.", option), text, only_config=True)


def _text(main: str) -> str:
    """The main program's source; empty where it has none that can be read."""
    if not main.endswith((".py", ".pyw")):
        return ""
    try:
        with open(main, encoding="utf-8", errors="replace") as stream:
            return stream.read(1 << 20)
    except OSError:
        return ""


def _own(name: str) -> bool:
    """Whether a variable is the experimenter's: those that runtimes read are flags, and stand there."""
    return not (allowed(name) or secret_name(name) or _OTHERS.fullmatch(name))


def _say(stated: ProbeOutput) -> None:
    """State whether all was captured, or why not; where the caller has said it, that stands."""
    if stated.get("inputs.capture") != stated.kept.get("said"):
        return
    doubts = list(stated.kept["doubts"])
    if stated.kept["files"].over:
        doubts.append("more files are named than are read")
    if stated.kept["files"].composes and not stated.kept.get("composed"):
        doubts.append("a configuration is composed of others that were not seen")
    if stated.kept["reads"].asks and own_launch.piped():
        doubts.append("the source reads standard input, which was handed to it")
    if stated.kept.get("unread"):
        doubts.append("some of its source and files was not read in time")
    if computed := sorted(stated.kept["reads"].computed):
        doubts = doubts or ["whole"]
        doubts.append(f"environment: read by computed names in {', '.join(computed[:5])}")
    stated.kept["said"] = "; ".join(doubts) or "whole"
    stated.put("inputs.capture", stated.kept["said"])
