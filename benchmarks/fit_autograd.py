"""What autograd saves in plain torch modules of NAM56R's blocks: the first oracle of their saved tensors.

    python benchmarks/fit_autograd.py [--measure] [--json]

``--measure`` (needs torch, no accelerator) runs each module at each shape, notes the storages that autograd keeps for
the backward pass, each once, and writes their bytes to ``fit_autograd.json``. Without it the record is compared with
what the estimator says today: each within 1 %.

The modules follow the published definitions that `receipts.metrics.flops.geometry` and
`receipts.estimate.saved_tensors` cite. A kernel is an autograd function that keeps what the published kernel keeps;
between kernels torch runs plain operators and decides itself.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:] = [
    str(HERE.parent), *(place for place in sys.path if Path(place or ".").resolve() != HERE), str(HERE)
]  # fmt: skip

RECORD = HERE / "fit_autograd.json"
NEAR = 0.01
STEPS = 64
# Width, sequences, tokens, and what the block has of its own.
SHAPES: dict[str, tuple[str, dict[str, Any]]] = {}
for _index, (_hidden, _batch, _length) in enumerate(((512, 2, 256), (1024, 1, 512), (768, 3, 128))):
    _size = {"hidden": _hidden, "batch": _batch, "length": _length}
    _heads = _hidden // 64
    _latent = {"heads": _heads, "query": 192, "kv": 128, "nope": 64, "rope": 32, "value": 64}
    _indexer = {"index_heads": 8 << _index, "index_width": 64, "top_k": 64}
    SHAPES |= {
        f"DSA on MLA, {_hidden}": ("dsa_latent", _size | _latent | _indexer),
        f"DSA on MLA, no loss, {_hidden}": ("dsa_latent", _size | _latent | _indexer | {"trained": False}),
        f"DSA on MLA, scores, {_hidden}": ("dsa_latent", _size | _latent | _indexer | {"fused": False}),
        f"DSA on GQA, {_hidden}": ("dsa_full", _size | {"heads": _heads, "kv_heads": 2, "width": 64} | _indexer),
        f"Mamba-3 MIMO, {_hidden}": ("mamba3", _size | {"rank": 4 >> _index, "groups": 2, "state": 64, "head": 64}),
        f"M2RNN, {_hidden}": ("m2rnn", _size | {"heads": _hidden // 80, "key": 64, "value": 16}),
    }  # fmt: skip


def modules(owned: set[int]) -> dict[str, Callable[..., Any]]:
    """The modules, where torch is installed: each takes a shape and an input. Into ``owned`` go the storages that no
    activation is: parameters, and the table of positions that all layers share.
    """
    import torch
    from torch import nn
    from torch.nn import functional as f

    class Norm(torch.autograd.Function):
        """A fused norm: it keeps its input, the scale, and a figure a row."""

        @staticmethod
        def forward(ctx: Any, x: Any, scale: Any) -> Any:
            inverse = x.float().pow(2).mean(-1, keepdim=True).add(1e-6).rsqrt()
            ctx.save_for_backward(x, scale, inverse)
            return (x.float() * inverse * scale.float()).to(x.dtype)

        @staticmethod
        def backward(ctx: Any, *grad: Any) -> Any:
            raise NotImplementedError  # what the forward pass keeps is measured alone

    class Kernel(torch.autograd.Function):
        """A kernel with an output of a given shape: it keeps its inputs and what else it is told to."""

        @staticmethod
        def forward(ctx: Any, shape: Any, keeps: Any, keep_output: bool, *inputs: Any) -> Any:
            inputs = tuple(t.contiguous() for t in inputs)
            out = inputs[0].new_zeros(shape)
            ctx.save_for_backward(*inputs, *keeps, *((out,) if keep_output else ()))
            return out

        @staticmethod
        def backward(ctx: Any, *grad: Any) -> Any:
            raise NotImplementedError  # what the forward pass keeps is measured alone

    alive = []

    def own(tensor: Any) -> Any:
        alive.append(tensor)  # a storage that is freed may become another's
        owned.add(tensor.untyped_storage().data_ptr())
        return tensor

    def weight(*shape: int, dtype: Any = torch.bfloat16) -> Any:
        return own(nn.Parameter(torch.randn(*shape, dtype=dtype) * 0.02))

    def norm(x: Any) -> Any:
        return Norm.apply(x, weight(x.shape[-1]))

    def linear(x: Any, out: int) -> Any:
        return f.linear(x, weight(out, x.shape[-1]))

    def rope(x: Any) -> Any:
        half = x.shape[-1] // 2
        angle = torch.arange(x.shape[1], dtype=torch.float32)[:, None] / (1 + torch.arange(half))
        cos, sin = (own(torch.cat([t, t], -1).to(x.dtype)[None, :, None]) for t in (angle.cos(), angle.sin()))
        return x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * sin

    def choose(s: dict[str, Any], y: Any, query: Any, attention: tuple[Any, Any]) -> Any:
        """The indexer: Megatron-Core's `DSAIndexer.forward_before_topk` and `FusedDSAIndexerLoss`."""
        heads, width = s["index_heads"], s["index_width"]
        with torch.set_grad_enabled(s.get("trained", True)):
            y, query = y.detach(), query.detach()
            q = linear(query, heads * width).reshape(*y.shape[:2], heads, width)
            q = torch.cat([rope(q[..., : width // 2]), q[..., width // 2 :]], -1)
            k = Kernel.apply((*y.shape[:2], width), (), False, linear(y, width), weight(width))  # LayerNorm
            k = torch.cat([rope(k[..., None, : width // 2])[..., 0, :], k[..., width // 2 :]], -1)
            weights = linear(y, heads) * heads**-0.5
            scores = torch.einsum("bshd,btd->bsht", q.detach().float(), k.detach().float()).relu()
            chosen = (scores * weights.detach()[..., None]).sum(2).topk(s["top_k"], dim=-1)[1]
            if not s.get("trained", True):
                return chosen, None
            loss = Kernel.apply((), (*(t.detach() for t in attention), chosen), False, q, weights, k)
        return chosen, loss

    def attend(s: dict[str, Any], query: Any, key: Any, value: Any, chosen: Any, width: int) -> Any:
        """Attention over the chosen keys: a kernel with row sums, or plain operators (`_unfused_absorbed_dsa_fn`)."""
        batch, length, heads, _ = query.shape
        if s.get("fused", True):
            keeps = (torch.zeros(batch, length, heads), chosen)
            inputs = (query, key) if value is None else (query, key, value)
            return Kernel.apply((batch, length, heads, width), keeps, True, *inputs)
        raw = torch.matmul(query.permute(0, 2, 1, 3).float(), key.permute(0, 2, 3, 1).float()) * 0.1
        mask = torch.full((batch, length, length), float("-inf")).scatter_(-1, chosen, 0.0)
        probabilities = (raw + mask[:, None]).softmax(-1)
        return torch.matmul(probabilities.to(key.dtype), key[..., :width].permute(0, 2, 1, 3)).permute(0, 2, 1, 3)

    def dsa_latent(s: dict[str, Any], x: Any) -> Any:
        """DSA in MLA's multi-query form, where every head reads the latent vector itself."""
        heads, rank, position = s["heads"], s["kv"], s["rope"]
        y = norm(x)
        low = norm(linear(y, s["query"]))
        q = linear(low, heads * (s["nope"] + position)).reshape(*x.shape[:2], heads, -1)
        down = linear(y, rank + position)
        latent, place = norm(down[..., :rank]), rope(down[..., None, rank:])
        absorbed = torch.einsum("bshd,hdc->bshc", q[..., : s["nope"]], weight(heads, s["nope"], rank))
        query = torch.cat([absorbed, rope(q[..., s["nope"] :])], -1)
        key = torch.cat([latent[..., None, :], place], -1)
        chosen, loss = choose(s, y, low, (query, key))
        core = attend(s, query, key, None, chosen, rank)
        out = torch.einsum("bshc,hcd->bshd", core, weight(heads, rank, s["value"]))
        return x + linear(out.flatten(2), x.shape[-1]), loss

    def dsa_full(s: dict[str, Any], x: Any) -> Any:
        """DSA beside grouped-query attention."""
        heads, groups, width = s["heads"], s["kv_heads"], s["width"]
        y = norm(x)
        q, k, v = (linear(y, n * width).reshape(*x.shape[:2], n, width) for n in (heads, groups, groups))
        q, k = rope(q), rope(k)
        chosen, loss = choose(s, y, y, (q, k))
        core = attend(s, q, k, v, chosen, width)
        return x + linear(core.flatten(2), x.shape[-1]), loss

    def mamba3(s: dict[str, Any], x: Any) -> Any:
        """`Mamba3.forward` with the TileLang kernel of MIMO, which keeps its inputs alone."""
        batch, length, hidden = x.shape
        inner, rank, state, groups = 2 * hidden, s["rank"], s["state"], s["groups"]
        heads, angles = inner // s["head"], state // 4
        wide = groups * state * rank
        y = norm(x)
        parts = linear(y, 2 * inner + 2 * wide + 3 * heads + angles).split(
            [inner, inner, wide, wide, heads, heads, heads, angles], -1
        )
        z, v = (t.reshape(batch, length, heads, -1) for t in parts[:2])
        b, c = (norm(t.reshape(batch, length, rank, groups, state).contiguous()) for t in parts[2:4])
        trap = parts[6].transpose(1, 2)
        decay = torch.clamp(-f.softplus(parts[5].float()), max=-1e-4)
        step = f.softplus(parts[4] + weight(heads, dtype=torch.float32))
        turned = parts[7].unsqueeze(-2).expand(-1, -1, heads, -1).float()
        inputs = (c, b, v, (decay * step).transpose(1, 2), step.transpose(1, 2), trap, turned, z)
        out = Kernel.apply((batch, length, heads, s["head"]), (), False, *inputs)
        return x + linear(out.flatten(2), hidden), None

    def m2rnn(s: dict[str, Any], x: Any) -> Any:
        """lm-engine's `M2RNN.forward`; the kernel keeps a state every 64 steps (cppmega's m2rnn_triton)."""
        batch, length, hidden = x.shape
        heads, key, value = s["heads"], s["key"], s["value"]
        inner, convolved = heads * value, 2 * key + heads * value
        projected = linear(norm(x), convolved + heads + inner)
        mixed, forget, gate = projected.split([convolved, heads, inner], -1)
        forget = forget.float() + weight(heads, dtype=torch.float32)
        forget = torch.exp(-weight(heads, dtype=torch.float32) * f.softplus(forget)).to(x.dtype)
        taps = weight(convolved, 1, 4)
        mixed = f.conv1d(mixed.transpose(1, 2), taps, weight(convolved), padding=3, groups=convolved)[..., :length]
        mixed = f.silu(mixed).transpose(1, 2).contiguous()
        q, k, v = mixed.split([key, key, inner], -1)
        v = v.reshape(batch, length, heads, value)
        states = torch.zeros(batch, -(-length // STEPS) + 1, heads, key, value)
        out = Kernel.apply(
            (batch, length, heads, value), (states,), False, q, k, v, weight(heads, value, value), forget
        )
        out = (out + v * weight(heads, value)).flatten(2) * f.silu(gate)
        return x + linear(norm(out), hidden), None

    return {"dsa_latent": dsa_latent, "dsa_full": dsa_full, "mamba3": mamba3, "m2rnn": m2rnn}


def measure() -> dict[str, int]:
    """Bytes of the storages that autograd keeps beside parameters, by shape."""
    import torch

    owned: set[int] = set()
    built, kept = modules(owned), {}
    for name, (kind, shape) in SHAPES.items():
        storages: dict[int, int] = {}

        def keep(tensor: Any, into: dict[int, int] = storages) -> Any:
            if tensor.dim():
                into[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
            return tensor

        x = torch.randn(shape["batch"], shape["length"], shape["hidden"], dtype=torch.bfloat16, requires_grad=True)
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            out = built[kind](shape, x)
        kept[name] = sum(size for at, size in storages.items() if at not in owned)
        del out
    return kept


def stated(kind: str, shape: dict[str, Any]) -> dict[str, Any]:
    """The shape as leaves of a plan of one block."""
    leaves: dict[str, Any] = {
        "model.hidden": shape["hidden"], "model.depth": 1, "model.vocabulary": 1024, "model.family": "hybrid",
        "batch.micro_batch": shape["batch"], "batch.sequence_length": shape["length"], "hardware.chips": 1,
        "numerics.compute_dtype": "bf16",
    }  # fmt: skip
    if kind == "mamba3":
        return leaves | {
            "model.pattern": "M", "model.ssm_variant": f"Mamba-3 MIMO R{shape['rank']}",
            "model.ssm_state": shape["state"], "model.ssm_groups": shape["groups"],
            "model.ssm_heads": 2 * shape["hidden"] // shape["head"], "features.mamba_head_dim": shape["head"],
        }  # fmt: skip
    if kind == "m2rnn":
        return leaves | {"model.pattern": "R", "model.alphabet": "nam", "model.ssm_variant": "M2RNN"}
    leaves |= {
        "model.pattern": "A", "model.alphabet": "nam", "model.attention_kinds": "1 DSA", "model.heads": shape["heads"],
        "features.index_n_heads": shape["index_heads"], "features.index_head_dim": shape["index_width"],
        "features.index_topk": shape["top_k"], "model.sparse_attention": "tilelang",
        "features.dsa_indexer_loss_coeff": 0.001 if shape.get("trained", True) else 0,
    }  # fmt: skip
    if not shape.get("fused", True):
        leaves["model.sparse_attention"] = "unfused"
    if kind == "dsa_full":
        return leaves | {"model.kv_heads": shape["kv_heads"], "model.head_dim": shape["width"]}
    latent = ("q_lora_rank", "query"), ("kv_lora_rank", "kv"), ("qk_nope_head_dim", "nope"), ("v_head_dim", "value")
    widths = {f"features.{path}": shape[name] for path, name in latent}
    return leaves | widths | {"features.qk_rope_head_dim": shape["rope"], "model.attention_kinds": "1 DSA on MLA"}


def compare() -> Iterator[dict[str, Any]]:
    """Each shape on record with what the estimator says that the block keeps."""
    from receipts.estimate.resolve import Circumstances, resolve
    from receipts.estimate.saved_tensors import saved_tensors

    record: dict[str, int] = json.loads(RECORD.read_text(encoding="utf-8"))
    for name, (kind, shape) in SHAPES.items():
        found = resolve(stated(kind, shape), Circumstances("nvidia-megatron", ("megatron-core",)))
        assert found.setup is not None, f"{name}: state {', '.join(found.missing)}"
        (block,) = found.setup.model.layers[0]
        kept = sum(item.bytes for item in saved_tensors(found.setup, block))
        yield {"name": name, "estimated": kept, "saved": record[name], "error": kept / record[name] - 1,
               "uncounted": list(found.uncounted)}  # fmt: skip


def main() -> int:
    """Measure where asked, compare, print; 0 where every block is within 1 %."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.measure:
        RECORD.write_text(json.dumps(measure(), indent=1, sort_keys=True) + "\n", encoding="utf-8")
        return 0
    rows = list(compare())
    if options.json:
        print(json.dumps(rows, indent=1))
    else:
        for row in rows:
            print(f"{row['name']:28} {row['estimated']:14,.0f} {row['saved']:14,} {row['error']:+8.2%}")
    near = sum(abs(row["error"]) <= NEAR and not row["uncounted"] for row in rows)
    print(f"within 1 % of what autograd saves: {near} of {len(rows)}", file=sys.stderr if options.json else sys.stdout)
    return 0 if near == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
