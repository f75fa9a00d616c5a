"""The path that Megatron's arguments ask for: kernels, dispatch, overlap, CUDA graphs. Intent, never evidence."""

from __future__ import annotations

import re
from typing import Final

from receipts.ingest.evidence import vocabulary
from receipts.ingest.evidence.arguments import Arguments, Leaves
from receipts.ingest.evidence.frameworks.megatron.model import has_experts

_TABLE: Final = vocabulary.table("megatron")
_SCOPE: Final = re.compile(r"[A-Za-z_][\w.]{0,60}")


def state(leaves: Leaves) -> None:
    """State the leaves of `path.intended` and `compile` that the arguments give."""
    arguments = leaves.arguments
    _kernels(leaves)
    _dispatch(leaves)
    _graphs(leaves)
    asked = [name for name in _TABLE["lists"]["overlaps"] if arguments.flag(name) is not None]
    if asked:
        on = [name for name in asked if arguments.flag(name)]
        leaves.put("path.intended.overlap", "+".join(on) or "none", (on or asked)[0])
    fused = arguments.flag("cross_entropy_loss_fusion")
    if fused is not None:
        kind = arguments.text("cross_entropy_fusion_impl") or "native"
        leaves.put("path.intended.cross_entropy", f"fused_{kind}" if fused else "unfused", "cross_entropy_loss_fusion")


def _kernels(leaves: Leaves) -> None:
    arguments = leaves.arguments
    implementation = arguments.name("transformer_impl")
    text = arguments.text("transformer_impl") if implementation else None
    te = text == "transformer_engine" or arguments.flag("transformer_engine")
    if te:
        leaves.put("path.intended.gemm", "te", implementation or "transformer_engine")
    elif text == "local":
        leaves.put("path.intended.gemm", "cublas", "transformer_impl")
    backend = (arguments.text("attention_backend") or "").rsplit(".", 1)[-1]
    # NeMo prints the member of the enumeration whole: <AttnBackend.fused: 2>.
    backend = backend.split(":")[0].strip("<>' ")
    known = _TABLE["words"]["attention_local" if text == "local" else "attention"]
    if backend == "auto":
        leaves.put("features.attention_backend", "auto", "attention_backend")
    elif backend in known:
        leaves.put("path.intended.attention", known[backend], "attention_backend")
    elif arguments.flag("use_flash_attn"):
        leaves.put("path.intended.attention", "te_flash" if te else "flash2", "use_flash_attn")
    elif arguments.flag("use_flash_attn_v2"):
        leaves.put("path.intended.attention", "flash2", "use_flash_attn_v2")


def _dispatch(leaves: Leaves) -> None:
    arguments = leaves.arguments
    experts = has_experts(arguments)
    name = arguments.name("moe_token_dispatcher_type")
    if experts is False and name:
        leaves.put("path.intended.dispatch", "none", name)
    if not experts or name is None:
        return
    kind = arguments.text(name)
    backend = arguments.name("moe_flex_dispatcher_backend")
    if kind == "flex" and (arguments.flag("moe_enable_deepep") or backend):
        kind = "deepep" if arguments.flag("moe_enable_deepep") or backend is None else arguments.text(backend)
    leaves.put("path.intended.dispatch", kind, name)


def _graphs(leaves: Leaves) -> None:
    arguments = leaves.arguments
    kind, name = _graph_maker(arguments)
    leaves.put("compile.cuda_graph_implementation", kind, name)
    scope = arguments.name("cuda_graph_scope", "cuda_graph_modules")
    if kind not in {None, "none"} and scope:
        scopes = [word.rsplit(".", 1)[-1] for word in _SCOPE.findall(arguments.text(scope) or "")]
        leaves.put("compile.cuda_graph_scope", scopes[:40] or None, scope)


def _graph_maker(arguments: Arguments) -> tuple[str | None, str]:
    if "cuda_graph_impl" in arguments.values:
        return ("none" if arguments.off("cuda_graph_impl") else arguments.text("cuda_graph_impl")), "cuda_graph_impl"
    for name, kind in (("external_cuda_graph", "transformer_engine"), ("enable_cuda_graph", "local")):
        if arguments.flag(name):
            return kind, name
    return ("none", "enable_cuda_graph") if arguments.flag("enable_cuda_graph") is False else (None, "")
