"""Section ``compile``: the posture that was asked for, and what compiling cost."""

from typing import Literal

from receipts.receipt.leaf import Bytes, Count, Name, Seconds, Section, axis, observed, regime

Posture = Literal["eager", "regional", "whole_graph", "xla_lazy", "xla_step", "jit"]


class Compile(Section):
    """Compile posture. `posture` and `cuda_graphs` are one axis each; a scope without an implementation is off."""

    posture: Posture | None = axis("How the step is compiled.", of="posture")
    regions: tuple[Name, ...] | None = axis("What is compiled, if only regions are.", of="posture")
    backend: Name | None = axis("Compiler: inductor, xla, tilelang, ….", of="posture")
    cuda_graph_implementation: Name | None = axis(
        "Who captures CUDA graphs: none, local, transformer_engine.", of="cuda_graphs"
    )
    cuda_graph_scope: tuple[Name, ...] | None = axis("What is captured.", of="cuda_graphs")
    warmup_policy: Name | None = axis("What the launch does before it measures.")
    cache_state: Literal["cold", "warm", "off"] | None = regime("State of the compile cache at the start.")
    compile_seconds: Seconds | None = observed("Total compile time.", unit="seconds")
    compile_seconds_stated: Name | None = observed("Source text of `compile_seconds`.")
    compiles: Count | None = observed("Programs compiled by a backend.")
    compiles_after_warmup: Count | None = observed("Compiles and recompiles after the window opened.")
    graph_breaks: Count | None = observed("Graph breaks in a graph that should be whole.")
    cache_hits: Count | None = observed("Programs found in the persistent cache.")
    cache_misses: Count | None = observed("Programs not found there.")
    program_digest: Name | None = observed("Digest of the compiled step.")
    argument_bytes: Bytes | None = observed("The compiler's argument bytes per chip.", unit="bytes")
    output_bytes: Bytes | None = observed("The compiler's output bytes per chip.", unit="bytes")
    temp_bytes: Bytes | None = observed("The compiler's temporary bytes per chip.", unit="bytes")
