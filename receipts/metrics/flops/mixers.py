"""Blocks of a hybrid beside attention and Mamba-2: the indexer of sparse attention, Mamba-3 with MIMO, M2RNN.

Their widths, as the programs that define them name them, and the matrices and FLOPs that follow.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

_OFF: Final = ("", "none", "off", "no", "false", "0", "0.0")
# Widths of an indexer, as configurations of Hugging Face name them, and as Megatron-Core does.
INDEXER: Final = (
    ("features.index_n_heads", "features.dsa_indexer_n_heads"),
    ("features.index_head_dim", "features.dsa_indexer_head_dim"),
    ("features.index_topk", "features.dsa_indexer_topk"),
)
LOSS: Final = ("features.dsa_indexer_loss_coeff", "features.indexer_loss")
RANK: Final = "features.mimo_rank"
MIMO: Final = ("features.mamba_mimo", "features.is_mimo")
RECURRENCE: Final = (
    "features.m2rnn_num_v_heads", "features.m2rnn_k_head_dim", "features.m2rnn_v_head_dim",
    "features.m2rnn_bwd_chunk_size",
)  # fmt: skip
BACKEND: Final = "features.dsa_kernel_backend"
WIDTHS: Final = (*(path for paths in INDEXER for path in paths), *LOSS, BACKEND, RANK, *MIMO, *RECURRENCE)
_MAMBA3: Final = re.compile(r"mamba[-_ ]?3")
_RANKED: Final = re.compile(r"mimo[-_ ]?r(?:ank)?[-_ =]*(\d+)")


class Indexer(NamedTuple):
    """The lightning indexer of DeepSeek sparse attention, DeepSeek-V3.2-Exp 2025, section 2.1, equation 1.

    ``heads`` queries of ``width`` and one key a token score every earlier token; attention sees the ``top_k`` best.
    deepseek-ai/DeepSeek-V3.2-Exp, inference/model.py, `Indexer`; in training Megatron-Core,
    experimental_attention_variant/dsa.py, where a loss of its own trains it (``trained``) and nothing else does.
    """

    heads: int
    width: int
    top_k: int
    trained: bool = True

    def projections(self, hidden: int, query: int) -> int:
        """Elements of its matrices: queries from ``query`` (the latent query, else the hidden state), key, weights."""
        return query * self.heads * self.width + hidden * (self.width + self.heads)

    def seen(self, length: int) -> float:
        """Earlier tokens that a query attends to on average, the causal half of those below the top k."""
        top = min(self.top_k, length)
        return top - top * top / (2.0 * length)

    def scoring(self, length: int) -> float:
        """FLOPs a token of one forward pass over the causal half of a sequence: products of heads, and their sum."""
        return (2.0 * self.heads * self.width + 2.0 * self.heads) * length / 2


class Mamba3(NamedTuple):
    """Mamba-3 with multiple inputs and outputs, Lahoti et al. 2026, ICLR; mamba_ssm, modules/mamba3.py, `Mamba3`.

    ``rank`` copies of keys and queries a group and of the up and down projections a head. No convolution; ``angles``
    of a token turn a share of every head's keys and queries (half of the state width: a quarter of it in angles).
    """

    rank: int
    angles: int

    def matrix(self, hidden: int, inner: int, heads: int, groups: int, state: int) -> tuple[int, int]:
        """Columns of the input projection that heads divide, and those that groups or nothing do."""
        return 2 * inner + 3 * heads, 2 * groups * state * self.rank + self.angles

    def scan(self, inner: int, state: int) -> float:
        """FLOPs a token: 7 a state element (Megatron-Core, `hybrid_flops`), 4 of them once a rank; 6 a channel and
        rank for the projections of inputs, gate and outputs.
        """
        return (4.0 * self.rank + 3.0) * inner * state + 6.0 * self.rank * inner


class MatrixRecurrence(NamedTuple):
    """M2RNN, Mishra et al. 2026, arXiv:2603.14360: h = f·h + (1 − f)·tanh(h·W + k⊗v), y = q·h, of ``key`` × ``value``.

    One query and one key head for all ``heads``; open-lm-engine/lm-engine, sequence_mixer_blocks/m2rnn. The backward
    starts anew from a state that is kept every ``steps`` (DatasunriseOU/cppmega, megatron/m2rnn_triton.py).
    """

    heads: int
    key: int = 64
    value: int = 16
    steps: int = 64

    @property
    def inner(self) -> int:
        """Width of values, gate and output."""
        return self.heads * self.value

    @property
    def convolved(self) -> int:
        """Width of query, key and values together, which a convolution reads."""
        return 2 * self.key + self.inner

    @property
    def columns(self) -> int:
        """Columns of the input projection: query, key, values, forget gates and output gate."""
        return self.convolved + self.heads + self.inner

    def scan(self) -> float:
        """FLOPs a token: h·W, and 8 a state element for k⊗v, tanh, the gate and the read."""
        return self.heads * self.key * self.value * (2.0 * self.value + 8.0)


def indexer_of(stated: Mapping[str, Any]) -> Indexer | None:
    """The indexer, None where a width is not stated. It is trained unless its loss is said to be off."""
    widths = [next((word for path in paths if (word := _word(stated, path))), "") for paths in INDEXER]
    if not all(word.isdigit() and int(word) for word in widths):
        return None
    loss = [word for path in LOSS if (word := _word(stated, path))]
    heads, width, top_k = map(int, widths)
    return Indexer(heads, width, top_k, trained=not loss or loss[0] not in _OFF)


def mamba3_of(stated: Mapping[str, Any]) -> Mamba3 | None:
    """Mamba-3 with MIMO: by the variant's words, with its rank or mamba_ssm's default of 4; None for other blocks."""
    words = _word(stated, "model.ssm_variant")
    if not is_mamba3(stated) or not ("mimo" in words or any(_word(stated, path) not in _OFF for path in MIMO)):
        return None
    named, rank = _RANKED.search(words), _word(stated, RANK)
    ways = int(rank) if rank.isdigit() and int(rank) else int(named[1]) if named else 4
    return Mamba3(ways, int(stated.get("model.ssm_state") or 128) // 4)


def unstated(stated: Mapping[str, Any]) -> tuple[str, ...]:
    """Widths that `mamba3_of` and `recurrence_of` take from the code of their definitions, where blocks have them."""
    rank = _word(stated, RANK).isdigit() or _RANKED.search(_word(stated, "model.ssm_variant")) is not None
    lacking: tuple[str, ...] = (RANK,) if mamba3_of(stated) is not None and not rank else ()
    if recurrence_of(stated) is not None:
        lacking += tuple(path for path in RECURRENCE[:3] if not _word(stated, path).isdigit())
    return lacking


def is_mamba3(stated: Mapping[str, Any]) -> bool:
    """Whether the Mamba blocks are of the third kind; MIMO is its form."""
    words = f"{_word(stated, 'model.ssm_variant')} {_word(stated, 'path.intended.ssm')}"
    return _MAMBA3.search(words) is not None or "mimo" in words


def recurrence_of(stated: Mapping[str, Any]) -> MatrixRecurrence | None:
    """The matrix recurrence, by the variant's words; widths as stated, else those of the definition's code."""
    if "rnn" not in _word(stated, "model.ssm_variant") or not stated.get("model.hidden"):
        return None
    heads, key, value, steps = (_word(stated, path) for path in RECURRENCE)
    k, v, chunk = (int(word) if word.isdigit() and int(word) else usual for word, usual in
                   ((key, 64), (value, 16), (steps, 64)))  # fmt: skip
    own = int(heads) if heads.isdigit() and int(heads) else max(1, int(stated["model.hidden"]) // (k + v))
    return MatrixRecurrence(own, k, v, chunk)


def _word(stated: Mapping[str, Any], path: str) -> str:
    value = stated.get(path)
    return "" if value is None else str(value).strip().lower()
