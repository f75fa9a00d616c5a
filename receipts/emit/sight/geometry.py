"""The geometry of a model, by its modules: seen where a module says so, inferred where names or shapes are read."""

from __future__ import annotations

import re

from receipts.emit.sight import root

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from receipts.emit.sight.watch import Watch

# What programs call these, in a configuration or on the module that has them.
HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads", "nhead", "heads", "n_query_heads")
KV_HEADS = ("num_key_value_heads", "n_kv_head", "n_kv_heads", "num_kv_heads", "num_query_groups")
HEAD_DIM = ("head_dim", "d_head", "attention_head_size", "head_size")
FFN = ("intermediate_size", "n_inner", "d_ff", "ffn_dim", "dim_feedforward", "ffn_hidden_size")
EXPERTS = ("num_local_experts", "num_experts", "n_routed_experts", "n_experts", "moe_num_experts")
TOP_K = ("num_experts_per_tok", "top_k", "topk", "num_experts_per_token", "n_activated_experts", "k")
CONFIGS = ("config", "cfg", "conf", "args", "params", "hparams")
ATTENTION = re.compile(r"attn|attention|qkv|q_proj|\bwq\b|c_attn|to_q|in_proj_weight|query", re.I)
KEYS = re.compile(r"(?:^|[._])(?:k_proj|wk|to_k|key|k_lin|lin_k)$")
MAMBA = re.compile(r"mamba|\bssm\b|A_log", re.I)
ROUTER = re.compile(r"gate$|router|gating|gate\.|\bwg\b", re.I)
POSITIONS = re.compile(r"pos|wpe|type", re.I)


class Geometry:
    """What is seen and what is inferred, by the names of `model`; ``blocks`` is the stack."""

    def __init__(self, watch: Watch, model: Any) -> None:
        self.seen: dict[str, Any] = {"name": root.class_name(model)}
        self.inferred: dict[str, Any] = {}
        self._model, self._attention = model, watch.attention()
        self._names: dict[int, list[str]] = {}
        for name, item in model.named_parameters(remove_duplicate=False):
            self._names.setdefault(id(item), []).append(root.canonical(name))
        self.blocks = stack(model)
        self.letters = [_letter(block) for block in self.blocks]
        readers = watch.models.readers
        ids = any(reader.ids for reader in readers) or not any(reader.rows for reader in readers)
        tables = [pair for pair in model.named_modules() if _is(pair[1], "Embedding", "VocabParallelEmbedding")]
        if not ids:
            self.seen["vocabulary"] = 0
        elif tables:
            # The table of tokens is the one that is no table of positions.
            named = [pair for pair in tables if not POSITIONS.search(pair[0].rpartition(".")[2])] or tables
            _, table = max(named, key=lambda pair: int(pair[1].num_embeddings))
            self.seen["vocabulary"] = int(table.num_embeddings)
            self.seen["hidden"] = int(table.embedding_dim)
            cells = [item for item in model.modules() if _is(item, "RNNBase")]
            if cells and not self.blocks:
                self.seen["hidden"] = int(cells[-1].hidden_size)
            self.seen["tied_embeddings"] = len(self._names.get(id(table.weight), ())) > 1
        layers = watch.layers()
        listed = self.blocks or any(_is(item, "ModuleList") for item in model.modules())
        if layers and not listed and self.seen.get("vocabulary"):
            # Layers stand in the model by their own names, or attention in it itself.
            hidden = self.seen.get("hidden")
            matrices = [shape for item in model.modules() if (shape := _matrix(item)) is not None]
            dense = sum(out == hidden != wide for wide, out in matrices) >= layers
            self.letters = ["[*-]" if dense else "*"] * layers
        if all(self.letters) and self.letters:
            self._stack(self.letters)

    def _own(self, *names: str) -> int | None:
        """A number of the model's own configuration."""
        for holder in (self._model, *self._model.modules()):
            for config in CONFIGS:
                value = vars(holder).get(config)
                for name in names:
                    number = value.get(name) if isinstance(value, dict) else getattr(value, name, None)
                    if isinstance(number, int) and _whole(number):
                        return number
            break
        return None

    def _stack(self, letters: list[str]) -> None:
        stacks = stacked(letters)
        self.seen["depth"] = stacks.pop("depth")
        self.inferred |= stacks
        block = self.blocks[-1] if self.blocks else self._model
        # The width that a block's norms have.
        norms = {tuple(shape) for item in block.modules() if (shape := getattr(item, "normalized_shape", None))}
        if "hidden" not in self.seen and len(norms) == 1:
            self.seen["hidden"] = int(norms.pop()[-1])
        if attending := sum("*" in letter for letter in letters):
            # All full, unless the configuration speaks of windows.
            config = next((vars(self._model)[name] for name in CONFIGS if name in vars(self._model)), None)
            kinds = getattr(config, "layer_types", None)
            if isinstance(kinds, list | tuple) and len(kinds) == attending:
                sliding = sum("sliding" in str(kind) for kind in kinds)
            else:
                window = getattr(config, "sliding_window", None)
                sliding = attending if window and getattr(config, "use_sliding_window", True) else 0
            parts = [f"{attending - sliding} full"] * (sliding < attending) + [f"{sliding} sliding"] * (sliding > 0)
            self.inferred["attention_kinds"] = " + ".join(parts)
            self._heads(block)
        if any("E" in letter for letter in letters):
            self.inferred["experts"] = self._own(*EXPERTS) or _attribute(block, EXPERTS) or _experts(block)
            self.inferred["top_k"] = self._own(*TOP_K) or _attribute(block, TOP_K)
        else:
            self._feed_forward(block)

    def _heads(self, block: Any) -> None:
        """Heads as the model calls them, else as attention ran; those of keys by the width of their projection."""
        heads, kv_heads, wide = self._own(*HEADS) or _attribute(block, HEADS), None, None
        if len(self._attention) == 1:
            ((ran, kv_heads, wide),) = self._attention
            heads = heads or ran
        if not heads:
            return
        hidden = self.seen.get("hidden")
        wide = wide or self._own(*HEAD_DIM) or _attribute(block, HEAD_DIM)
        wide = wide or (hidden // heads if hidden and hidden % heads == 0 else None)
        keys = {matrix[1] for name, item in block.named_modules() if KEYS.search(name) and (matrix := _matrix(item))}
        by_width = keys.pop() // wide if len(keys) == 1 and wide else None
        self.seen["heads"] = heads
        self.inferred["kv_heads"] = self._own(*KV_HEADS) or _attribute(block, KV_HEADS) or by_width or kv_heads or heads
        self.inferred["head_dim"] = wide

    def _feed_forward(self, block: Any) -> None:
        """The width of a dense feed-forward, by the matrices that are not attention's: one of them leads back."""
        hidden = self.seen.get("hidden")
        if hidden is None:
            return
        shapes = [
            shape
            for name, item in block.named_modules()
            if (shape := _matrix(item)) is not None
            and not ATTENTION.search(name)
            and not any(w in name for w in root.ADAPTERS)
        ]
        back = {wide for wide, out in shapes if out == hidden and wide != hidden}
        width = self._own(*FFN) or (back.pop() if len(back) == 1 else None)
        self.inferred["ffn"] = width
        if width and shapes:
            gates = sum(out // width for wide, out in shapes if wide == hidden and out in (width, 2 * width))
            gates //= 1 if self.blocks else len(self.letters)
            self.inferred["ffn_projections"] = gates + 1 if gates in (1, 2) else None


def stacked(letters: list[str]) -> dict[str, Any]:
    """What blocks of these letters make."""
    pattern, every = letters[0] if len(set(letters)) == 1 else "".join(letters), "".join(letters)
    family = ("hybrid" if "*" in every else "ssm") if "M" in every else "moe" if "E" in every else "dense"
    return {"depth": len(letters), "pattern": pattern, "alphabet": "nemo", "family": family}


def stack(model: Any) -> list[Any]:
    """The blocks of the model: the list of modules that holds most of the parameters, where one does."""
    best: list[Any] = []
    most = total = 0
    for item in model.modules():
        if not _is(item, "ModuleList", "Sequential", "ModuleDict"):
            continue
        children = [child for child in item._modules.values() if child is not None]
        if not children or not all(child._modules for child in children):
            continue
        held = sum(value.numel() for value in item.parameters())
        total += held
        if held > most:
            best, most = children, held
    every = sum(value.numel() for value in model.parameters())
    # Several lists of about one size are an encoder and its decoder, or stages: not one stack.
    alike = [item for item in best if root.class_name(item) == root.class_name(best[0])]
    return best if most and 2 * most > total and len(alike) * 2 >= len(best) and every else []


def _letter(block: Any) -> str:
    """The letter of a block in the alphabet of Megatron-Core; empty for what it has none for."""
    names = [f"{name}.{type(item).__name__}" for name, item in block.named_modules() if name]
    words = " ".join([*names, *(name for name, _ in block.named_parameters())])
    mixers = [name for name, item in block.named_modules() if name and ("A_log" in item._parameters)]
    matrices = [
        name
        for name, item in block.named_modules()
        if _matrix(item) is not None and not any(name.startswith(f"{mixer}.") for mixer in mixers)
    ]
    attends, keeps = bool(ATTENTION.search(words)), bool(MAMBA.search(words))
    routed = bool(re.search(r"expert", words, re.I)) and any(ROUTER.search(name) for name in words.split())
    if any(_is(item, "Conv1d", "Conv2d", "LSTM", "GRU") for item in block.modules()) and not (attends or keeps):
        return ""
    dense = not routed and len([name for name in matrices if not ATTENTION.search(name)]) >= 2
    letters = "*" * attends + "M" * (keeps and not attends) + ("E" if routed else "-" if dense else "")
    return f"[{letters}]" if len(letters) > 1 else letters


def _experts(block: Any) -> int | None:
    """How many experts a block has: the children of a list of them, or the first side of a stack of matrices."""
    for name, item in block.named_modules():
        if "expert" in name.lower() and _is(item, "ModuleList") and len(item._modules) > 1:
            return len(item._modules)
    return next(
        (int(item.shape[0]) for name, item in block.named_parameters() if "expert" in name and item.dim() == 3), None
    )


def _matrix(module: Any) -> tuple[int, int] | None:
    """Width in and out of a linear layer, also of transformers' Conv1D."""
    if _is(module, "Linear") and _whole(getattr(module, "in_features", None)):
        return int(module.in_features), int(module.out_features)
    if type(module).__name__ == "Conv1D" and hasattr(module, "nf"):
        return int(module.weight.shape[0]), int(module.nf)
    return None


def _attribute(block: Any, names: tuple[str, ...]) -> int | None:
    """A number that a module of the block has under one of these names."""
    for item in block.modules():
        for name in names:
            if _whole(vars(item).get(name)):
                return int(vars(item)[name])
    return None


def _is(module: Any, *names: str) -> bool:
    return any(kind.__name__ in names for kind in type(module).__mro__)


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
