"""Secrets never enter: which environment names may be read, and what is taken out of every text.

A variable is read only where its name is on the list and looks like no secret. Every text on its way into the journal
or the receipt, from whomever it comes, loses what is shaped like a token, a key or a password, and the values of this
process's secret variables. The readers of logs, the importers and `submit` use the same module.
"""

from __future__ import annotations

import os
from functools import lru_cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Mapping, Sequence
    from typing import Any

HIDDEN = "[redacted]"

# What a runtime, a compiler, a collective library or a launcher reads. Ends in `*`: any name that begins so.
ALLOWED = (
    *("ATEN_*", "BLAS_*", "CUBLAS*", "CUDA_*", "CUDNN_*", "CUTE_*", "CUTLASS_*", "DNNL_*", "FLASH_ATTENTION_*"),
    *("GLOO_*", "GOMP_*", "HSA_*", "HIP_*", "ROCR_*", "IREE_*", "JAX_*", "KMP_*", "LIBTPU_*", "MALLOC_*", "MIOPEN_*"),
    *("MKL_*", "NCCL_*", "NEURON_*", "NVSHMEM_*", "NVTE_*", "OMP_*", "ONEDNN_*", "OPENBLAS_*", "PALLAS_*", "PJRT_*"),
    *("PT_XLA_*", "PYTORCH_*", "RCCL_*", "TF_CPP_*", "TF_GPU_*", "TF_XLA_*", "TILELANG_*", "TORCH_*", "TPU_*"),
    *("TORCHDYNAMO_*", "TORCHINDUCTOR_*"),
    *("TRITON_*", "UCX_*", "UCC_*", "XLA_*", "XRT_*", "FI_*", "DS_*", "DEEPSPEED_*", "MEGATRON_*", "ACCELERATE_*"),
    *("LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONHASHSEED", "PYTHONOPTIMIZE", "PYTHONPATH", "TOKENIZERS_PARALLELISM"),
    *("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "LOCAL_WORLD_SIZE", "WORLD_SIZE", "NUMBA_NUM_THREADS"),
)
# A name with one of these words is never read, whatever the list says.
_SECRET_WORDS = (
    *("token", "secret", "password", "passwd", "passphrase", "pwd", "apikey", "api_key", "access_key", "accesskey"),
    *("private_key", "credential", "auth", "signature", "cookie", "session_key", "netrc", "dsn", "webhook", "bearer"),
)
# Words of the field that hold one of those and are no secrets.
_HARMLESS = ("tokens", "tokenizer", "tokenization", "token_dispatcher", "tokenpermute", "token_", "author", "autotune")

# Shapes of issued tokens; each is a prefix that its issuer chose so that it can be found, then its body.
SHAPES = (
    r"\bhf_[A-Za-z0-9]{16,}",
    r"\bgh[opusr]_[A-Za-z0-9]{20,}",
    r"\bgithub_pat_[A-Za-z0-9_]{20,}",
    r"\bglpat-[A-Za-z0-9_-]{16,}",
    r"\bsk-(?:[A-Za-z]{2,10}-)*[A-Za-z0-9_-]{16,}",
    r"\b[sr]k_(?:live|test)_[A-Za-z0-9]{16,}",
    r"\bnvapi-[A-Za-z0-9_-]{16,}",
    r"\bwandb_v\d_[A-Za-z0-9_-]{16,}",
    r"\bxox[a-z]-[A-Za-z0-9-]{10,}",
    r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
    r"\bAIza[A-Za-z0-9_-]{30,}",
    r"\bya29\.[A-Za-z0-9_-]{20,}",
    r"\bnpm_[A-Za-z0-9]{30,}",
    r"\bpypi-[A-Za-z0-9_-]{30,}",
    r"\bdop_v1_[a-f0-9]{32,}",
    r"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}",
    r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.?[A-Za-z0-9_-]*",
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
)
_WORD = (
    r"(?:[A-Za-z0-9_.-]{0,60}[_.-])?(?:api[_-]?key|access[_-]?key(?:[_-]?id)?|secret(?:[_-]?[a-z]+)*|password|passwd"
    r"|passphrase|pwd|credentials?|auth[_-]?token|bearer|private[_-]?key|client[_-]?secret|webhook|token|sig|signature"
    r"|[a-z0-9]+[_-](?:key|token|auth))"
)
_KINDS = {"Bearer", "Basic", "Token"}


@lru_cache(maxsize=1)
def _patterns() -> tuple[re.Pattern[str], ...]:
    # Compiled when the first text comes, not when the training script imports the recorder.
    import re

    shapes = re.compile("|".join(SHAPES))
    address = re.compile(r"(\b[a-z][a-z0-9+.-]{1,20}://)([^/\s@'\"]{1,300})@", re.IGNORECASE)
    header = re.compile(r"\b(Authorization:?\s*)?\b(Bearer|Basic)\s+[A-Za-z0-9._~+/=-]{8,}", re.IGNORECASE)
    pair = re.compile(
        rf"(?<![A-Za-z0-9_])(--?)?({_WORD})(['\"]?\s*[=:]\s*['\"]?|['\"]\s*,\s*['\"]|\s+)([^\s'\",;&]+)",
        re.IGNORECASE,
    )
    return shapes, address, header, pair


def secret_name(name: str) -> bool:
    """Whether a flag, option or variable of this name may hold a secret."""
    low = name.lower().replace("-", "_")
    for word in _HARMLESS:
        low = low.replace(word, "")
    if any(word in low for word in _SECRET_WORDS):
        return True
    return low in ("key", "pass", "sig", "pat") or low.endswith(("_key", "_pass", "_keys", "_pat"))


def hidden(name: str, value: Any) -> Any:
    """A value as it may stand under a dotted name: under a secret's no text but a switch or a small number."""
    secret = isinstance(value, str) and (secret_name(name) or secret_name(name.rpartition(".")[2]))
    return HIDDEN if secret and not _plain(value) else value


def allowed(name: str) -> bool:
    """Whether an environment variable may be read at all."""
    if secret_name(name):
        return False
    return any(name.startswith(item[:-1]) if item.endswith("*") else name == item for item in ALLOWED)


def environment(variables: Mapping[str, str]) -> dict[str, str]:
    """The allowed variables by name, in order, their values looked through."""
    return {name: redact(variables[name]) for name in sorted(variables) if allowed(name)}


def redact(text: str) -> str:
    """The text without what is shaped like a secret. Digests and commits stay: they are no keys."""
    if len(text) < 6:
        return text
    shapes, address, header, pair = _patterns()
    for value in _values_of_secrets(tuple(os.environ.items())):
        text = text.replace(value, HIDDEN)
    text = shapes.sub(HIDDEN, text)
    if "://" in text:
        text = address.sub(lambda match: f"{match[1]}{HIDDEN}@", text)
    text = header.sub(lambda match: f"{match[1] or ''}{match[2]} {HIDDEN}", text)
    return pair.sub(_pair, text)


@lru_cache(maxsize=1)
def _values_of_secrets(variables: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    """Values of variables with a secret's name, the longest first. A short one or a path would blank honest words."""
    values = {value for name, value in variables if len(value) >= 8 and secret_name(name)}
    return tuple(sorted((value for value in values if not value.startswith("/")), key=len, reverse=True))


def _pair(match: re.Match[str]) -> str:
    dashes, name, between, value = match[1] or "", match[2], match[3], match[4]
    # `token: 5` and `the token was` are prose; an option's word, or an assignment, is not.
    assigned = bool(between.strip())
    if value == HIDDEN or value in _KINDS or not (assigned or dashes) or not secret_name(name):
        return match[0]
    if value.startswith("-") and not assigned:
        return match[0]
    return f"{dashes}{name}{between}{HIDDEN}" if not _plain(value) else match[0]


def _plain(value: str) -> bool:
    """Whether a value is no secret by itself: a small number, a switch, a name of nothing."""
    return value.lower() in ("none", "null", "true", "false", "auto", "''", '""') or (
        value.replace(".", "", 1).isdigit() and len(value) < 8
    )


def command_line(words: Sequence[str]) -> str:
    """A command line as one text, quoted for a shell, without secrets in options, addresses and assignments."""
    import shlex

    quoted: list[str] = []
    hide = False
    for word in words:
        if hide and not word.startswith("--"):
            quoted.append(HIDDEN)
            hide = False
            continue
        name, sign, value = word.partition("=")
        hide = word.startswith("-") and not sign and secret_name(name.lstrip("-"))
        if sign and secret_name(name.lstrip("-")) and not _plain(value):
            quoted.append(f"{name}={HIDDEN}")
        else:
            quoted.append(redact(word))
    return " ".join(word if word == HIDDEN or HIDDEN in word else shlex.quote(word) for word in quoted)
