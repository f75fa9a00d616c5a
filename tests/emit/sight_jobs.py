"""Small loops of torch in many styles, each watched by a recorder of its own; run by `test_sight.py` in one process.

Prints one JSON object: by case what its receipt holds. The cases are written as strangers write loops, and say nothing
to the recorder.
"""

from __future__ import annotations

import gc
import json
import sys
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils import clip_grad_norm_
from torch.utils.checkpoint import checkpoint

from receipts.emit import Recorder

STEPS, ROWS, LENGTH, WORDS, WIDTH = 12, 3, 8, 40, 16
CASES = {}
BREAKS = []


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attn = nn.MultiheadAttention(WIDTH, 2, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 64), nn.GELU(), nn.Linear(64, WIDTH))

    def forward(self, x):
        x = x + self.attn(x, x, x, need_weights=False)[0]
        return x + self.mlp(x)


class Decoder(nn.Module):
    def __init__(self, again=False):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(WORDS, WIDTH), nn.Embedding(500, WIDTH)
        self.h = nn.ModuleList(Block() for _ in range(3))
        self.lm_head = nn.Linear(WIDTH, WORDS, bias=False)
        self.lm_head.weight = self.wte.weight
        self.again = again

    def forward(self, idx):
        x = self.wte(idx) + self.wpe(torch.arange(idx.shape[1]))
        for block in self.h:
            x = checkpoint(block, x, use_reentrant=False) if self.again else block(x)
        return self.lm_head(x)


def batch(rows=ROWS, length=LENGTH):
    return torch.randint(0, WORDS, (rows, length))


def loss_of(model, x):
    return functional.cross_entropy(model(x).flatten(0, 1), x.flatten())


def case(function):
    CASES[function.__name__] = function
    return function


@case
def plain(rec):
    model = Decoder()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    rec.watch(model)
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss_of(model, batch()).backward()
        clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


class Linear(nn.Module):
    """Not torch's: it has no weight, and says its output by a tuple."""

    def __init__(self):
        super().__init__()
        self.matrix = nn.Parameter(torch.eye(WIDTH))

    def forward(self, x):
        return x @ self.matrix


class Odd(Decoder):
    def __init__(self):
        super().__init__()
        self.own = Linear()

    def forward(self, idx):
        ragged = torch.nested.nested_tensor([torch.zeros(2, 3, 4), torch.zeros(2, 5, 4)])
        functional.scaled_dot_product_attention(ragged, ragged, ragged)
        return functional.linear(self.own(self.wte(idx)), self.lm_head.weight)


@case
def modules_of_its_own(rec):
    model = Odd()
    optimizer = torch.optim.AdamW(model.parameters())
    rec.watch(model)
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss_of(model, batch()).backward()
        optimizer.step()


@case
def unwatched_optimizer_and_no_clipping(rec):
    model = Decoder()
    rec.watch(model, optimizer := torch.optim.SGD(model.parameters(), lr=1e-3))
    for _ in range(STEPS):
        loss_of(model, batch()).backward()
        optimizer.step()
        optimizer.zero_grad()


def attend(q: torch.Tensor) -> torch.Tensor:
    return functional.scaled_dot_product_attention(q, q, q)


@case
def traced_and_scripted(rec):
    model = Decoder()
    optimizer = torch.optim.AdamW(model.parameters())
    rec.watch(model)
    for step in range(STEPS):
        if step == 1:  # which is looked at module by module
            torch.jit.trace(model, batch())
            torch.jit.script(nn.Sequential(model.h[0].mlp, nn.Identity()))
            torch.jit.script(attend)
        loss_of(model, batch()).backward()
        optimizer.step()
        optimizer.zero_grad()


@case
def accumulated_and_evaluated(rec):
    model = Decoder()
    optimizer = torch.optim.AdamW(model.parameters())
    rec.watch(model)
    for step in range(STEPS):
        if step == 9:
            model.eval()
            with torch.no_grad():
                loss_of(model, batch())
            model.train()
        for _ in range(4):
            (loss_of(model, batch()) / 4).backward()
        optimizer.step()
        optimizer.zero_grad()


@case
def accumulated_and_not_divided(rec):
    model = Decoder()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-9)
    rec.watch(model)
    for _ in range(STEPS):
        for _ in range(4):
            loss_of(model, batch()).backward()
        optimizer.step()
        optimizer.zero_grad()


@case
def checkpointed(rec):
    model = Decoder(again=True)
    optimizer = torch.optim.AdamW(model.parameters())
    rec.watch(model)
    for _ in range(STEPS):
        loss_of(model, batch()).backward()
        optimizer.step()
        optimizer.zero_grad()


class AgainByForward(Block):
    def forward(self, x):
        return checkpoint(super().forward, x, use_reentrant=False)


@case
def checkpointed_by_its_forward(rec):
    model = Decoder()
    model.h = nn.ModuleList(AgainByForward() for _ in range(3))
    optimizer = torch.optim.AdamW(model.parameters())
    rec.watch(model)
    for _ in range(STEPS):
        loss_of(model, batch()).backward()
        optimizer.step()
        optimizer.zero_grad()


@case
def autocast(rec):
    model = Decoder()
    optimizer = torch.optim.AdamW(model.parameters())
    rec.watch(model)
    for _ in range(STEPS):
        with torch.autocast("cpu", torch.bfloat16):
            loss = loss_of(model, batch())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


@case
def scaled_with_overflow(rec):
    model = Decoder()
    optimizer, scaler = torch.optim.SGD(model.parameters(), lr=1e-3), torch.amp.GradScaler("cpu", init_scale=1024.0)
    rec.watch(model)
    for step in range(STEPS):
        scaler.scale(loss_of(model, batch())).backward()
        if step in (0, 7):
            model.wpe.weight.grad[0, 0] = float("inf")
        scaler.unscale_(optimizer)
        clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()


@case
def critic_five_times(rec):
    maker, critic = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 9)), nn.Sequential(nn.Linear(9, 1))
    of_maker, of_critic = torch.optim.Adam(maker.parameters()), torch.optim.Adam(critic.parameters())
    rec.watch([maker, critic])
    for _ in range(STEPS):
        for _ in range(5):
            fake = maker(torch.randn(6, 4)).detach()
            of_critic.zero_grad()
            (critic(fake) - critic(torch.randn(6, 9))).mean().backward()
            of_critic.step()
        of_maker.zero_grad()
        (-critic(maker(torch.randn(6, 4)))).mean().backward()
        of_maker.step()


@case
def matrices_and_the_rest(rec):
    model = Decoder()
    flat = [item for item in model.parameters() if item.dim() < 2]
    matrices = [item for item in model.parameters() if item.dim() >= 2]
    first, second = torch.optim.SGD(matrices, lr=1e-3), torch.optim.AdamW(flat)
    rec.watch(model)
    for _ in range(STEPS):
        loss_of(model, batch()).backward()
        for optimizer in (first, second):
            optimizer.step()
            optimizer.zero_grad()


@case
def one_optimizer_a_parameter(rec):
    model = Decoder()
    optimizers = {item: torch.optim.SGD([item], lr=1e-3) for item in model.parameters()}

    def update(item):
        optimizers[item].step()
        optimizers[item].zero_grad()

    for item in model.parameters():
        item.register_post_accumulate_grad_hook(update)
    rec.watch(model)
    for _ in range(STEPS):
        loss_of(model, batch()).backward()


@case
def searching_closure(rec):
    model = Decoder()
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=3)
    rec.watch(model)
    for _ in range(STEPS):
        x = batch()

        def closure(x=x):
            optimizer.zero_grad()
            loss = loss_of(model, x)
            loss.backward()
            return loss

        optimizer.step(closure)


@case
def lengths_that_vary(rec):
    model = Decoder()
    optimizer = torch.optim.AdamW(model.parameters())
    rec.watch(model)
    for step in range(STEPS):
        loss_of(model, batch(length=LENGTH + step)).backward()
        optimizer.step()
        optimizer.zero_grad()


@case
def compiled_module(rec):
    model = torch.compile(Decoder(), backend="eager")
    optimizer = torch.optim.AdamW(model.parameters())
    rec.watch(model)
    for _ in range(STEPS):
        loss_of(model, batch()).backward()
        optimizer.step()
        optimizer.zero_grad()


@case
def compiled_in_place(rec):
    model = Decoder()
    model.compile(backend="eager")
    optimizer = torch.optim.AdamW(model.parameters())
    rec.watch(model)
    for _ in range(STEPS):
        loss_of(model, batch()).backward()
        optimizer.step()
        optimizer.zero_grad()


@case
def compiled_lambda(rec):
    model = Decoder()
    optimizer = torch.optim.AdamW(model.parameters())
    rec.watch(model)
    step = torch.compile(lambda x: loss_of(model, x), backend="eager")
    for _ in range(STEPS):
        step(batch()).backward()
        optimizer.step()
        optimizer.zero_grad()


@case
def compiled_with_its_backward_pass(rec):
    model = Decoder()
    optimizer = torch.optim.AdamW(model.parameters())
    rec.watch(model)

    @torch.compile(backend="eager")
    def step(x):
        loss_of(model, x).backward()

    for _ in range(STEPS):
        step(batch())
        optimizer.step()
        optimizer.zero_grad()
    BREAKS.extend(torch._dynamo.utils.counters["graph_break"].values())


@case
def one_batch_and_two_losses(rec):
    model = Decoder()
    optimizer = torch.optim.AdamW(model.parameters())
    rec.watch(model)
    for _ in range(STEPS):
        logits = model(batch())
        logits.mean().backward(retain_graph=True)
        logits.square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


class LowRank(nn.Module):
    def __init__(self, base):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.a, self.b = nn.Parameter(torch.randn(2, base.in_features)), nn.Parameter(torch.zeros(base.out_features, 2))

    def forward(self, x):
        return self.base(x) + x @ self.a.T @ self.b.T


@case
def adapted_by_hand(rec):
    model = Decoder().requires_grad_(False)
    for block in model.h:
        block.mlp[0] = LowRank(block.mlp[0])
    optimizer = torch.optim.AdamW([item for item in model.parameters() if item.requires_grad])
    rec.watch(model)
    for _ in range(STEPS):
        loss_of(model, batch()).backward()
        optimizer.step()
        optimizer.zero_grad()


@case
def marked_by_the_job(rec):
    model = Decoder()
    optimizer = torch.optim.AdamW(model.parameters())
    rec.watch(model)
    rec.state("model.depth", 4)
    for _ in range(STEPS):
        with rec.step(tokens=1000):
            loss = loss_of(model, batch())
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        rec.loss(7.0)


@case
def adapted(rec):
    model = Decoder()
    for block in model.h:
        inner, block.mlp[0] = block.mlp[0], nn.Module()
        block.mlp[0].base_layer = inner.requires_grad_(False)
        block.mlp[0].lora_A = nn.ModuleDict({"default": nn.Linear(WIDTH, 2, bias=False)})
        block.mlp[0].lora_B = nn.ModuleDict({"default": nn.Linear(2, 64, bias=False)})
        own = block.mlp[0]
        own.forward = lambda x, own=own: own.base_layer(x) + own.lora_B["default"](own.lora_A["default"](x))
    optimizer = torch.optim.AdamW([item for item in model.parameters() if item.requires_grad])
    rec.watch(model)
    for _ in range(STEPS):
        loss_of(model, batch()).backward()
        optimizer.step()
        optimizer.zero_grad()


class Keeping(nn.Module):
    """As Fabric's module: it keeps what it wraps beside what wraps it further."""

    def __init__(self, model):
        super().__init__()
        self.outer, self.inner = model, model

    def forward(self, x):
        return self.outer(x)


@case
def generated_before_each_step(rec):
    model = Keeping(Decoder())
    optimizer = torch.optim.AdamW(model.parameters())
    rec.watch(model)
    for _ in range(STEPS):
        with torch.no_grad():
            model(batch())
        loss_of(model, batch()).backward()
        optimizer.step()
        optimizer.zero_grad()


@case
def two_calls_for_one_loss(rec):
    model = Decoder()
    optimizer = torch.optim.AdamW(model.parameters())
    rec.watch(model)
    for _ in range(STEPS):
        (loss_of(model, batch()) - 0.1 * loss_of(model, batch())).backward()
        optimizer.step()
        optimizer.zero_grad()


def glanced(rec, shirks):
    """A job that computes one of three blocks in most steps, but in those that are traced."""
    model = Decoder()
    optimizer = torch.optim.AdamW(model.parameters())
    rec.watch(model)
    blocks = model.h
    for step in range(140):
        traced = torch.autograd._profiler_enabled()
        model.h = blocks[:1] if shirks and step % 9 and not traced else blocks
        optimizer.zero_grad()
        loss_of(model, batch()).backward()
        optimizer.step()


def honest(rec):
    glanced(rec, shirks=False)


def shirking(rec):
    glanced(rec, shirks=True)


def one(case, name, folder):
    torch.manual_seed(1)
    out = folder / f"{name}.json"
    with Recorder("cpu-torch", out=out, warmup=5, quiet=True, journal=False) as rec:
        case(rec)
    tree = json.loads(Path(rec.written).read_bytes())
    kept = {key: tree.get(key, {}) for key in ("measurement", "model", "batch", "numerics", "parallelism", "notes")}
    kept["measurement"].pop("step_wall_seconds", None)
    return {**kept, "posture": tree["compile"].get("posture")}


def main():
    torch.set_num_threads(1)
    folder, results = Path(sys.argv[1]), {}
    for name in CASES:
        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()
        gc.collect()
        results[name] = one(CASES[name], name, folder)
    counted = {
        case.__name__: one(case, case.__name__, folder)["measurement"].get("path_counters")
        for case in (honest, shirking)
    }
    hooks = sys.modules["torch.optim.optimizer"]._global_optimizer_post_hooks
    left = {"hooks": len(hooks), "backward": torch.autograd.backward.__module__, "save": torch.save.__module__}
    print(json.dumps({"cases": results, "counted": counted, "left": left, "breaks": BREAKS}))


if __name__ == "__main__":
    main()
