"""What a FLOPs formula reads: the numbers of a model, each with the receipt path that states it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any

from receipts.metrics.flops.attention import LatentAttention, latent_of, sparse_layers, unsummed
from receipts.metrics.flops.mixers import (
    INDEXER,
    Indexer,
    Mamba3,
    MatrixRecurrence,
    indexer_of,
    is_mamba3,
    mamba3_of,
    recurrence_of,
    unstated,
)
from receipts.receipt.alphabets import BlockKind
from receipts.receipt.patterns import Pattern, kind_counts, read


def _at(path: str) -> Any:
    return field(default=None, metadata={"path": path})


@dataclass(frozen=True, slots=True, eq=False)
class Geometry:
    """A model and its sequence, in plain values; None is *not stated* and no formula fills it with a default.

    `ffn_projections` is 3 for a gated feed-forward (SwiGLU, GeGLU) and 2 for a plain one. `blocks` are blocks of the
    main stack by kind, for models that a pattern describes. Widths and lengths are in elements and tokens. `unsummed`
    says what keeps a stack of one kind of layer from being summed by its widths; empty where nothing is known to.
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
    text = values.pop("blocks", None)
    pattern = read(text, stated.get("model.alphabet")) if isinstance(text, str) else None
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
        lacking=unstated(stated),
    )
