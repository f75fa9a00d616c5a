"""A small stack of blocks in PyTorch, one letter a block: attention, Mamba-like, experts, recurrent, feed-forward."""

from __future__ import annotations

import torch
import torch.nn.functional as functional
from common import EXPERTS, FFN, HEADS, HIDDEN, LENGTH, STATE, TOP_K, VOCABULARY
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel


def scan(decay: torch.Tensor, drive: torch.Tensor) -> torch.Tensor:
    """h[t] = decay[t] * h[t-1] + drive[t] along dimension 1, by doubling: log2(length) passes."""
    shift, length = 1, decay.shape[1]
    while shift < length:
        rest = [0, 0] * (decay.dim() - 2)
        earlier = functional.pad(drive[:, :-shift], [*rest, shift, 0])
        drive = drive + decay * earlier
        decay = decay * functional.pad(decay[:, :-shift], [*rest, shift, 0], value=1.0)
        shift *= 2
    return drive


class Attention(nn.Module):
    """Causal attention. ``inner`` is another backend than the one that the launch asked for, chosen nearer the call."""

    def __init__(self, inner: SDPBackend | None = None) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(HIDDEN, 3 * HIDDEN, bias=False), nn.Linear(HIDDEN, HIDDEN, bias=False)
        self.inner = inner

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, _ = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        if self.inner is None:
            mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            with sdpa_kernel(self.inner):
                mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, HIDDEN))


class Mamba(nn.Module):
    """A selective scan: step sizes, inputs and outputs of the state depend on the token."""

    def __init__(self) -> None:
        super().__init__()
        self.into, self.out = nn.Linear(HIDDEN, 3 * HIDDEN, bias=False), nn.Linear(HIDDEN, HIDDEN, bias=False)
        self.select = nn.Linear(HIDDEN, 2 * STATE, bias=False)
        self.rates = nn.Parameter(torch.linspace(0.0, 2.0, STATE).repeat(HIDDEN, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        value, gate, size = self.into(x).chunk(3, dim=-1)
        write, read = self.select(x).chunk(2, dim=-1)
        size = functional.softplus(size)[..., None]
        decay = torch.exp(-size * torch.exp(self.rates))
        held = scan(decay, size * value[..., None] * write[:, :, None])
        return self.out((held * read[:, :, None]).sum(-1) * functional.silu(gate))


class Recurrent(nn.Module):
    """A gated linear recurrence."""

    def __init__(self) -> None:
        super().__init__()
        self.into, self.out = nn.Linear(HIDDEN, 2 * HIDDEN, bias=False), nn.Linear(HIDDEN, HIDDEN, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        value, gate = self.into(x).chunk(2, dim=-1)
        keep = torch.sigmoid(gate)
        return self.out(scan(keep, (1 - keep) * value))


class Experts(nn.Module):
    """Feed-forward experts; each token takes the sum of its best `TOP_K`, and every expert sees every token."""

    def __init__(self) -> None:
        super().__init__()
        self.route = nn.Linear(HIDDEN, EXPERTS, bias=False)
        self.up = nn.Parameter(torch.randn(EXPERTS, HIDDEN, FFN) * 0.02)
        self.down = nn.Parameter(torch.randn(EXPERTS, FFN, HIDDEN) * 0.02)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores = self.route(x).softmax(-1)
        # A scatter of the best would say the same; split over devices, XLA of torch_xla 2.9 dies of it.
        least = scores.topk(TOP_K, dim=-1).values[..., -1:]
        weights = torch.where(scores >= least, scores, 0.0)
        tall = functional.gelu(torch.einsum("bth,ehf->betf", x, self.up))
        return torch.einsum("betf,efh,bte->bth", tall, self.down, weights)


class FeedForward(nn.Module):
    """Up, GELU, down."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(HIDDEN, FFN, bias=False), nn.Linear(FFN, HIDDEN, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(functional.gelu(self.up(x)))


BLOCKS = {"*": Attention, "A": Attention, "M": Mamba, "R": Recurrent, "E": Experts, "-": FeedForward}


class Stack(nn.Module):
    """Byte embedding and positions, a block a letter, an untied head.

    ``checks`` says where a check leaves the graph: at the ``ends``, before and after the blocks, or in the ``loop``
    over them.
    """

    def __init__(self, pattern: str, *, inner: SDPBackend | None = None, checks: str = "") -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCABULARY, HIDDEN), nn.Embedding(LENGTH, HIDDEN)
        made = [Attention(inner) if letter in "*A" else BLOCKS[letter]() for letter in pattern]
        self.blocks = nn.ModuleList(made)
        self.norms = nn.ModuleList(nn.LayerNorm(HIDDEN) for _ in pattern)
        self.norm, self.head = nn.LayerNorm(HIDDEN), nn.Linear(HIDDEN, VOCABULARY, bias=False)
        self.checks = checks

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.checked(self.tokens(ids) + self.positions.weight[: ids.shape[1]], "ends")
        for norm, block in zip(self.norms, self.blocks, strict=True):
            x = self.checked(x + block(norm(x)), "loop")
        return self.head(self.norm(self.checked(x, "ends")))

    def checked(self, x: torch.Tensor, where: str) -> torch.Tensor:
        """The same; a check that reads a number of Python's, at which a graph ends."""
        if self.checks == where and float(x.detach().abs().max()) > 1e9:
            raise FloatingPointError("activations overflow")
        return x
