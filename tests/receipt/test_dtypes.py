"""Types of numbers have one name each, however a source spells them."""

from __future__ import annotations

import pytest

from receipts.receipt.names import DTYPES, dtype, named, spelled, spellings


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("torch.bfloat16", "bf16"), ("c10::BFloat16", "bf16"), ("c10::Half", "fp16"), ("__half", "fp16"),
        ("float", "fp32"), ("double", "fp64"), ("tfloat32", "tf32"), ("f8e4m3fn", "fp8"), ("F8E4M3FN", "fp8"),
        ("f8e4m3b11fnuz", "fp8"), ("torch.float8_e5m2fnuz", "fp8"), ("float_e4m3", "fp8"), ("f4e2m1fn", "fp4"),
        ("float_e2m1", "fp4"), ("f6e3m2fn", "fp6"), ("s8", "int8"), ("u4", "int4"), ("pred", None), ("s32", None),
        ("", None), ("e", None),
    ],
)  # fmt: skip
def test_what_programs_print_has_one_name(symbol: str, name: str | None) -> None:
    assert dtype(symbol) == name


def test_every_name_is_its_own_spelling_and_no_spelling_has_two_names() -> None:
    for name, known in DTYPES.items():
        assert dtype(name) == name
        for word in (*known.words, *known.symbols, *spellings(name)):
            assert dtype(word) == name


def test_free_text_with_two_types_names_both() -> None:
    assert named("BF16 + FP8 indexer") == {"bf16", "fp8"}


def test_a_stated_type_is_respelled_where_it_is_the_same_type_and_kept_where_it_is_a_form_of_it() -> None:
    assert spelled("numerics.compute_dtype", "torch.float16") == "fp16"
    assert spelled("numerics.compute_dtype", "mxfp8") == "mxfp8"
