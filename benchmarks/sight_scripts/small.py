"""Small loops of many kinds around one decoder; the first argument names the kind."""

import json
import sys
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

kind = sys.argv[1]
STEPS, ROWS, LENGTH, VOCAB, DIM, LAYERS, HEADS, FFN = 36, 4, 48, 80, 48, 3, 4, 128
truth = {"steps": STEPS, "tokens": ROWS * LENGTH, "micro": ROWS, "length": LENGTH, "accumulation": 1, "depth": LAYERS}
truth |= {"hidden": DIM, "vocabulary": VOCAB, "heads": HEADS, "dtype": "fp32", "recompute": "none", "posture": "eager"}
torch.manual_seed(0)


class Experts(nn.Module):
    """Two of eight experts a token."""

    def __init__(self):
        super().__init__()
        self.router = nn.Linear(DIM, 8, bias=False)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(DIM, 64), nn.GELU(), nn.Linear(64, DIM)) for _ in range(8))

    def forward(self, x):
        flat = x.reshape(-1, DIM)
        weights, picked = self.router(flat).softmax(-1).topk(2, dim=-1)
        out = torch.zeros_like(flat)
        for number, expert in enumerate(self.experts):
            token, slot = (picked == number).nonzero(as_tuple=True)
            out = out.index_add(0, token, expert(flat[token]) * weights[token, slot, None])
        return out.reshape(x.shape)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (nn.Linear(DIM, DIM) for _ in range(4))
        if kind == "moe":
            self.mlp = Experts()
        else:
            self.mlp = nn.Sequential(nn.Linear(DIM, FFN), nn.SiLU(), nn.Linear(FFN, DIM))

    def forward(self, x):
        y, shape = self.norm1(x), (x.shape[0], x.shape[1], HEADS, DIM // HEADS)
        q, k, v = (proj(y).view(shape).transpose(1, 2) for proj in (self.q_proj, self.k_proj, self.v_proj))
        x = x + self.o_proj(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.mlp(self.norm2(x))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, DIM)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(DIM), nn.Linear(DIM, VOCAB, bias=False)

    def forward(self, tokens):
        x = self.embed(tokens)
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False) if kind == "checkpointing" else layer(x)
        return self.head(self.norm(x))


model = net = Decoder()
truth["parameters"] = sum(weight.numel() for weight in model.parameters())
rank, autocast, scaler = 0, False, None
if kind in ("ddp", "fsdp2"):
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    truth["tokens"] *= world
    torch.manual_seed(rank)
if kind == "ddp":
    net = nn.parallel.DistributedDataParallel(model)
elif kind == "fsdp2":
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (world,), mesh_dim_names=("dp",))
    for layer in model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
elif kind == "bf16_scaler":
    autocast, scaler, truth["dtype"] = True, torch.amp.GradScaler("cpu"), "bf16"
elif kind == "checkpointing":
    truth["recompute"] = "full"
elif kind == "compile_model":
    net, truth["posture"] = torch.compile(model), "whole_graph"
elif kind == "compile_method":
    model.compile()
    truth["posture"] = "whole_graph"
elif kind == "compile_layers":
    for layer in model.layers:
        layer.compile()
    truth["posture"] = "regional"


def loss_of(tokens):
    return F.cross_entropy(net(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())


if kind == "compile_function":
    loss_of, truth["posture"] = torch.compile(loss_of), "whole_graph"
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
times = []
for step in range(STEPS):
    begun = time.perf_counter()
    tokens = torch.randint(0, 20, (ROWS, LENGTH + 1))
    optimizer.zero_grad()
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        loss = loss_of(tokens)
    if scaler is not None:
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
    else:
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    if step % 6 == 0 and rank == 0:
        print(step, loss.item())
    times.append(time.perf_counter() - begun)
if dist.is_initialized():
    dist.destroy_process_group()
if rank == 0:
    print("TRUTH", json.dumps(truth | {"ms": 1e3 * sorted(times[10:])[len(times[10:]) // 2]}))
