"""torch_xla, lazily: a step ends in `torch_xla.sync()`; the loss is read every eighteenth step."""

import json
import time

import torch
import torch.nn.functional as F
import torch_xla
from torch import nn

STEPS, ROWS, LENGTH, VOCAB, DIM, LAYERS, HEADS = 36, 4, 32, 64, 32, 2, 4
device = torch_xla.device()
torch.manual_seed(0)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.qkv, self.out = nn.Linear(DIM, 3 * DIM), nn.Linear(DIM, DIM)
        self.mlp = nn.Sequential(nn.Linear(DIM, 4 * DIM), nn.GELU(), nn.Linear(4 * DIM, DIM))

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (HEADS, -1)).transpose(1, 2) for t in self.qkv(self.norm1(x)).chunk(3, -1))
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.mlp(self.norm2(x))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(VOCAB, DIM), nn.Linear(DIM, VOCAB)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))

    def forward(self, tokens):
        x = self.embed(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


model = Decoder().to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
times = []
for step in range(STEPS):
    begun = time.perf_counter()
    tokens = torch.randint(0, 20, (ROWS, LENGTH + 1)).to(device)
    optimizer.zero_grad()
    loss = F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    torch_xla.sync()
    if step % 18 == 17:
        print(step, loss.item())
    times.append(time.perf_counter() - begun)
truth = {"steps": STEPS, "tokens": ROWS * LENGTH, "micro": ROWS, "length": LENGTH, "accumulation": 1, "depth": LAYERS}
truth |= {"hidden": DIM, "vocabulary": VOCAB, "heads": HEADS, "parameters": sum(p.numel() for p in model.parameters())}
truth |= {"dtype": "fp32", "recompute": "none", "posture": "xla_lazy", "ms": 1e3 * sorted(times[10:])[13]}
print("TRUTH", json.dumps(truth))
