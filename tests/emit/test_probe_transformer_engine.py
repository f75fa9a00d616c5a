"""Transformer Engine, from modules that stand in for it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from probe_stage import Stage, StandIn, stand_in
from receipts.emit.probes import transformer_engine

pytestmark = pytest.mark.slow

__all__ = ["stand_in"]
PLACE = "transformer_engine.pytorch.attention.dot_product_attention.dot_product_attention"


class Base:
    """Stands in for TransformerEngineBaseModule."""

    def __init__(self, recipe: object = None) -> None:
        self.fp8_initialized = recipe is not None
        self.fp8_meta = {"recipe": recipe}


class Linear(Base):
    pass


class DelayedScaling:
    pass


class Float8BlockScaling:
    pass


def put(stand_in: StandIn, place: str = PLACE, **table: Any) -> Stage:
    stand_in("transformer_engine", __version__="2.13.0")
    stand_in("transformer_engine.pytorch.module.base", TransformerEngineBaseModule=Base)
    stand_in(place, _attention_backends={"attention_params": object(), **table})
    return Stage("transformer_engine")


@pytest.mark.parametrize(
    ("table", "name", "words"),
    [
        (
            {"use_fused_attention": True, "fused_attention_backend": SimpleNamespace(name="F16_arbitrary_seqlen")},
            "te_fused",
            "FusedAttention (F16_arbitrary_seqlen)",
        ),
        (
            {"use_fused_attention": True, "fused_attention_backend": "FusedAttnBackend.FP8"},
            "te_fused_fp8",
            "FusedAttention (FP8)",
        ),
        ({"use_flash_attention": True, "flash_attention_backend": "2.7.4"}, "te_flash", "FlashAttention (2.7.4)"),
        ({"use_unfused_attention": True}, "te_unfused", "UnfusedDotProductAttention"),
    ],
)
@pytest.mark.parametrize("place", [PLACE, "transformer_engine.pytorch.attention"])
def test_the_last_selection_is_witnessed(
    table: dict[str, Any], name: str, words: str, place: str, stand_in: StandIn
) -> None:
    stage = put(stand_in, place, **table)
    transformer_engine.at_end(stage.stated)
    assert stage.get("path.witnessed.attention") == name
    assert stage.observed("te-selection")["selected"] == words


def test_a_table_without_a_selection_says_nothing(stand_in: StandIn) -> None:
    stage = put(stand_in, attention_params=None, use_flash_attention=True)
    transformer_engine.at_end(stage.stated)
    assert stage.get("path.witnessed.attention") is None


def test_modules_are_counted_with_the_recipe_that_they_quantise_by(stand_in: StandIn) -> None:
    kept = [Linear(DelayedScaling()), Linear(DelayedScaling()), Linear()]
    stage = put(stand_in)
    transformer_engine.at_end(stage.stated)
    assert stage.observed("te-modules") == {"modules.Linear": len(kept), "modules_with_fp8": 2}
    assert stage.get("numerics.fp8_recipe") == "delayed"


def test_two_recipes_are_a_note(stand_in: StandIn) -> None:
    kept = [Linear(DelayedScaling()), Linear(Float8BlockScaling())]
    stage = put(stand_in)
    transformer_engine.at_end(stage.stated)
    assert len(kept) == 2
    assert stage.get("numerics.fp8_recipe") is None
    assert "DelayedScaling, Float8BlockScaling" in stage.notes
