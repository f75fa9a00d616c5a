"""Classes of work by the table: each row has names that it must take, and names that it must not."""

from __future__ import annotations

from typing import Any

import pytest

from receipts.plugins.why.classes import base_name, host_kind, of_host_work, of_kernel, of_work, table

TABLE = table()
NAMES = [
    (section, item["class"], name, kind == "yes")
    for section in ("operators", "kernels", "host")
    for item in TABLE[section]
    for kind in ("yes", "no")
    for name in item[kind]
]


@pytest.mark.parametrize(("section", "wanted", "name", "takes"), NAMES)
def test_a_row_takes_its_examples_and_no_counter_example(section: str, wanted: str, name: str, takes: bool) -> None:
    classed = {
        "operators": lambda: of_host_work([name])[0],
        "kernels": lambda: of_kernel(name),
        "host": lambda: host_kind(name),
    }
    assert (classed[section]() == wanted) is takes


def test_every_class_of_the_table_has_its_place_in_the_order() -> None:
    ordered = {name for names in TABLE["order"].values() for name in names}
    assert {item["class"] for section in ("operators", "kernels", "host") for item in TABLE[section]} <= ordered


def test_a_base_name_has_no_template_arguments() -> None:
    name = "void at::native::(anonymous namespace)::CatArrayBatchedCopy<OpaqueType<2u>, 4>(float*, {lambda()#1})"
    assert base_name(name) == "at::native::anonymous::CatArrayBatchedCopy"


@pytest.mark.parametrize(
    ("work", "wanted"),
    [
        (("k", "softmax_warp_forward", ("aten::scaled_dot_product_attention", "aten::_softmax")), ("attention", "op")),
        (("k", "softmax_warp_forward", ("aten::softmax", "aten::_softmax")), ("norm/softmax", "op")),
        (("k", "vectorized_elementwise_kernel", ("Optimizer.step#AdamW.step", "aten::mul_")), ("optimizer", "op")),
        (("k", "splitKreduce_kernel", ("aten::linear", "aten::addmm")), ("gemm", "op")),
        (("k", "nvjet_tst_128", ("Torch-Compiled Region: 0/0",)), ("gemm", "name")),
        (("k", "what_is_it", ("Torch-Compiled Region: 0/0",)), ("other", "other")),
        (("k", "ncclDevKernel_AllReduce", ("Optimizer.step#AdamW.step",)), ("communication", "name")),
        (("y", "Memcpy HtoD (Pageable -> Device)", ("aten::copy_",)), ("memcpy H2D", "name")),
        (("s", "Memset (Device)", ()), ("copy", "name")),
        (("g", "graph 3", ()), ("CUDA graph", "other")),
    ],
)
def test_the_launching_operator_comes_before_the_name(work: Any, wanted: tuple[str, str]) -> None:
    assert of_work(*work) == wanted
