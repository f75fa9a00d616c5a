"""Where the program runs: the folders that ship with it, the optional libraries, its ``receipts.toml``, and who acts.

`schema/`, `migrations/`, `validators/` and `reports/` are top-level folders of the checkout and never importable
packages: two of those names are live distributions that a training environment may well have installed. A wheel
carries copies of them under `receipts/_bundled/`; a checkout (or an editable install) uses the originals.

A ``receipts.toml`` adds to the built-in lanes, rules and report templates. ``--config`` or ``RECEIPTS_CONFIG`` names
it; the command line otherwise takes the next one upward from the working folder that belongs to its user.

A store records the actor of a submit, retraction, pin, decision, claim or purge. An actor is a record and not a
proof: the database's roles decide what somebody may do. No setting names the actor.
"""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from receipts.base.errors import ResourceError, UsageError
from receipts.base.files import read_small
from receipts.base.untrusted_text import parse_toml

FOLDERS: Final = ("schema", "migrations", "validators", "reports")

_PACKAGE = Path(__file__).resolve().parent.parent
_MARK = 'name = "frontier-receipts"'


def bundled_folder(name: str) -> Path:
    """The folder `name`, one of `FOLDERS`, as an absolute path.

    Raises `ResourceError` where neither the wheel's copy nor the checkout's original is there.
    """
    if name not in FOLDERS:
        raise ResourceError(f"{name!r} is not a folder of this program; there are {', '.join(FOLDERS)}")
    bundled = _PACKAGE / "_bundled" / name
    if bundled.is_dir():
        return bundled
    root = checkout()
    if root is not None and (root / name).is_dir():
        return root / name
    original = root / name if root is not None else f"a checkout's {name}/ (there is none around {_PACKAGE})"
    raise ResourceError(
        f"the folder {name}/ is missing: neither {bundled} nor {original} is there.\n"
        "The installation is incomplete; install it again: pip install --force-reinstall frontier-receipts"
    )


def checkout() -> Path | None:
    """The root of the checkout that this package runs from, or None if it runs from an installed wheel."""
    root = _PACKAGE.parent
    try:
        # The text is enough and `tomllib` would cost more than everything else here.
        mark = _MARK in (root / "pyproject.toml").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    return root if mark else None


def extra(module: str, name: str, what: str = "this command") -> Any:
    """A library of an extra. Raises UsageError, which says what needs it, with the command that installs it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != module.partition(".")[0]:
            raise
        raise UsageError(
            f"{module.partition('.')[0]} is not installed, and {what} needs it: pip install 'frontier-receipts[{name}]'"
        ) from None


@dataclass(frozen=True)
class Config:
    """What ``receipts.toml`` says. Paths are relative to the file.

    A server sends notices to the URLs in ``webhooks``, and to those in ``notify`` with the library apprise.
    ``bookkeeping`` are options that say nothing of what is computed, by role (`receipts.axes.catalogue`). ``judge``
    are patterns of files that measure, which a candidate of ``receipts judge`` may not change. ``prices`` are of a
    chip-hour, by accelerator, and of a ``kilowatt_hour``, in a currency of one's own.
    """

    validators: tuple[Path, ...] = ()
    reports: tuple[Path, ...] = ()
    store: str | None = None
    webhooks: tuple[str, ...] = ()
    notify: tuple[str, ...] = ()
    bookkeeping: Mapping[str, object] = field(default_factory=dict)
    judge: tuple[str, ...] = ()
    prices: Mapping[str, float] = field(default_factory=dict)


_KEYS = {"validators", "reports", "store", "webhooks", "notify", "bookkeeping", "judge", "prices"}


def read_config(path: Path | None) -> Config:
    """Read a ``receipts.toml``; None is the empty configuration. Raises UsageError naming the key."""
    if path is None:
        return Config()
    try:
        table = parse_toml(read_small(path))
    except FileNotFoundError:
        raise UsageError(f"{path}: there is no such file; leave --config out, or write it") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: {error}") from None
    unknown = sorted(set(table) - _KEYS)
    if unknown:
        raise UsageError(f"{path}: no such key: {', '.join(unknown)}; known: {', '.join(sorted(_KEYS))}")
    store = table.get("store")
    if store is not None and not isinstance(store, str):
        raise UsageError(f"{path}: store must be a text")
    validators, reports = (_folders(table, name, path) for name in ("validators", "reports"))
    webhooks, notify = (_texts(table, name, path, "URL") for name in ("webhooks", "notify"))
    bookkeeping = table.get("bookkeeping", {})
    if not isinstance(bookkeeping, dict):
        raise UsageError(f"{path}: bookkeeping must be a table of lists of names, as output = ['artifact_dir']")
    judge = _texts(table, "judge", path, "pattern")
    priced = table.get("prices", {})
    prices: dict[str, float] = {}
    for name, price in (priced if isinstance(priced, dict) else {"": None}).items():
        if isinstance(price, bool) or not isinstance(price, int | float) or not 0 < price < 1e9:
            at = f"prices.{name}" if name else "prices"
            raise UsageError(f"{path}: {at}: write the price of a chip-hour, as H200 = 3.10")
        prices[name] = float(price)
    return Config(validators, reports, store, webhooks, notify, bookkeeping, judge, prices)


def _texts(table: dict[str, object], key: str, path: Path, kind: str) -> tuple[str, ...]:
    named = table.get(key, [])
    named = [named] if isinstance(named, str) else named
    if not isinstance(named, list) or not all(isinstance(item, str) for item in named):
        raise UsageError(f"{path}: {key} must be a {kind} or a list of {kind}s")
    return tuple(named)


def _folders(table: dict[str, object], key: str, path: Path) -> tuple[Path, ...]:
    places = tuple(path.parent / item for item in _texts(table, key, path, "folder"))
    for place in places:
        if not place.is_dir():
            raise UsageError(f"{path}: {key}: there is no folder {place}")
    return places


Kind = Literal["token", "database", "ci", "user"]

_MAX_LENGTH: Final = 200
# What a CI system says of the run that a process belongs to: the variables that have the repository and the run.
_CI: Final = {
    "github": ("GITHUB_REPOSITORY", "GITHUB_RUN_ID"),
    "gitlab": ("CI_PROJECT_PATH", "CI_JOB_ID"),
    "buildkite": ("BUILDKITE_PIPELINE_SLUG", "BUILDKITE_BUILD_ID"),
}


class Actor(NamedTuple):
    """Who acts: a token of a server, a user of a database, a run of a CI system, or a user of an operating system.

    `via` is what it acted through, where that is known as well: a database's user through a CI run.
    """

    kind: Kind
    name: str
    via: str = ""

    def __str__(self) -> str:
        """As a store records it: ``database:jobs via user:alice``; without control characters, 200 at most a part."""
        return f"{self.kind}:{_clean(self.name)}" + (f" via {_clean(self.via)}" if self.via else "")


def same_principal(one: str | None, other: str | None) -> bool:
    """Whether two recorded actors are one token, database user or user of a system; true where either is unknown."""
    return one is None or other is None or _principal(one) == _principal(other)


def _principal(actor: str) -> str:
    """Who answers for an actor: of a CI run, whose number a process claims, the user that it ran as."""
    return actor.rpartition(" via ")[2] if actor.startswith("ci:") else actor.partition(" via ")[0]


def this_process(environment: Mapping[str, str] = os.environ) -> Actor:
    """Who this process acts for: the CI run that it belongs to, else the operating system's user."""
    user = f"user:{_user()}"
    for system, names in _CI.items():
        repository, run = (environment.get(name) for name in names)
        if run:
            return Actor("ci", f"{system} {repository or 'unknown'} {run}", user)
    return Actor("user", _user())


def _user() -> str:
    # By the process's number and not by USER or LOGNAME, which anybody may set.
    try:
        import pwd

        return pwd.getpwuid(os.geteuid()).pw_name
    except ImportError:
        import getpass

        return getpass.getuser()
    except KeyError:
        return str(os.geteuid())


def _clean(text: str) -> str:
    return re.sub(r"[\x00-\x1f\x7f]+", " ", text)[:_MAX_LENGTH]
