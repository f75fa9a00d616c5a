"""Megatron-LM's arguments, as its training loop holds them: what was asked for, and never what ran.

`megatron.training.global_vars` keeps one object of arguments once it is initialised; an attribute that this version
does not have is absent. What they state is in `receipts.emit.megatron_rules`.
Sources: `global_vars.py`, core 0.9 to 0.20.
"""

from __future__ import annotations

from receipts.emit.configuration import object_settings
from receipts.emit.contract import contract
from receipts.emit.megatron_rules import RULES
from receipts.emit.probes import imported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from receipts.emit.megatron_rules import Put
    from receipts.emit.probing import ProbeOutput

NAME = "megatron"
_GLOBALS = ("megatron.training.global_vars", "megatron.global_vars")
_NOTHING = (None, "", "none", "None")
_FP8 = {"uint8": "fp8", "float8_e4m3fn": "fp8"}


class MegatronArguments:
    """Megatron's arguments by name; ``off`` tells one that says nothing (None) from one that is not there."""

    def __init__(self, namespace: Any) -> None:
        self.arguments: dict[str, Any] = dict(vars(namespace))

    def has(self, name: str) -> bool:
        """Whether this version has such an argument."""
        return name in self.arguments

    def off(self, name: str) -> bool:
        """Whether it is there and says nothing."""
        return self.has(name) and self.arguments[name] in _NOTHING

    def name(self, *names: str) -> str | None:
        """The first of some arguments that says something; None where none does."""
        return next((name for name in names if self.has(name) and not self.off(name)), None)

    def text(self, name: str) -> str | None:
        """A text, or the name of an enumeration's member; of several the words."""
        value = self.arguments.get(name)
        return None if value is None else " ".join(self.words(name))

    def words(self, name: str) -> list[str]:
        """The items of a list; one of what is no list."""
        value = self.arguments.get(name)
        return [str(getattr(item, "name", item)) for item in (value if isinstance(value, list | tuple) else [value])]

    def integer(self, name: str) -> int | None:
        """A whole number."""
        value = self.arguments.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def whole(self, *names: str) -> int | None:
        """The first of some arguments that says something, where it is a whole number above zero."""
        value = self.integer(self.name(*names) or "")
        return value if value is not None and value >= 1 else None

    def flag(self, name: str) -> bool | None:
        """A switch; None where it is not there, or no switch."""
        value = self.arguments.get(name)
        return value if isinstance(value, bool) else None

    def dtype(self, name: str) -> str | None:
        """A torch type in short."""
        word = (self.text(name) or "").rpartition(".")[2]
        known = contract().names
        precision = _FP8.get(word) or known.get(word, word)
        return precision if precision in {*known.values(), *_FP8.values()} else None

    def scalar(self, name: str) -> bool | int | float | str | None:
        """A value for an open map; None where it says nothing."""
        value = None if self.off(name) else self.arguments.get(name)
        if value is None or isinstance(value, bool | int | float | str):
            return value
        return str(getattr(value, "name", value))[:400]

    def read(self, name: str, entry: Mapping[str, Any]) -> Any:
        """An argument as the kind that the vocabulary gives it; None where it says nothing."""
        if self.name(name) is None:
            return None
        if entry["kind"] == "choice":
            return entry["values"].get(str(self.arguments[name]))
        kinds: dict[str, Callable[[str], Any]] = {
            "count": self.whole,
            "switch": self.flag,
            "dtype": self.dtype,
            "word": self.text,
        }
        return kinds.get(entry["kind"], self.arguments.get)(name)


def at_phase(stated: ProbeOutput, phase: str) -> None:
    """State the arguments once they are there, which is after Megatron's own initialisation."""
    if phase in ("post_step0", "steady"):
        stated_arguments = arguments()
        if stated_arguments is not None:
            state(stated, MegatronArguments(stated_arguments))


def arguments() -> Any:
    """The object of arguments; None before Megatron has parsed them."""
    return next((held for name in _GLOBALS if (held := imported.part(name, "_GLOBAL_ARGS")) is not None), None)


def state(stated: ProbeOutput, given: MegatronArguments) -> None:
    """State every leaf that these arguments give."""

    def put(path: str, value: Any, _: str) -> None:
        stated.put(path, value)

    if stated.rank == 0:
        stated.inputs("resolved", object_settings(given.arguments))
    for rule in (*RULES, _host):
        try:
            rule(put, given)
        except Exception as error:
            stated.note(f"{rule.__name__.strip('_')}: {type(error).__name__}: {str(error)[:200]}")


def _host(put: Put, given: MegatronArguments) -> None:
    put("path.witnessed.framework", "megatron-lm", "")
    put("path.witnessed.frameworks", ["megatron-lm"], "")
    graphs = imported.part("megatron.core.transformer.cuda_graphs", "_CudagraphGlobalRecord")
    if graphs is not None and given.text("cuda_graph_impl") == "local":
        put("path.witnessed.cuda_graphs", bool(getattr(graphs, "cudagraph_created", False)), "")
