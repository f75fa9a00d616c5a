"""Plugins: each a package that adds a capability, found by one loop and imported when it is used.

The packages of ``receipts/plugins/`` are plugins, and so are those that another distribution names under the entry
point group `GROUP`. A plugin's package holds ``PLUGIN``, a `Plugin` that names what it adds. The kernel imports no
plugin by name; a plugin imports the kernel, and no other plugin.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from glob import escape, glob
from pathlib import Path
from types import ModuleType
from typing import Final

from receipts.base.errors import UsageError

PACKAGE: Final = "receipts.plugins"
GROUP: Final = "receipts.plugins"


@dataclass(frozen=True, slots=True)
class Verb:
    """A command: its module (below the plugin's package), its line in ``--help``, and the place of that line.

    ``section`` is a title of ``--help``; the line stands behind the command ``after``, or last in its section.
    """

    module: str
    section: str
    help: str
    after: str | None = None


@dataclass(frozen=True, slots=True)
class Plugin:
    """What a plugin adds, by the names of modules below its package.

    ``verbs`` are commands. ``questions`` are the modules that declare questions (`receipts.api.question`): each has its
    HTTP operation, its Python method and its tool from there; ``verbs`` names those that are commands, too.
    ``services`` answer what the kernel leaves to plugins.
    """

    verbs: Mapping[str, Verb] = field(default_factory=dict)
    questions: tuple[str, ...] = ()
    services: Mapping[str, str] = field(default_factory=dict)


@cache
def plugins() -> Mapping[str, Plugin]:
    """Every plugin by the name of its package. One of another distribution that cannot be imported is left out."""
    known: dict[str, Plugin] = {}
    try:
        folders = importlib.import_module(PACKAGE).__path__
    except ModuleNotFoundError:
        folders = []
    for item in pkgutil.iter_modules(folders):
        if item.ispkg:
            name = f"{PACKAGE}.{item.name}"
            known[name] = importlib.import_module(name).PLUGIN
    for name in named_elsewhere(GROUP):
        try:
            known[name] = importlib.import_module(name).PLUGIN
        except Exception as error:
            sys.stderr.write(f"receipts: the plugin {name} is left out: {type(error).__name__}: {error}\n")
    return known


def named_elsewhere(group: str) -> list[str]:
    """The packages that other distributions name in a group of entry points, in the order of their names.

    Most environments have none. `importlib.metadata` takes longer to import than the rest of ``receipts --help``, so
    it is asked only where the metadata of a distribution holds the name of the group.
    """
    for folder in sys.path:
        for file in glob(f"{escape(folder or '.')}/*.*-info/entry_points.txt"):
            with suppress(OSError):
                if group.encode() in Path(file).read_bytes():
                    from importlib.metadata import entry_points

                    return sorted({entry.value for entry in entry_points(group=group)})
    return []


def services(name: str) -> Iterator[ModuleType]:
    """The modules that plugins offer under the name of a service.

    The kernel asks for ``report`` (a command below ``receipts report``, as ``REPORT``), ``weekly`` (a section of the
    weekly report: ``section(data)`` gives it, or None; ``gathered(reader, lanes)`` gives what it needs of the
    store, and ``data.added`` holds it by the module's name), ``sections`` (of the page of a receipt or comparison: see
    `receipts.api.answer.with_sections`), ``spans`` (`receipts.ingest.spans`) and ``compiler`` (`receipts fit --aot`).
    ``pointer`` has the document that a ``.receipt.toml`` leads to, and its evidence. Plugins ask for ``notices``
    (targets, and what sends to them), ``gauges`` (lines of ``/metrics``) and ``launch`` (one launch under the recorder
    and the outer clock).
    """
    for package, plugin in plugins().items():
        if (module := plugin.services.get(name)) is not None:
            yield importlib.import_module(f"{package}.{module}")


def service(name: str, asked_by: str) -> ModuleType:
    """The module that answers a service. Raises UsageError, which names the call that asked, where no plugin does."""
    for module in services(name):
        return module
    raise UsageError(f"{asked_by} needs a plugin that offers {name!r}, and none is installed")
