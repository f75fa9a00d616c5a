"""What attention is: latent, over a window, sparse; read from the words and widths that a receipt states."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

# Words of a switch that does nothing, as configurations print them.
_OFF: Final = ("", "none", "off", "no", "false", "0", "-1", "(-1, -1)", "[-1, -1]")
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
WIDTHS: Final = (
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
    """The widths of latent attention; None where it is not, or they are not all stated. A query may have no rank."""
    widths = [next((word for path in paths if (word := _word(stated, path))), "") for paths in LATENT_WIDTHS]
    if not is_latent(stated) or not all(word.isdigit() and int(word) for word in widths):
        return None
    rank = _word(stated, "features.q_lora_rank")
    key_value, nope, rope, value = map(int, widths)
    return LatentAttention(key_value, nope, rope, value, int(rank) if rank.isdigit() else 0)


def is_latent(stated: Mapping[str, Any]) -> bool:
    """Whether attention is said to be latent: by its switch, else by a rank or a word."""
    if switch := _word(stated, "features.multi_latent_attention"):
        return switch not in _OFF  # programs print the widths of what is off, too
    paths = ("model.attention_kinds", "path.intended.attention", "features.attention_type")
    return _word(stated, _RANK) not in _OFF or any(_LATENT.search(_word(stated, path)) for path in paths)


def sparse_layers(stated: Mapping[str, Any], attending: int) -> int:
    """How many of the ``attending`` blocks of letter A select their keys: ``9 DSA + 4 MLA``, ``DSA A-ranks 0,4,8``.

    All of them where sparse attention is said and no number is; none where other kinds are counted.
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
    return attending if named or (requested not in _OFF and "delta" not in requested) else 0


def mixes_layers(stated: Mapping[str, Any]) -> bool:
    """Whether dense and expert layers take turns, with no pattern that counts them."""
    frequency = _word(stated, "features.moe_layer_freq")
    return stated.get("model.pattern") is None and frequency not in (*_OFF, "1")


def is_windowed(stated: Mapping[str, Any]) -> bool:
    """Whether some attention sees less than the sequence, by a word or by a window that is shorter."""
    words = f"{_word(stated, 'model.attention_kinds')} {_word(stated, 'features.attention_type')}"
    windows = [_word(stated, f"features.{name}") for name in ("window_size", "sliding_window", "sliding_window_size")]
    length = stated.get("batch.sequence_length") or 0
    shorter = any(word not in _OFF and not (word.isdigit() and int(word) >= length > 0) for word in windows)
    return shorter or _WINDOWED.search(words) is not None


def unsummed(stated: Mapping[str, Any]) -> str:
    """What keeps a stack of one kind of layer from being summed by its widths; empty where nothing is known to."""
    if is_latent(stated) and latent_of(stated) is None:
        return (
            f"attention is latent, and its widths are not all stated: {', '.join(paths[0] for paths in LATENT_WIDTHS)}"
        )
    if _SPARSE.search(_word(stated, "model.attention_kinds")) or _word(stated, "model.sparse_attention") not in _OFF:
        return "no sum is known here for sparse attention"
    if is_windowed(stated):
        return WINDOWED
    return MIXED if mixes_layers(stated) else ""


def _word(stated: Mapping[str, Any], path: str) -> str:
    value = stated.get(path)
    return "" if value is None else str(value).strip().lower()
