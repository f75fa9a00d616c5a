"""StableHLO proves what was meant, and never what ran."""

from __future__ import annotations

from receipts.ingest.reading import Reading
from receipts.ingest.scan import scan
from receipts.readers.xla.hlo import Stablehlo

HEAD = "module @jit_train_step attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {\n"
CALL = '    %1 = stablehlo.custom_call @tpu_custom_call(%a) {kernel_name = "splash_mha_fwd"} : (t) -> t\n'


def reading(text: str) -> Reading:
    (found,) = scan([text.encode()], [Stablehlo])
    return found


def test_a_kernel_that_is_asked_for_is_an_intent() -> None:
    found = reading(HEAD + CALL * 2)
    assert found.counters["tpu_custom_call"] == 2
    assert [(item.leaf, item.value, item.level) for item in found.seen] == [("attention", "pallas_splash", "intent")]


def test_a_module_without_a_kernel_counts_none() -> None:
    found = reading(HEAD + "    %2 = stablehlo.dot_general %0, %1 : (tensor<4x4xf32>, tensor<4x4xf32>) -> t\n")
    assert (found.counters["tpu_custom_call"], found.counters["dot_general"]) == (0, 1)
    assert found.seen == []


def test_the_generic_form_names_its_target_in_an_attribute() -> None:
    text = '  %1 = "stablehlo.custom_call"(%a) {call_target_name = "__cudnn$fmhaSoftmax"} : (t) -> t\n'
    assert reading(HEAD + text).counters["__cudnn$fmhaSoftmax"] == 1


def test_shardings_of_arguments_are_counted_as_asked() -> None:
    text = (
        'func.func public @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}]>}, '
        "%arg1: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, "
        '%arg2: tensor<8xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}, '
        '%arg3: tensor<8xf32> {mhlo.sharding = "{replicated}"}) -> t {\n'
    )
    found = reading(HEAD + text)
    assert (found.counters["arguments_split"], found.counters["arguments_replicated"]) == (2, 2)


def test_another_programs_module_is_not_stablehlo() -> None:
    assert scan([b"loaded module @angular/core\n"], [Stablehlo]) == []
