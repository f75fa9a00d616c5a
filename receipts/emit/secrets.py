"""Secrets never enter: which environment names may be read, and what is taken out of every text.

A variable is read only where its name is on the list and looks like no secret. Every text on its way into the journal
or the receipt, from whomever it comes, loses what is shaped like a token, a key or a password, and the values of this
process's secret variables. The readers of logs, the importers and `submit` use the same module.

The forms of issued tokens are those that their issuers and the scanners gitleaks and detect-secrets publish. Every
issuer in `_BEGINNINGS` begins its tokens with letters that it chose to make them easy to find. A form is those letters
and the body that follows; what has its mark elsewhere is in `_ELSEWHERE`. A key without any form, such as 40 bare hex
digits, is none of these: it is a commit as well. RE2 reads the same patterns, so none of them looks ahead or behind.
"""

from __future__ import annotations

import os
from functools import cache, lru_cache

TYPE_CHECKING = False

if TYPE_CHECKING:
    import re
    from collections.abc import Mapping, Sequence
    from typing import Any


_ALPHANUMERIC, _WORD_OR_DASH, _HEX_DIGIT = r"[A-Za-z0-9]", r"[A-Za-z0-9_-]", r"[A-Fa-f0-9]"

# Beginnings, apart by blanks, and the body after any of them.
_BEGINNINGS = (
    ("rcp_", rf"{_HEX_DIGIT}{{8}}_{_WORD_OR_DASH}{{16,}}"),  # this product's own
    ("ghp_ gho_ ghu_ ghs_ ghr_", rf"{_ALPHANUMERIC}{{20,}}"),  # GitHub
    ("github_pat_", r"[A-Za-z0-9_]{20,}"),
    ("glpat- gldt- glft- glrt- glptt- glcbt- glimt- glsoat- glagent- gloas- glffct- GR1348941", r"[A-Za-z0-9_.-]{16,}"),
    ("hf_ api_org_", rf"{_ALPHANUMERIC}{{16,}}"),  # Hugging Face
    (
        "sk-ant- sk-proj- sk-svcacct- sk-admin- sk-or- sk-lf-",
        rf"{_WORD_OR_DASH}{{16,}}",
    ),  # Anthropic, OpenAI, OpenRouter, Langfuse
    ("sk-", rf"(?:[A-Za-z]{{2,10}}-)?{_ALPHANUMERIC}{{20,}}"),
    ("gsk_ r8_ xai- pplx- csk- jina_ tgp_v1_ pcsk_ rpa_", r"[A-Za-z0-9_]{32,}"),  # Groq, Replicate, xAI, Perplexity, …
    ("lsv2_pt_ lsv2_sk_", r"[a-f0-9]{32}_[a-f0-9]{10}"),  # LangSmith
    ("nvapi-", rf"{_WORD_OR_DASH}{{16,}}"),
    ("xapp-", r"\d-[A-Za-z0-9-]{10,}"),  # Slack
    ("AKIA ASIA ABIA ACCA", r"[A-Z0-9]{16}\b"),  # AWS
    ("ABSK", r"[A-Za-z0-9+/]{64,}={0,2}"),
    ("amzn.mws.", r"[a-f0-9-]{36}"),
    ("AIza", rf"{_WORD_OR_DASH}{{30,}}"),  # Google
    ("ya29. GOCSPX-", rf"{_WORD_OR_DASH}{{20,}}"),
    ("dapi", r"[a-z0-9]{32}(?:-\d)?\b"),  # Databricks
    ("hvs. hvb. hvr.", rf"{_WORD_OR_DASH}{{20,}}"),  # HashiCorp Vault
    ("dckr_pat_ dckr_oat_", rf"{_WORD_OR_DASH}{{20,}}"),  # Docker
    ("npm_", rf"{_ALPHANUMERIC}{{30,}}"),
    ("pypi-AgE", rf"{_WORD_OR_DASH}{{30,}}"),
    ("rubygems_", r"[a-f0-9]{48}"),
    ("AKCp", rf"{_ALPHANUMERIC}{{60,}}"),  # Artifactory
    ("cmVmd", rf"{_ALPHANUMERIC}{{59}}\b"),
    ("sk_live_ sk_test_ sk_prod_ rk_live_ rk_test_ rk_prod_ whsec_", rf"{_ALPHANUMERIC}{{16,}}"),  # Stripe
    ("sq0atp- sq0csp- sq0idp-", rf"{_WORD_OR_DASH}{{22,}}"),  # Square
    ("EAAA", rf"{_WORD_OR_DASH}{{60}}\b"),
    ("shpat_ shpca_ shppa_ shpss_", rf"{_HEX_DIGIT}{{32}}"),  # Shopify
    ("SK", r"[a-f0-9]{32}\b"),  # Twilio
    ("key-", r"[a-f0-9]{32}\b"),  # Mailgun
    ("SG.", rf"{_WORD_OR_DASH}{{16,}}\.{_WORD_OR_DASH}{{16,}}"),  # SendGrid
    ("xkeysib- xsmtpsib-", rf"[a-f0-9]{{64}}-{_ALPHANUMERIC}{{16}}"),  # Brevo
    ("dop_v1_ doo_v1_ dor_v1_", r"[a-f0-9]{32,}"),  # DigitalOcean
    ("HRKU-", rf"{_WORD_OR_DASH}{{30,}}"),  # Heroku
    ("LTAI", rf"{_ALPHANUMERIC}{{16,24}}\b"),  # Alibaba
    ("AQVN", rf"{_WORD_OR_DASH}{{35,38}}\b"),  # Yandex
    ("fo1_ fm2_ fm1r_ fm1a_", r"[A-Za-z0-9+/_-]{40,}={0,3}"),  # Fly.io
    ("v1.0-", r"[a-f0-9]{24}-[a-f0-9]{40,}"),  # Cloudflare
    ("tskey-auth- tskey-api- tskey-client-", rf"{_WORD_OR_DASH}{{16,}}"),  # Tailscale
    ("pscale_tkn_ pscale_pw_ pscale_oauth_", r"[A-Za-z0-9_=.-]{32,}"),  # PlanetScale
    ("pul-", r"[a-f0-9]{40}\b"),  # Pulumi
    ("pnu_ pnb_", rf"{_ALPHANUMERIC}{{36}}"),  # Prefect
    ("dp.pt. dp.ct. dp.sa. dp.st.", rf"(?:[a-z0-9_-]{{2,35}}\.)?{_ALPHANUMERIC}{{40,}}"),  # Doppler
    ("dt0c01. dt0s01.", rf"{_ALPHANUMERIC}{{24}}\.{_ALPHANUMERIC}{{64}}"),  # Dynatrace
    ("glc_ glsa_", r"[A-Za-z0-9+/_]{32,}={0,2}"),  # Grafana
    ("eyJrIjoi eyJhcGlf", r"[A-Za-z0-9+/]{40,}={0,2}"),  # Grafana, Neptune
    ("sntrys_ sntryu_", r"[A-Za-z0-9_+/=]{40,}"),  # Sentry
    ("NRAK- NRJS- NRII-", r"[A-Za-z0-9-]{19,}"),  # New Relic
    ("PMAK-", r"[a-f0-9]{24}-[a-f0-9]{34}"),  # Postman
    ("lin_api_ lin_oauth_", rf"{_ALPHANUMERIC}{{32,}}"),  # Linear
    ("ntn_ secret_", rf"{_ALPHANUMERIC}{{43,}}"),  # Notion
    ("ATATT3 ATCTT3 ATBB", r"[A-Za-z0-9_=-]{28,}"),  # Atlassian
    ("squ_ sqp_ sqa_", r"[a-f0-9]{40}"),  # Sonar
    ("sgp_", r"[a-f0-9]{16,}_?[a-f0-9]{24,}"),  # Sourcegraph
    ("shippo_live_ shippo_test_ duffel_live_ duffel_test_", rf"{_WORD_OR_DASH}{{40,}}"),
    ("EZAK EZTK", rf"{_ALPHANUMERIC}{{54}}"),  # EasyPost
    ("tfp_", r"[A-Za-z0-9_.=-]{40,}"),  # Typeform
    ("rdme_", r"[a-z0-9]{64,}"),
    ("sha256~", rf"{_WORD_OR_DASH}{{43}}\b"),  # OpenShift
    ("AGE-SECRET-KEY-1", r"[A-Z0-9]{58}"),
    ("ops_eyJ", r"[A-Za-z0-9+/]{64,}={0,3}"),  # 1Password
    ("pat", rf"{_ALPHANUMERIC}{{14}}\.[a-f0-9]{{64}}"),  # Airtable
    ("pat. sat.", rf"{_WORD_OR_DASH}{{22}}\.{_ALPHANUMERIC}{{24}}\.{_ALPHANUMERIC}{{20}}"),  # Harness
)
# What every text with this form has in it, and the form.
_ELSEWHERE = (
    ("wandb_v", rf"\bwandb_v\d_{_WORD_OR_DASH}{{16,}}"),
    ("xox", r"\bxox[a-z][-.][A-Za-z0-9.-]{10,}"),
    ("hooks.slack", r"\bhooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/[A-Za-z0-9/_+-]{20,}"),
    ("/webhooks/", rf"\bdiscord(?:app)?\.com/api/(?:v\d+/)?webhooks/\d{{16,20}}/{_WORD_OR_DASH}{{30,}}"),
    (".office.com/webhook", r"\boffice\.com/webhook(?:b2)?/[A-Za-z0-9/@-]{36,}"),  # Microsoft Teams
    ("/hooks/", r"/hooks/[a-z0-9]{26}\b"),  # Mattermost
    (
        ".",
        rf"\b[MNO][DTjz][AEIMQUYcgk][w-z0-5][MNO]{_ALPHANUMERIC}{{18,22}}\.{_WORD_OR_DASH}{{6}}\.{_WORD_OR_DASH}{{27,}}",
    ),  # Discord: a number in base64
    (":A", rf"\b\d{{8,10}}:A{_WORD_OR_DASH}{{34}}\b"),  # Telegram
    ("-us", r"\b[a-f0-9]{32}-us\d{1,2}\b"),  # Mailchimp
    (".atlasv1.", rf"\b{_ALPHANUMERIC}{{14}}\.atlasv1\.{_WORD_OR_DASH}{{40,}}"),  # Terraform
    ("Q~", r"\b[A-Za-z0-9_~.]{3}\dQ~[A-Za-z0-9_~.-]{31,34}"),  # Azure: an application's secret
    ("Key=", r"\b(?:Account|Access|SharedAccess)Key=[A-Za-z0-9+/%]{20,}={0,2}"),  # Azure: connection strings
    ("+ASt", r"\b[A-Za-z0-9+/]{70,76}\+ASt[A-Za-z0-9+/]{6}=="),  # Azure: storage
    ("JQQJ9", rf"\b{_ALPHANUMERIC}{{52}}JQQJ9{_ALPHANUMERIC}{{20,}}"),  # Azure: services and DevOps
    ("_mmk", rf"\b{_ALPHANUMERIC}{{6}}_{_ALPHANUMERIC}{{29}}_mmk\b"),  # MaxMind
    ("eyJ", rf"\beyJ{_WORD_OR_DASH}{{8,}}\.{_WORD_OR_DASH}{{8,}}\.?{_WORD_OR_DASH}*"),  # a signed JSON web token
    (
        "PRIVATE",  # its words may stand apart, or in quotes of a shell
        r"-----BEGIN [A-Z0-9 ']*PRIVATE[ ']+KEY(?: BLOCK)?-----[\s\S]*?"
        r"(?:-----END[A-Z0-9 ']*PRIVATE[ ']+KEY(?: BLOCK)?-----|\Z)",
    ),
)


# Every form with letters that a text with such a token holds: to look for those first costs next to nothing.
TOKEN_FORMS: tuple[tuple[str, str], ...] = (
    *((start, rf"\b{start.replace('.', '[.]')}{body}") for starts, body in _BEGINNINGS for start in starts.split()),
    *_ELSEWHERE,
)


HIDDEN = "[redacted]"
BLANK = "[redacted"  # what every blanked value begins with
KEYED = len("[redacted:abcd:")  # of one with a digest, up to the digest: the store that it is keyed by

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
# What data loaders, state dictionaries and sorts call a key is the name of a column.
_KEYS_OF_DATA = (
    *("answer", "attn", "audio", "cache", "chat", "column", "content", "data", "dataset", "dict", "eval", "feature"),
    *("fn", "group", "id", "image", "index", "input", "json", "label", "loss", "message", "messages", "metric"),
    *("model", "monitor", "output", "param", "primary", "prompt", "qk", "query", "question", "response", "reward"),
    *("sort", "state", "target", "text", "tool", "value", "video"),
)
# Words of the field that hold one of those and are no secrets.
_HARMLESS = (
    *("tokens", "tokenizer", "tokenization", "token_dispatcher", "tokenpermute", "token_", "author", "autotune"),
    *("eos_token", "bos_token", "pad_token", "unk_token", "cls_token", "sep_token", "mask_token", "image_token"),
    *("special_token", "max_token", "min_token", "num_token", "per_token", "next_token", "multi_token", "stop_token"),
    *("forward_pass", "backward_pass", "custom_pass"),
    *(f"{word}_key" for word in _KEYS_OF_DATA),
)

# How a secret's name ends; what stands before it in the name is looked at when one is found.
_ENDS = (
    r"(?:pass(?:word|wd|phrase)s?|pwd|secret|credentials?|token|bearer|webhook|signature|[_-]auth"
    r"|(?<![A-Za-z0-9])(?:sig|pass)|(?:api|access|account|private|shared|signing|master|license|storage|[_-])[_-]?key)"
    r"(?:[_-]?(?:id|key|value|base64|b64|string|\d{1,2}))?"
)
_IN_NAMES = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"
# One of these is in every text with a named secret, in small letters.
_HINTS = ("pass", "pwd", "secret", "credential", "token", "bearer", "webhook", "sig", "key", "auth", "basic", "cookie")
_MIN_TOKEN = 15  # of all forms of tokens; most texts have no word as long
_KEY_BLOCK = "PRIVATE"  # the one form with a blank in it
_KINDS = {"Bearer", "Basic", "Token"}


@cache
def _compiled(pattern: str, *, any_case: bool = False) -> re.Pattern[str]:
    # Compiled when the first text that needs it comes, not when the training script imports the recorder.
    import re

    return re.compile(pattern, re.IGNORECASE if any_case else 0)


_ADDRESS = r"(\b[a-z][a-z0-9+.-]{1,20}://)([^/\s@'\"]{1,300})@"
# In prose, `bearer` and `basic` are words: what follows must look like no word.
_HEADER = (
    r"(Authorization['\"]?\s*[:=]?\s*['\"]?(?:Bearer|Basic|Token)\s+|Authorization['\"]?\s*[:=]\s*['\"]?|\bBearer\s+(?=\S*\d|\S{20})"
    r"|\bBasic\s+(?=[A-Za-z0-9+/]{6,}=)|\bCookie['\"]?\s*:\s*['\"]?[^\s=;]{1,60}=)(?!(?:Bearer|Basic|Token)\b)[A-Za-z0-9._~+/=-]{8,}"
)
# In quotes a value ends where its quotes do; bare, where an address, a call or a list goes on. After a blank alone the
# next word is a value only where it is no name with a value of its own: `credentials api_key=…`.
_PAIR = (
    rf"({_ENDS})(\\{{0,3}}['\"]?\s*(?:=>|:=|[=:])\s*(?:\\{{0,3}}['\"])?|['\"]\s*,\s*['\"]"
    rf"|\s+['\"]?(?![A-Za-z0-9_.-]{{0,60}}?{_ENDS}['\"]?\s*[=:]))"
    r"((?<=')[^'\n]+|(?<=\")[^\"\\\n]+|[^\s'\",;&]+)"
)
# What a client takes as a password in a short option; in any command line, `-p` with what no number or word is.
_CLIENT = (
    r"(\b(?:(?:mysql|mariadb)[a-z-]*\b[^\n;|]{0,300}?\s-p|sshpass\s+-p\s*|(?:docker|podman)\s+login\b[^\n;|]{0,300}?\s-p\s*"
    r"|\bwandb\s+login\s+(?=[a-f0-9]{40})|\blogin\s+\S{1,100}\s+password\s+|redis-cli\b[^\n;|]{0,300}?\s-a\s*|curl\b[^\n;|]{0,300}?\s(?:-u|--user)[\s=]*['\"]?[^\s:'\"]{1,100}:)"
    r"|(?<![^\s'\"])-p(?=[A-Z]|\S*\d)(?=\S*[A-Z])(?=[^\s=:/.~-][^\s=:]{5}))[^\s'\"]+"
)


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
    return blanked(name, value) if secret and not _plain(value, name) else value


def blanked(name: str, value: str) -> str:
    """What stands for a value whose name says that it is a secret: of a plain word with sixteen bits of its digest.

    The digest is keyed by the store that RECEIPTS_STORE names, so that an option such as ``--router-key topk`` differs
    from ``--router-key hash`` in a comparison there. So few bits tell nobody the word. What is long, or has letters and
    digits as keys have, and every password, leaves nothing.
    """
    store = os.environ.get("RECEIPTS_STORE")
    word = len(value) < 8 or (len(value) <= 24 and value.translate({ord(sign): None for sign in "_-."}).isalpha())
    if value.startswith(BLANK) or not store or not word or _of_password(name):
        return value if value.startswith(BLANK) else HIDDEN
    import hashlib

    key = hashlib.sha256(os.fsencode(store)).digest()
    digest = hashlib.blake2b(value.encode("utf-8", "backslashreplace"), digest_size=2, key=key).hexdigest()
    return f"{BLANK}:{key.hex()[:4]}:{digest}]"


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
    for value in _values_of_secrets(tuple(getattr(os.environ, "_data", os.environ).items())):
        text = text.replace(value, HIDDEN)
    words = text.split()
    issued = " ".join(word for word in words if len(word) >= _MIN_TOKEN)
    for letters, form in TOKEN_FORMS if issued or _KEY_BLOCK in text else ():
        if letters in issued or (letters == _KEY_BLOCK and letters in text):
            text = _compiled(form).sub(HIDDEN, text)
    if "://" in text:
        text = _compiled(_ADDRESS, any_case=True).sub(rf"\1{HIDDEN}@", text)
    if "-p" in text or any(client in text for client in ("curl", "login", "redis-cli")):
        text = _compiled(_CLIENT).sub(rf"\1{HIDDEN}", text)
    if _may_name_a_secret(text.lower()):
        text = _compiled(_HEADER, any_case=True).sub(rf"\1{HIDDEN}", text)
        text = _compiled(_PAIR, any_case=True).sub(_pair, text)
    return text


def _may_name_a_secret(low: str) -> bool:
    """Whether a text in small letters holds a secret's word besides the words of the field: most lines do not."""
    hints = [hint for hint in _HINTS if hint in low]
    if not hints:
        return False
    rest = " ".join(word for word in low.replace("-", "_").split() if any(hint in word for hint in hints))
    for word in _HARMLESS:
        rest = rest.replace(word, "")
    return any(hint in rest for hint in hints)


@lru_cache(maxsize=1)
def _values_of_secrets(_: tuple[object, ...]) -> tuple[str, ...]:
    """Values of variables with a secret's name, the longest first. A short one or a path would blank honest words.

    Kept for as long as the environment, which is compared as the bytes it is kept in: to decode it costs 100 µs.
    """
    values = {value for name, value in os.environ.items() if len(value) >= 8 and secret_name(name)}
    return tuple(sorted((value for value in values if not value.startswith("/")), key=len, reverse=True))


def _pair(match: re.Match[str]) -> str:
    end, between, value = match[1], match[2], match[3]
    before = match.string[max(0, match.start() - 60) : match.start()]
    name = before[len(before.rstrip(_IN_NAMES)) :] + end
    # `token: 5` and `the token was` are prose; an option's word, or an assignment, is not.
    option, assigned = name.startswith("-"), any(sign in between for sign in "=:,")
    if value.startswith(BLANK) or value in _KINDS or not (assigned or option) or not secret_name(name.lstrip("-")):
        return match[0]
    if (not option and end.lower() == "pass") or (option and not assigned and value.startswith("-")):
        return match[0]
    return match[0] if _plain(value, name) else f"{end}{between}{blanked(name, value)}"


def _plain(value: str, name: str) -> bool:
    """Whether a value is no secret by itself: a switch, nothing; for no password a small number or a list."""
    if value.lower() in ("none", "null", "true", "false", "auto", "''", '""'):
        return True
    number = len(value) < 8 and value.replace(".", "", 1).isdigit()
    return not _of_password(name) and (number or value[:1] in "([{<")


def _of_password(name: str) -> bool:
    return any(word in name.lower() for word in ("pass", "pwd", "secret", "credential"))


def command_line(words: Sequence[str]) -> str:
    """A command line as one text, quoted for a shell, without secrets in options, addresses and assignments."""
    import shlex

    quoted: list[str] = []
    hide = ""
    for word in words:
        if hide and not word.startswith("--"):
            quoted.append(blanked(hide, word))
            hide = ""
            continue
        name, sign, value = word.partition("=")
        hide = word if word.startswith("-") and not sign and secret_name(name.lstrip("-")) else ""
        if sign and secret_name(name.lstrip("-")) and not _plain(value, name):
            quoted.append(f"{name}={blanked(name, value)}")
        else:
            quoted.append(redact(word))
    # Once more as one text: a key whose lines became words, a password behind a client's short option.
    return redact(" ".join(word if BLANK in word else shlex.quote(word) for word in quoted))
