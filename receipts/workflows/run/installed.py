"""The wheels of the interpreter that a command names: what a job that failed before it could say so ran on."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import PurePath
from typing import Any, Final

from receipts.base.untrusted_text import parse_json

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
