"""An attempt's document made whole: what the run states, then what its plan says, then what the runner saw.

The runner adds the wheels of the interpreter that the command names: a job that failed early could not say them.
"""

from __future__ import annotations

import copy
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any, Final

from receipts.axes.effective import OPEN_MAPS
from receipts.base.untrusted_text import parse_json
from receipts.emit.secrets import command_line
from receipts.plugins.run.folder import Attempt
from receipts.questions.plan import before_run
from receipts.receipt import Parsed

SECONDS: Final = 10.0  # that the interpreter may take to answer
_PYTHON: Final = re.compile(r"python(?:\d+(?:\.\d+)?)?(?:\.exe)?")
_ASK: Final = (
    "import importlib.metadata as m, json; "
    "print(json.dumps({d.metadata['Name']: d.version for d in m.distributions() if d.metadata['Name']}))"
)


def wheels_of(words: tuple[str, ...]) -> dict[str, Any]:
    """Distributions by name and version, as the interpreter in the first word lists them.

    Empty where the first word is no Python, or it does not answer in time: what is not known is not stated.
    """
    if not words or _PYTHON.fullmatch(PurePath(words[0]).name) is None or shutil.which(words[0]) is None:
        return {}
    try:
        done = subprocess.run([words[0], "-c", _ASK], capture_output=True, text=True, timeout=SECONDS, check=True)
        answer = parse_json(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError):
        return {}
    return {"complete": True, **{name: {"version": str(version)} for name, version in sorted(answer.items())}}


Tree = dict[str, Any]
_OF_THE_RUN: Final = ("lane", "kind", "context", "label", "tags")


def complete(document: Tree, plan: Parsed, attempt: Attempt, words: tuple[str, ...], host: str) -> Tree:
    """The document of one attempt. The run's own statements win; what contradicts the plan is noted.

    ``found`` is a recorder's receipt or what its log gave. The plan adds what neither says, and a note names it.
    """
    tree = copy.deepcopy(document)
    intended = before_run(plan)
    added: list[str] = []
    contradicted: list[str] = []
    for section, content in intended.items():
        if section in ("run", "schema_version"):
            continue
        whole = section in OPEN_MAPS and tree.get(section, {}).get("complete") is True
        _fill(tree.setdefault(section, {}), content, f"{section}.", whole, added, contradicted)
    run = tree.setdefault("run", {})
    for name in _OF_THE_RUN:
        value = getattr(plan.receipt.run, name)
        if value is not None and name not in run:
            run[name] = list(value) if isinstance(value, tuple) else value
    run["lane"] = plan.receipt.run.lane
    run["launch"] = attempt.launch
    run.setdefault("kind", "training")
    run.setdefault("host", host)
    run.setdefault("command", command_line(words))
    run["provenance"] = "measured"
    run.setdefault("started", attempt.started)
    if attempt.finished is not None:
        run.setdefault("finished", attempt.finished)
    if attempt.exit_code is not None:
        run["exit_code"] = attempt.exit_code
    _state_end(tree, attempt)
    if run.get("outcome") == "oom" and not tree.get("wheels"):
        tree["wheels"] = wheels_of(words)
    notes = tree.setdefault("notes", {})
    notes["runner.attempt"] = attempt.number
    if attempt.rung is not None:
        notes["runner.rung"] = attempt.rung if attempt.reason is None else f"{attempt.rung}: {attempt.reason}"
    if added:
        notes["runner.stated_by_plan"] = sorted(added)
    if contradicted:
        notes["runner.contradicts_plan"] = contradicted
    return {key: value for key, value in tree.items() if value != {}}


def _fill(into: Tree, plan: Tree, prefix: str, whole: bool, added: list[str], contradicted: list[str]) -> None:
    for key, value in plan.items():
        path = f"{prefix}{key}"
        if key not in into:
            if whole or key == "complete":
                # A set that was captured whole says that this key was not there; a plan captures nothing.
                contradicted += (
                    [f"{path}: the plan says {_as_text(value)}, the run had none"] if key != "complete" else []
                )
                continue
            into[key] = copy.deepcopy(value)
            added += _leaves(value, path)
        elif isinstance(value, dict) and isinstance(into[key], dict):
            _fill(into[key], value, f"{path}.", False, added, contradicted)
        elif _as_text(_plain(into[key])) != _as_text(_plain(value)):
            contradicted.append(f"{path}: the plan says {_as_text(value)}, the run {_as_text(_plain(into[key]))}")


def _leaves(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}")
    else:
        yield path


def _plain(value: Any) -> Any:
    return value.get("value", value.get("version", value)) if isinstance(value, dict) else value


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _state_end(tree: Tree, attempt: Attempt) -> None:
    """How it ended, where the run's own words do not tell it already."""
    run, code, by = tree["run"], attempt.exit_code, attempt.ended_by
    outcome = run.get("outcome")
    if outcome in ("oom", "nan", "hang", "preempted") or (outcome == "crash" and by is None):
        return
    if by == "silence":
        _fail(tree, "hang", "no line was printed for as long as the runner waits, and it was ended")
    elif by is not None:
        run["outcome"] = "preempted"
        tree.pop("failure", None)
    elif code:
        ending = f"killed by signal {-code}" if code and code < 0 else f"exit code {code}"
        _fail(tree, "crash", f"{ending}; nothing that it printed says why")
    elif outcome in (None, "unknown"):
        run["outcome"] = "ok"


def _fail(tree: Tree, outcome: str, message: str) -> None:
    tree["run"]["outcome"] = outcome
    failure = tree.setdefault("failure", {})
    failure.setdefault("class", "not_oom")
    failure.setdefault("message", message)


def step_down(tree: Tree, next_launch: str, rung: str, reason: str | None) -> None:
    """State in a failed attempt's document which attempt follows it."""
    row = {"launch": next_launch, "rung": rung} | ({"reason": reason} if reason else {})
    tree.setdefault("failure", {})["ladder"] = [row]
