"""What a launch was started with, as parts of its configuration: one for each input that counts.

An option that says its default, or what a stated leaf says already, adds nothing: two launches of one configuration
have one digest, however their lines were typed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from receipts.axes.bookkeeping import LENGTH, TOPOLOGY
from receipts.axes.inputs import PREFIX, VARIABLE, Input, LaunchInputs, handed_on, inputs_of, named_leaves
from receipts.emit.launch_line import launcher_role
from receipts.emit.launch_values import normal, text_of
from receipts.emit.secrets import HIDDEN
from receipts.receipt import Parsed

if TYPE_CHECKING:
    from receipts.axes.lane import Lane

PROGRAM_PART: Final = f"{PREFIX}*"  # what the program makes of its inputs: it follows each of them


class InputParts(NamedTuple):
    """Axis and value of each input that counts. ``anchor`` fills what is unstated; empty where inputs hold nothing."""

    parts: tuple[tuple[str, str], ...] = ()
    anchor: str = ""


def input_parts(parsed: Parsed, lane: Lane, *, machine: bool) -> InputParts:
    """The parts of a receipt's inputs; ``machine``: it leaves something unstated that its host decides."""
    if parsed.receipt.inputs is None:
        return InputParts()  # a command alone is compared launch by launch, and need not be read for this
    inputs = inputs_of(parsed)
    if inputs is None or not inputs.recorded:
        return InputParts()
    parts = dict(_parts(inputs, parsed, lane))
    anchor = ""
    host = parsed.receipt.run.host
    if inputs.whole and inputs.program is not None:
        on_host = machine or bool(inputs.unread)
        if not on_host or host is not None:
            anchor = f"inputs {inputs.program}{f' on {host}' if on_host else ''}"
            parts["*"] = inputs.program
    return InputParts(tuple((PREFIX + key, value) for key, value in sorted(parts.items())), anchor)


def _parts(inputs: LaunchInputs, parsed: Parsed, lane: Lane) -> Iterator[tuple[str, str]]:
    books = lane.books
    for key in inputs.options:
        item, default = inputs.value(key), inputs.defaults.get(key)
        if item is None or HIDDEN in item.text or item.output or books.role(key, item.text) not in ("", LENGTH):
            continue
        if (default is None or normal(default) != item.form) and not _states(key, item, parsed):
            yield key, item.form
    flags = {key.partition(".")[0] for key in parsed.receipt.flags or ()}
    counted = parsed.stated.get("hardware.chips") is not None
    for name, item in (inputs.environment or {}).items():
        role, default = books.variable(name, item.text), inputs.defaults.get(f"{VARIABLE}{name}")
        if default is not None and normal(default) == item.form:
            continue
        if name not in flags and HIDDEN not in item.text and (not role or (role == TOPOLOGY and not counted)):
            yield f"{VARIABLE}{name}", item.form
    for key, text in inputs.launcher.items():
        role = launcher_role(key)
        if any(handed_on(key, option) and normal(text) == item.form for option, item in inputs.options.items()):
            continue
        if "." in key and (role == "setting" or (role == TOPOLOGY and not counted)):
            yield f"launcher.{key}", normal(text)


def _states(key: str, item: Input, parsed: Parsed) -> bool:
    """Whether a leaf that the option states is stated with its value."""
    stated = (parsed.stated.get(leaf) for leaf in named_leaves(key))
    return any(value is not None and normal(text_of(value)) == item.form for value in stated)


def typed_options(parsed: Parsed, lane: Lane) -> frozenset[tuple[str, str]]:
    """The options that count of a launch that has no inputs but its command; empty of any other."""
    inputs = inputs_of(parsed)
    known = inputs.options.items() if inputs is not None and not inputs.recorded else ()
    return frozenset((key, item.form) for key, item in known if lane.books.role(key, item.text) in ("", LENGTH))


def input_value(parsed: Parsed, path: str) -> str | None:
    """An input of a launch by its path, ``inputs.lr``, as it was typed, resolved, or by default."""
    inputs, key = inputs_of(parsed), path.removeprefix(PREFIX)
    if inputs is None:
        return None
    if key.startswith(VARIABLE):
        item = inputs.variable(key.removeprefix(VARIABLE))
    elif key.startswith("launcher."):
        return inputs.launcher.get(key.removeprefix("launcher."))
    else:
        item = inputs.value(key)
    return None if item is None else item.text
