"""A value is a frozen dataclass like the standard library's, but for what it costs to define."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from functools import cached_property
from typing import Any

import pytest

from receipts.base import value
from receipts.base.value import dataclass

# What a type checker takes for the same is told apart here.
own: Callable[..., Any] = vars(value)["dataclass"]


def _declared(decorator: Callable[..., Any], name: str, **options: bool) -> Any:
    class Step:
        """One step."""

        number: int
        seconds: float = 1.5
        marks: dict[str, int] = dataclasses.field(default_factory=dict)
        kept: str = dataclasses.field(default="", compare=False, repr=False)

        def __post_init__(self) -> None:
            if self.number < 0:
                raise ValueError("a step before the first")

    Step.__name__ = Step.__qualname__ = name
    return decorator(frozen=True, **options)(Step)


OPTIONS = [{}, {"slots": True}, {"eq": False}, {"slots": True, "eq": False}]
Slotted = _declared(own, "Slotted", slots=True)
Plain = _declared(own, "Plain")


@dataclass(frozen=True)
class Tagged:
    """Hashable, with a value worked out once."""

    name: str
    tags: tuple[str, ...] = ()

    @cached_property
    def length(self) -> int:
        return len(self.name)


@pytest.mark.parametrize("options", OPTIONS)
def test_a_value_behaves_as_the_standard_frozen_dataclass(options: dict[str, bool]) -> None:
    mine, theirs = _declared(own, "Step", **options), _declared(dataclasses.dataclass, "Step", **options)

    def seen(step: Any) -> list[object]:
        one, same, other = step(1, marks={"a": 1}), step(number=1, marks={"a": 1}, kept="x"), step(2)
        return [
            repr(one),
            one == same,
            one == other,
            one == (1, 1.5, {"a": 1}, ""),
            step.__match_args__,
            dataclasses.asdict(same),
            dataclasses.replace(one, number=3).number,
            [item.name for item in dataclasses.fields(step)],
            dataclasses.is_dataclass(step),
            hasattr(one, "__dict__"),
            step(1).marks is not step(1).marks,
        ]

    assert seen(mine) == seen(theirs)


@pytest.mark.parametrize("call", [lambda s: s(), lambda s: s(1, 2, {}, "", 5), lambda s: s(1, colour=2)])
def test_a_wrong_call_is_refused_in_the_same_words(call: Callable[[Any], object]) -> None:
    said = []
    for decorator in (own, dataclasses.dataclass):
        step = _declared(decorator, "Step")
        with pytest.raises(TypeError) as refused:
            call(step)
        said.append(str(refused.value))
    assert said[0] == said[1]


@pytest.mark.parametrize("step", [Slotted, Plain])
def test_a_value_cannot_be_changed(step: Any) -> None:
    one = step(1)
    for name in ("number", "colour"):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(one, name, 2)
    with pytest.raises(dataclasses.FrozenInstanceError):
        del one.number
    assert one.number == 1


def test_what_a_value_checks_of_itself_is_checked() -> None:
    with pytest.raises(ValueError, match="a step before the first"):
        Plain(-1)


@pytest.mark.parametrize("step", [Slotted, Plain])
def test_a_value_goes_to_another_process_and_is_copied(step: Any) -> None:
    one = step(1, 2.5, {"a": 1}, "kept")
    for other in (pickle.loads(pickle.dumps(one)), copy.deepcopy(one), copy.copy(one)):
        assert other == one
        assert other.kept == "kept"


def test_equal_values_are_one_key_and_what_was_worked_out_of_them_does_not_count() -> None:
    a, b = Tagged("a", ("x",)), Tagged("a", ("x",))
    assert a.length == 1
    assert {a, b} == {a}
    assert hash(a) != hash(Tagged("a"))
    with pytest.raises(TypeError, match="unhashable"):
        hash(Plain(1))


def test_a_value_compared_by_identity_has_the_hash_of_one() -> None:
    step = _declared(own, "Step", eq=False)
    one = step(1)
    assert one == one
    assert one != step(1)
    assert len({one, step(1)}) == 2


def test_what_changes_is_no_value() -> None:
    with pytest.raises(TypeError, match="a value is frozen"):
        own(frozen=False)
