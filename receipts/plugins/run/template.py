"""``receipts template``: job files that record, for schedulers and launchers, with a few values to set.

A value stands as ``{{key|default}}``: as it is, or quoted with ``!q`` for a shell, ``!j`` for YAML, ``!p`` for Python.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import click

from receipts.base.errors import NotFound, UsageError, near
from receipts.cli.session import Answer, Session, verb

FOLDER: Final = Path(__file__).with_name("templates")
_VALUE: Final = re.compile(r"\{\{(?P<key>\w+)(?:!(?P<form>[qjp]))?\|(?P<default>[^{}]*)\}\}")
_FORMS: Final[Mapping[str | None, Callable[[str], str]]] = {None: str, "q": shlex.quote, "j": json.dumps, "p": repr}


def templates() -> dict[str, Path]:
    """The files by the name of their template."""
    return {path.stem: path for path in sorted(FOLDER.iterdir()) if path.suffix in (".sh", ".yaml", ".tmpl")}


def rendered(name: str, values: Mapping[str, str]) -> str:
    """A template with values in the place of its defaults. Raises NotFound, and UsageError for a key that it lacks."""
    known = templates()
    if name not in known:
        raise NotFound(f"there is no template {name!r}; known: {', '.join(known)}{near(name, known)}")
    text = known[name].read_text("utf-8")
    keys = dict.fromkeys(match["key"] for match in _VALUE.finditer(text))
    for key in values:
        if key not in keys:
            raise UsageError(f"--set {key}: the template {name} has {', '.join(keys)}{near(key, keys)}")

    def put(match: re.Match[str]) -> str:
        value = values.get(match["key"], match["default"])
        if match["form"] is None and match["key"] != "command" and not re.fullmatch(r"[\w.:/@%+-]+", value):
            raise UsageError(f"--set {match['key']}: {value!r} has characters that no name or number here has")
        if match["default"].isdigit() and not re.fullmatch(r"(?:[\w-]+:)?[1-9]\d*", value):
            raise UsageError(f"--set {match['key']}: {value!r} is not a number of them, such as {match['default']}")
        return _FORMS[match["form"]](value)

    return _VALUE.sub(put, text)


@verb("template")
@click.argument("name", required=False)
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="A value of the template; may be repeated.")
def template(session: Session, name: str | None, settings: tuple[str, ...]) -> Answer:
    """Print a job file that records: sbatch, jobset, xpk, skypilot or nemo-run; without NAME, which there are.

    Examples:
      receipts template sbatch --set nodes=4 --set command='python train.py --lr 3e-4' > train.sh
      receipts template jobset --set image=ghcr.io/lab/train:41 | kubectl apply -f -
      receipts template skypilot > train.yaml
    """
    if name is None:
        lines = {
            key: list(dict.fromkeys(match["key"] for match in _VALUE.finditer(path.read_text("utf-8"))))
            for key, path in templates().items()
        }
        width = max(map(len, lines))
        return Answer(lines, lambda: "\n".join(f"{key:{width}}  {', '.join(keys)}" for key, keys in lines.items()))
    pairs = dict(item.partition("=")[::2] for item in settings)
    if wrong := next((item for item in settings if "=" not in item), None):
        raise UsageError(f"--set {wrong}: write KEY=VALUE, such as nodes=4")
    text = rendered(name, pairs)
    return Answer({"template": name, "text": text}, lambda: text.rstrip("\n"))
