"""What a FLOPs formula reads: the numbers of a model, each with the path that states it, and its kinds of block.

Words and widths that a receipt states show what attention is: latent, over a window, sparse. Blocks of a hybrid
beside attention and Mamba-2 are the indexer of sparse attention, Mamba-3 with MIMO and M2RNN: their widths, as the
programs that define them name them, and the matrices and FLOPs that follow.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from receipts.receipt.patterns import BlockKind, Pattern, kind_counts, stated_pattern

# Words of a switch that does nothing, as configurations print them.
_OFF_ATTENTION: Final = ("", "none", "off", "no", "false", "0", "-1", "(-1, -1)", "[-1, -1]")
_WINDOWED: Final = re.compile(r"sliding|window|local|chunk", re.IGNORECASE)
_LATENT: Final = re.compile(r"(?<![a-z])mla(?![a-z])|latent", re.IGNORECASE)
_SPARSE: Final = re.compile(r"(?<![a-z])dsa(?![a-z])|sparse", re.IGNORECASE)
# Widths of latent attention, as configurations of Hugging Face name them, and as Megatron-Core does.
_RANK: Final = "features.kv_lora_rank"
LATENT_WIDTHS: Final = (
    (_RANK,),
    ("features.qk_nope_head_dim", "features.qk_head_dim"),
    ("features.qk_rope_head_dim", "features.qk_pos_emb_head_dim"),
    ("features.v_head_dim",),
)
_COUNTED: Final = re.compile(r"(\d+)\s*(?:x\s*)?dsa")
_AT_RANKS: Final = re.compile(r"dsa a-ranks?\s*((?:\d+\s*,?\s*)+)")
WINDOWED: Final = "attention sees a window, and which layers do is not stated"
MIXED: Final = "dense and expert layers take turns, and no pattern counts them"
ATTENTION_WIDTHS: Final = (
    "features.multi_latent_attention", "features.q_lora_rank", *(path for paths in LATENT_WIDTHS for path in paths),
)  # fmt: skip


class LatentAttention(NamedTuple):
    """Widths of multi-head latent attention: DeepSeek-V2 2024, arXiv:2405.04434, equations 9 to 19.

    Keys and values come from one vector of ``key_value``, queries from one of ``query`` (0: from the hidden state). Of
    a head, queries and keys have ``nope`` elements without positions and ``rope`` with them, which keys share, and
    values have ``value``.
    """

    key_value: int
    nope: int
    rope: int
    value: int
    query: int = 0

    def projections(self, hidden: int, heads: int) -> tuple[int, int, int]:
        """Elements of the matrices that no head divides, of those that heads divide, and of the output matrix."""
        queries = heads * (self.nope + self.rope)
        down = hidden * (self.key_value + self.rope + self.query)
        up = self.key_value * heads * (self.nope + self.value) + (self.query or hidden) * queries
        return down, up, heads * self.value * hidden


def latent_of(stated: Mapping[str, Any]) -> LatentAttention | None:
    """The widths of latent attention; None if it is not, or they are not all stated. A query may have no rank."""
    widths = [next((word for path in paths if (word := _word(stated, path))), "") for paths in LATENT_WIDTHS]
    if not is_latent(stated) or not all(word.isdigit() and int(word) for word in widths):
        return None
    rank = _word(stated, "features.q_lora_rank")
    key_value, nope, rope, value = map(int, widths)
    return LatentAttention(key_value, nope, rope, value, int(rank) if rank.isdigit() else 0)


def is_latent(stated: Mapping[str, Any]) -> bool:
    """Whether attention is said to be latent: by its switch, else by a rank or a word."""
    if switch := _word(stated, "features.multi_latent_attention"):
        return switch not in _OFF_ATTENTION  # programs print the widths of what is off, too
    paths = ("model.attention_kinds", "path.intended.attention", "features.attention_type")
    return _word(stated, _RANK) not in _OFF_ATTENTION or any(_LATENT.search(_word(stated, path)) for path in paths)


def sparse_layers(stated: Mapping[str, Any], attending: int) -> int:
    """How many of the ``attending`` blocks of letter A select their keys: ``9 DSA + 4 MLA``, ``DSA A-ranks 0,4,8``.

    All of them where sparse attention is said and no number is; None if other kinds are counted.
    """
    kinds = _word(stated, "model.attention_kinds")
    if (match := _COUNTED.search(kinds)) is not None:
        return min(int(match[1]), attending)
    if (match := _AT_RANKS.search(kinds)) is not None:
        return min(len(re.findall(r"\d+", match[1])), attending)
    if kinds[:1].isdigit() and not _SPARSE.search(kinds):
        return 0  # kinds that are counted one by one, and none of them chooses
    named = _SPARSE.search(f"{kinds} {_word(stated, 'path.intended.attention')}")
    requested = _word(stated, "model.sparse_attention")
    return attending if named or (requested not in _OFF_ATTENTION and "delta" not in requested) else 0


def mixes_layers(stated: Mapping[str, Any]) -> bool:
    """Whether dense and expert layers take turns, with no pattern that counts them."""
    frequency = _word(stated, "features.moe_layer_freq")
    return stated.get("model.pattern") is None and frequency not in (*_OFF_ATTENTION, "1")


def is_windowed(stated: Mapping[str, Any]) -> bool:
    """Whether some attention sees less than the sequence, by a word or by a window that is shorter."""
    words = f"{_word(stated, 'model.attention_kinds')} {_word(stated, 'features.attention_type')}"
    windows = [_word(stated, f"features.{name}") for name in ("window_size", "sliding_window", "sliding_window_size")]
    length = stated.get("batch.sequence_length") or 0
    shorter = any(word not in _OFF_ATTENTION and not (word.isdigit() and int(word) >= length > 0) for word in windows)
    return shorter or _WINDOWED.search(words) is not None


def unsummed(stated: Mapping[str, Any]) -> str:
    """What keeps a stack of one kind of layer from being summed by its widths; empty if nothing is known to."""
    if is_latent(stated) and latent_of(stated) is None:
        return (
            f"attention is latent, and its widths are not all stated: {', '.join(paths[0] for paths in LATENT_WIDTHS)}"
        )
    if (
        _SPARSE.search(_word(stated, "model.attention_kinds"))
        or _word(stated, "model.sparse_attention") not in _OFF_ATTENTION
    ):
        return "no sum is known here for sparse attention"
    if is_windowed(stated):
        return WINDOWED
    return MIXED if mixes_layers(stated) else ""


def _word(stated: Mapping[str, Any], path: str) -> str:
    value = stated.get(path)
    return "" if value is None else str(value).strip().lower()


_OFF_MIXER: Final = ("", "none", "off", "no", "false", "0", "0.0")
# Widths of an indexer, as configurations of Hugging Face name them, and as Megatron-Core does.
INDEXER: Final = (
    ("features.index_n_heads", "features.dsa_indexer_n_heads"),
    ("features.index_head_dim", "features.dsa_indexer_head_dim"),
    ("features.index_topk", "features.dsa_indexer_topk"),
)
INDEXER_LOSS: Final = ("features.dsa_indexer_loss_coeff", "features.indexer_loss")
MIMO_RANK: Final = "features.mimo_rank"
MIMO: Final = ("features.mamba_mimo", "features.is_mimo")
RECURRENCE: Final = (
    "features.m2rnn_num_v_heads", "features.m2rnn_k_head_dim", "features.m2rnn_v_head_dim",
    "features.m2rnn_bwd_chunk_size",
)  # fmt: skip
INDEXER_BACKEND: Final = "features.dsa_kernel_backend"
MIXER_WIDTHS: Final = (
    *(path for paths in INDEXER for path in paths),
    *INDEXER_LOSS,
    INDEXER_BACKEND,
    MIMO_RANK,
    *MIMO,
    *RECURRENCE,
)
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
    """The indexer, None if a width is not stated. It is trained unless its loss is said to be off."""
    widths = [next((word for path in paths if (word := _word(stated, path))), "") for paths in INDEXER]
    if not all(word.isdigit() and int(word) for word in widths):
        return None
    loss = [word for path in INDEXER_LOSS if (word := _word(stated, path))]
    heads, width, top_k = map(int, widths)
    return Indexer(heads, width, top_k, trained=not loss or loss[0] not in _OFF_MIXER)


def mamba3_of(stated: Mapping[str, Any]) -> Mamba3 | None:
    """Mamba-3 with MIMO: by the variant's words, with its rank or mamba_ssm's default of 4; None for other blocks."""
    words = _word(stated, "model.ssm_variant")
    if not is_mamba3(stated) or not ("mimo" in words or any(_word(stated, path) not in _OFF_MIXER for path in MIMO)):
        return None
    named, rank = _RANKED.search(words), _word(stated, MIMO_RANK)
    ways = int(rank) if rank.isdigit() and int(rank) else int(named[1]) if named else 4
    return Mamba3(ways, int(stated.get("model.ssm_state") or 128) // 4)


def unstated_mixer_widths(stated: Mapping[str, Any]) -> tuple[str, ...]:
    """Widths that `mamba3_of` and `recurrence_of` take from the code of their definitions, where blocks have them."""
    rank = _word(stated, MIMO_RANK).isdigit() or _RANKED.search(_word(stated, "model.ssm_variant")) is not None
    lacking: tuple[str, ...] = (MIMO_RANK,) if mamba3_of(stated) is not None and not rank else ()
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


def _at(path: str) -> Any:
    return field(default=None, metadata={"path": path})


@dataclass(frozen=True, slots=True, eq=False)
class Geometry:
    """A model and its sequence, in plain values; None is *not stated* and no formula fills it with a default.

    `ffn_projections` is 3 for a gated feed-forward (SwiGLU, GeGLU) and 2 for a plain one. `blocks` are blocks of the
    main stack by kind, for models that a pattern describes. Widths and lengths are in elements and tokens. `unsummed`
    says what keeps a stack of one kind of layer from being summed by its widths; empty if nothing is known to.
    `sparse` of the attention blocks select their keys by the `indexer`; `siso` are Mamba-3 blocks without MIMO, and
    `lacking` are widths of the mixers that are not stated.
    """

    family: str | None = _at("model.family")
    layers: int | None = _at("model.depth")
    hidden: int | None = _at("model.hidden")
    heads: int | None = _at("model.heads")
    kv_heads: int | None = _at("model.kv_heads")
    head_dim: int | None = _at("model.head_dim")
    ffn: int | None = _at("model.ffn")
    ffn_projections: int | None = _at("model.ffn_projections")
    vocabulary: int | None = _at("model.vocabulary")
    experts: int | None = _at("model.experts")
    top_k: int | None = _at("model.top_k")
    expert_ffn: int | None = _at("model.expert_ffn")
    shared_expert_ffn: int | None = _at("model.shared_expert_ffn")
    sequence_length: int | None = _at("batch.sequence_length")
    parameters_total: int | None = _at("model.parameters_total")
    parameters_active: int | None = _at("model.parameters_active")
    mtp_depth: int | None = _at("model.mtp_depth")
    tied_embeddings: bool | None = _at("model.tied_embeddings")
    ssm_state: int | None = _at("model.ssm_state")
    ssm_heads: int | None = _at("model.ssm_heads")
    ssm_groups: int | None = _at("model.ssm_groups")
    blocks: Mapping[BlockKind, int] | None = _at("model.pattern")
    latent: LatentAttention | None = field(default=None, metadata={"path": "features.kv_lora_rank"})
    unsummed: str = field(default="", metadata={"path": "model.attention_kinds"})
    sparse: int = field(default=0, metadata={"path": "model.attention_kinds"})
    indexer: Indexer | None = field(default=None, metadata={"path": INDEXER[0][0]})
    mamba3: Mamba3 | None = field(default=None, metadata={"path": "model.ssm_variant"})
    recurrence: MatrixRecurrence | None = field(default=None, metadata={"path": "model.ssm_variant"})
    siso: bool = field(default=False, metadata={"path": "model.ssm_variant"})
    lacking: tuple[str, ...] = field(default=(), metadata={"path": "model.ssm_variant"})

    @property
    def is_dense(self) -> bool:
        """Whether it is stated that no block routes tokens to experts."""
        if self.blocks is not None:
            return BlockKind.EXPERT not in self.blocks
        return self.family == "dense" or self.experts in (0, 1)

    def path(self, name: str) -> str:
        """The receipt path of a field."""
        return PATHS[name]


PATHS: Mapping[str, str] = MappingProxyType({each.name: each.metadata["path"] for each in fields(Geometry)})


def geometry_of(stated: Mapping[str, Any]) -> Geometry:
    """The geometry that a receipt states, from its values by path; a pattern that cannot be read is left out.

    Embeddings, heads and the like are taken as they stand. A pattern counts blocks only with a stated depth.
    """
    derived = ("latent", "unsummed", "sparse", "indexer", "mamba3", "recurrence", "siso", "lacking")
    values = {
        name: stated[path] for name, path in PATHS.items() if stated.get(path) is not None and name not in derived
    }
    values.pop("blocks", None)
    pattern = stated_pattern(stated)
    if isinstance(pattern, Pattern) and "layers" in values:
        values["blocks"] = kind_counts(pattern, values["layers"])
    if isinstance(pattern, Pattern) and pattern.mtp_depth:
        values.setdefault("mtp_depth", pattern.mtp_depth)
    attending = values["blocks"].get(BlockKind.ATTENTION, 0) if "blocks" in values else values.get("layers", 0)
    return Geometry(
        **values,
        latent=latent_of(stated),
        unsummed=unsummed(stated),
        sparse=sparse_layers(stated, attending),
        indexer=indexer_of(stated),
        mamba3=(mamba3 := mamba3_of(stated)),
        recurrence=recurrence_of(stated),
        siso=mamba3 is None and is_mamba3(stated),
        lacking=unstated_mixer_widths(stated),
    )
