"""A corpus that everybody has: sources of Python's own standard library, read as bytes.

Its digest changes with the Python release, and is therefore stated with every launch.
"""

from __future__ import annotations

import hashlib
import sysconfig
from dataclasses import dataclass
from pathlib import Path

MODULES = (
    "argparse.py",
    "ast.py",
    "datetime.py",
    "decimal.py",
    "difflib.py",
    "doctest.py",
    "inspect.py",
    "pathlib.py",
    "statistics.py",
    "tarfile.py",
    "typing.py",
    "zipfile.py",
)
NAME = "python-stdlib-12-modules"
VOCABULARY = 256  # one token a byte


@dataclass(frozen=True, slots=True)
class Corpus:
    """Bytes in the order of `MODULES`, with their SHA-256."""

    data: bytes
    digest: str
    name: str


def read() -> Corpus:
    """Read the modules of the running interpreter. Raises FileNotFoundError where a module is absent."""
    folder = Path(sysconfig.get_paths()["stdlib"])
    data = b"".join((folder / name).read_bytes() for name in MODULES)
    version = sysconfig.get_python_version()
    return Corpus(data, hashlib.sha256(data).hexdigest(), f"{NAME}-{version}")
