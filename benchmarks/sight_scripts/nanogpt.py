"""In the style of nanoGPT: tied weights, accumulation, clipping, evaluation in the loop, a checkpoint by torch.save."""

import json
import math
import time

import torch
import torch.nn as nn
from torch.nn import functional as F

batch_size, block_size, vocab_size, n_layer, n_head, n_embd, grad_accum = 4, 64, 96, 4, 4, 64, 2
max_iters, eval_interval = 36, 12
torch.manual_seed(1337)


class CausalSelfAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.c_attn = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.c_proj = nn.Linear(n_embd, n_embd, bias=False)

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = (t.view(B, T, n_head, C // n_head).transpose(1, 2) for t in self.c_attn(x).split(n_embd, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y.transpose(1, 2).contiguous().view(B, T, C))


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.c_fc = nn.Linear(n_embd, 4 * n_embd, bias=False)
        self.c_proj = nn.Linear(4 * n_embd, n_embd, bias=False)

    def forward(self, x):
        return self.c_proj(F.gelu(self.c_fc(x)))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.attn = nn.LayerNorm(n_embd), CausalSelfAttention()
        self.ln_2, self.mlp = nn.LayerNorm(n_embd), MLP()

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.transformer = nn.ModuleDict(
            {
                "wte": nn.Embedding(vocab_size, n_embd),
                "wpe": nn.Embedding(block_size, n_embd),
                "h": nn.ModuleList([Block() for _ in range(n_layer)]),
                "ln_f": nn.LayerNorm(n_embd),
            }
        )
        self.lm_head = nn.Linear(n_embd, vocab_size, bias=False)
        self.transformer.wte.weight = self.lm_head.weight

    def forward(self, idx, targets=None):
        x = self.transformer.wte(idx) + self.transformer.wpe(torch.arange(idx.size(1)))
        for block in self.transformer.h:
            x = block(x)
        logits = self.lm_head(self.transformer.ln_f(x))
        return logits, F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))


data = torch.randint(0, 24, (4000,)).repeat(2)


def get_batch():
    ix = torch.randint(len(data) - block_size - 1, (batch_size,))
    return torch.stack([data[i : i + block_size] for i in ix]), torch.stack(
        [data[i + 1 : i + 1 + block_size] for i in ix]
    )


@torch.no_grad()
def estimate_loss():
    model.eval()
    losses = [model(*get_batch())[1].item() for _ in range(3)]
    model.train()
    return sum(losses) / 3


model = GPT()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95))
times = []
for iter_num in range(max_iters):
    t0 = time.perf_counter()
    for group in optimizer.param_groups:
        group["lr"] = 1e-3 * 0.5 * (1 + math.cos(math.pi * iter_num / max_iters))
    for _ in range(grad_accum):
        _, loss = model(*get_batch())
        (loss / grad_accum).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    times.append(time.perf_counter() - t0)
    if iter_num % eval_interval == eval_interval - 1:
        print(f"iter {iter_num}: val loss {estimate_loss():.4f}")
        torch.save({"model": model.state_dict(), "iter": iter_num}, "ckpt.pt")
truth = {"steps": max_iters, "tokens": grad_accum * batch_size * block_size, "micro": batch_size, "length": block_size}
truth |= {"accumulation": grad_accum, "depth": n_layer, "hidden": n_embd, "vocabulary": vocab_size, "heads": n_head}
truth |= {"parameters": sum(p.numel() for p in model.parameters()), "dtype": "fp32", "recompute": "none"}
truth |= {"posture": "eager", "ms": 1e3 * sorted(times[10:])[len(times[10:]) // 2]}
print("TRUTH", json.dumps(truth))
