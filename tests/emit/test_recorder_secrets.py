"""Secrets never enter: neither the receipt nor the journal holds one that was planted anywhere."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from jobs import recorder
from receipts.emit import Recorder, secrets

PLANTED = {
    "hugging face": "hf_QwErTyUiOpAsDfGhJkLzXcVbNm",
    "github": "ghp_0123456789abcdefghijABCDEFGHIJ012345",
    "github fine": "github_pat_11ABCDEFG0_abcdefghijklmnopqrstuvwxyz",
    "openai": "sk-proj-abcdefghijklmnopqrstuvwx0123",
    "aws": "AKIAIOSFODNN7EXAMPLE",
    "google": "AIzaSyA1234567890abcdefghijklmnopqrstuv",
    "slack": "xoxb-123456789012-abcdefghijkl",
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.abcDEF123",
    "nvidia": "nvapi-abcdefghijklmnopqrstuvwxyz",
    "gitlab": "glpat-abcdefghij0123456789",
}
PAIRS = {
    "address": ("postgresql://trainer:hunter2pass@db/x", "hunter2pass"),
    "query": ("https://bucket/x?X-Amz-Signature=deadbeef99&a=1", "deadbeef99"),
    "variable": ("WANDB_API_KEY=0123456789abcdef0123456789abcdef01234567 python", "0123456789abcdef"),
    "option": ("train.py --hf-token tokenvalue99", "tokenvalue99"),
    "option with sign": ("train.py --api_key=keyvalue99", "keyvalue99"),
    "header": ("Authorization: Bearer bearervalue99", "bearervalue99"),
    "python": ("login(password='hunter2pass')", "hunter2pass"),
    "json": ('{"client_secret": "clientvalue99"}', "clientvalue99"),
}


@pytest.mark.parametrize("token", PLANTED.values(), ids=PLANTED)
def test_an_issued_token_is_taken_out_of_any_text(token: str) -> None:
    assert token not in secrets.redact(f"login failed for {token}, try again")
    assert "try again" in secrets.redact(f"login failed for {token}, try again")


@pytest.mark.parametrize(("text", "secret"), PAIRS.values(), ids=PAIRS)
def test_a_named_secret_is_taken_out_of_any_text(text: str, secret: str) -> None:
    assert secret not in secrets.redact(text)


@pytest.mark.parametrize(
    "text",
    [
        "commit 0123456789abcdef0123456789abcdef01234567",
        "sha256:2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881",
        "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 GiB",
        "tokens_per_second: 123456.5, tokens=4096, max_tokens=8192",
        "--tokenizer-type=GPTSentencePieceTokenizer --moe-token-dispatcher-type alltoall",
        "KeyError: 'token'",
        "https://host/path?step=5",
        "num_key_value_heads=8 author=me autotune=1",
    ],
)
def test_words_of_the_field_stay(text: str) -> None:
    assert secrets.redact(text) == text


@pytest.mark.parametrize(
    "name", ["HF_TOKEN", "WANDB_API_KEY", "AWS_SECRET_ACCESS_KEY", "NCCL_AUTH_TOKEN", "HOME", "TORCH_PASSWORD"]
)
def test_a_variable_that_may_hold_a_secret_is_not_read(name: str) -> None:
    assert not secrets.allowed(name)


@pytest.mark.parametrize(
    "name", ["NCCL_DEBUG", "XLA_FLAGS", "CUDA_VISIBLE_DEVICES", "NVTE_FUSED_ATTN", "LD_LIBRARY_PATH"]
)
def test_a_flag_of_a_runtime_is_read(name: str) -> None:
    assert secrets.allowed(name)


def test_the_environment_is_read_through_both_fences() -> None:
    found = secrets.environment(
        {"NCCL_DEBUG": "INFO", "XLA_FLAGS": f"--x={PLANTED['aws']}", "HF_TOKEN": "x", "USER": "me"}
    )
    assert found == {"NCCL_DEBUG": "INFO", "XLA_FLAGS": "--x=[redacted]"}


def test_a_command_line_keeps_its_form() -> None:
    words = ["python", "train.py", "--hf-token", "abc", "--seq-length", "4096", "--wandb_key=abc", "--name", "a b"]
    assert secrets.command_line(words) == (
        "python train.py --hf-token [redacted] --seq-length 4096 --wandb_key=[redacted] --name 'a b'"
    )


def _planted(rec: Recorder, texts: list[str], every: str) -> None:
    rec.state("model.name", texts[0])
    rec.state("features", {"note": every, "api_key": "plainvalue99"})
    rec.state("flags.XLA_FLAGS", {"value": texts[3], "before_runtime": True})
    rec.state(every, 1)
    rec.note(every)
    rec.attach(PAIRS["query"][0])
    rec.attach(PAIRS["address"][0], kind="trace")
    rec.observe(attention=texts[4], kind="x", observed={"text": every, "password": "plainvalue99"})
    rec.counter(texts[5], 1)
    raise RuntimeError(every)


def test_no_door_lets_a_secret_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planted = [*PLANTED.values(), *(secret for _, secret in PAIRS.values())]
    texts = [*PLANTED.values(), *(text for text, _ in PAIRS.values())]
    every = " ".join(texts)
    monkeypatch.setattr(sys, "orig_argv", ["python", "train.py", *texts, "--secret", "argumentvalue99"])
    monkeypatch.setenv("NCCL_DEBUG", PLANTED["aws"])
    rec = recorder(tmp_path, label=every, context=texts[0], tags=texts, site=texts[1], keep_journal=True)
    with pytest.raises(RuntimeError), rec:
        _planted(rec, texts, every)
    (journal,) = tmp_path.glob("*.journal")
    for data in (Path(rec.written).read_bytes(), journal.read_bytes()):
        found = [secret for secret in (*planted, "argumentvalue99", "plainvalue99") if secret.encode() in data]
        assert found == []
