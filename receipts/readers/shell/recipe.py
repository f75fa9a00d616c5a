"""A recipe: the settings of a launch as a YAML or TOML file has them, whatever the program.

They say what was asked. They stand in ``inputs.resolved`` where no program printed its own settings, and become no
leaf: the command line may override each of them.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar, Final

import yaml

from receipts.ingest import vocabulary
from receipts.ingest.literals import flattened
from receipts.ingest.reader import FileReader
from receipts.ingest.reading import Reading
from receipts.ingest.source import Source

_YAML_LINE: Final = re.compile(r"(\s*)(?:- )?([\w.\-/\"']+)\s*:(?:\s.*)?$|\s*- .+$|---$|\.\.\.$")
_TOML_LINE: Final = re.compile(r"(\s*)([\w.\-\"']+)\s*=\s*\S.*$|\s*\[{1,2}[\w.\-\"' ]+\]{1,2}$|\s*[\]\"'\w\[{].*,?$")
# A tracker's file holds what a run was told, with its own keys beside it; its reader knows them.
_TRACKER: Final = frozenset({"wandb_version", "_wandb"})
_MIN_NAMES: Final = 3  # names that some framework has: fewer may be chance
_SHARE: Final = 0.9
_HEAD: Final = 60_000
_MAX_TEXT: Final = 256 * 1024


class RecipeFile(FileReader):
    """Reads a file of nested settings, of which several have a name that a training framework knows."""

    source: ClassVar[str] = "recipe"

    @classmethod
    def claims(cls, head: bytes) -> bool:
        """Whether its lines are settings, none of the first level stands twice as a log's would, and some are known."""
        if len(head) > _HEAD:
            return False
        lines = [line for line in head.decode("utf-8", "replace").splitlines() if line.split("#")[0].strip()]
        return any(_are_settings(lines, pattern) for pattern in (_YAML_LINE, _TOML_LINE))

    def read(self, source: Source) -> list[Reading]:
        """One reading of settings; a file that breaks off, or that is no such document, says so."""
        reading = Reading(self.source, records=1)
        text = source.document()
        if text is None or len(text) > _MAX_TEXT:
            reading.remark("broken", f"larger than the {_MAX_TEXT >> 10} KiB of a recipe; not read")
            return [reading]
        parse: tuple[Callable[[str], Any], ...] = (tomllib.loads, yaml.safe_load)
        for document in parse:
            try:
                settings = document(text.decode())
            except (ValueError, yaml.YAMLError, RecursionError) as error:
                problem = " ".join(str(error).split())
            else:
                if isinstance(settings, dict):
                    reading.resolve(flattened(settings))
                    return [reading]
        reading.remark("broken", f"no recipe that can be read: {problem:.200}")
        return [reading]


def _are_settings(lines: list[str], pattern: re.Pattern[str]) -> bool:
    matches = [match for line in lines if (match := pattern.fullmatch(line.split(" #")[0].rstrip()))]
    names = [match[2].strip("\"'") for match in matches if match[2] is not None]
    outer = [match[2] for match in matches if match[2] is not None and not match[1]]
    # Sections of TOML may hold one name each.
    apart = pattern is _TOML_LINE or len(outer) == len(set(outer))
    return (
        len(matches) >= max(_MIN_NAMES, _SHARE * len(lines))
        and apart
        and _TRACKER.isdisjoint(names)
        and len({name.rpartition(".")[2] for name in names} & _known_names()) >= _MIN_NAMES
    )


@cache
def _known_names() -> frozenset[str]:
    """The names that arguments have in some framework's table, without their sections."""
    names = {
        name
        for framework in vocabulary.tables()
        for entry in vocabulary.table(framework).get("arguments", {}).values()
        for name in entry["names"]
    }
    return frozenset(name.rpartition(".")[2] for name in names)


READERS = (RecipeFile,)
