"""Section ``model``: the architecture that was trained."""

from typing import Literal

from receipts.receipt.leaf import Amount, Count, Name, Positive, Section, axis, derived, note

Family = Literal["dense", "moe", "hybrid", "ssm", "sparse"]


class Model(Section):
    """Geometry of the model. `pattern`, `dimensions` and `routing` are one axis each."""

    name: Name | None = note("Name that people use; two geometries may share it (C113).")
    family: Family | None = derived("Family of the architecture.", follows="pattern, routing")
    pattern: Name | None = axis("Block pattern, one letter a block, tiled to `depth`.", of="pattern")
    alphabet: Name | None = axis("Name of the alphabet that the letters come from.", of="pattern")
    depth: Positive | None = axis("Blocks in the stack.", of="pattern", unit="blocks")
    hidden: Positive | None = axis("Hidden width.", of="dimensions")
    heads: Positive | None = axis("Query heads.", of="dimensions")
    kv_heads: Positive | None = axis("Key and value heads.", of="dimensions")
    head_dim: Positive | None = axis("Width of a head.", of="dimensions")
    ffn: Positive | None = axis("Width of the dense feed-forward.", of="dimensions")
    expert_ffn: Positive | None = axis("Width of one expert's feed-forward.", of="dimensions")
    ffn_projections: Positive | None = axis(
        "Weight matrices of a feed-forward: 3 gated (SwiGLU), 2 plain.", of="dimensions"
    )
    shared_expert_ffn: Count | None = axis("Width of the shared expert; 0 means none.", of="dimensions")
    vocabulary: Positive | None = axis("Vocabulary entries.", of="dimensions")
    ssm_state: Positive | None = axis("State width of a Mamba block.", of="dimensions")
    ssm_heads: Positive | None = axis("Heads of a Mamba block.", of="dimensions")
    ssm_groups: Positive | None = axis("Groups of a Mamba block.", of="dimensions")
    experts: Count | None = axis("Experts in an expert block.", of="routing")
    top_k: Count | None = axis("Experts per token.", of="routing")
    capacity_factor: Amount | None = axis("Capacity factor of the router.", of="routing")
    mtp_depth: Count | None = axis("Multi-token-prediction depth; 0 means none.")
    mtp_wiring: Name | None = axis("How the MTP heads are wired: repeated, tied, standalone.")
    tied_embeddings: bool | None = axis("Whether input and output embeddings share weights.")
    attention_kinds: Name | None = axis("Attention kinds by layer, such as `32 full` or `9 DSA + 4 MLA`.")
    sparse_attention: Name | None = axis("Requested implementation of sparse attention.")
    ssm_variant: Name | None = axis("Variant of the Mamba or recurrent block.")
    spec: Name | None = axis("Layer specification by name, where a framework builds blocks from one.")
    parameters_total: Positive | None = derived("Parameters.", follows="pattern, dimensions, routing")
    parameters_total_stated: Name | None = note("Source text of `parameters_total`.")
    parameters_active: Positive | None = derived("Active parameters per token.", follows="pattern, dimensions, routing")
    parameters_active_stated: Name | None = note("Source text of `parameters_active`.")
