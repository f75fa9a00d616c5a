"""Secrets never enter: neither the receipt nor the journal holds one that was planted anywhere."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest

from jobs import recorder
from planted import HONEST, ISSUED, NAMED
from receipts.emit import Recorder, secrets


@pytest.mark.parametrize("token", ISSUED.values(), ids=ISSUED)
def test_an_issued_token_is_taken_out_of_any_text(token: str) -> None:
    assert token not in secrets.redact(f"login failed for {token}, try again")
    assert "try again" in secrets.redact(f"login failed for {token}, try again")


@pytest.mark.parametrize(("text", "secret"), NAMED.values(), ids=NAMED)
def test_a_named_secret_is_taken_out_of_any_text(text: str, secret: str) -> None:
    assert secret not in secrets.redact(text)


@pytest.mark.parametrize("text", HONEST)
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
        {"NCCL_DEBUG": "INFO", "XLA_FLAGS": f"--x={ISSUED['aws']}", "HF_TOKEN": "x", "USER": "me"}
    )
    assert found == {"NCCL_DEBUG": "INFO", "XLA_FLAGS": "--x=[redacted]"}


@pytest.mark.parametrize("token", ISSUED.values(), ids=ISSUED)
def test_an_issued_token_is_taken_out_of_a_command_line_even_in_pieces(token: str) -> None:
    for words in (["train.py", "--note", token], ["train.py", *token.split()], ["train.py", f"--note={token}"]):
        assert max(token.split(), key=len)[-20:] not in secrets.command_line(words)


@pytest.mark.parametrize(("text", "secret"), NAMED.values(), ids=NAMED)
def test_a_named_secret_is_taken_out_of_a_command_line_and_what_was_blanked_stays(text: str, secret: str) -> None:
    assert secret not in secrets.command_line([text] if text[0] in "[{" else shlex.split(text))
    assert secrets.redact(secrets.redact(text)) == secrets.redact(text)


def test_a_command_line_keeps_its_form() -> None:
    words = ["python", "train.py", "--hf-token", "abc", "--seq-length", "4096", "--wandb_key=abc", "--name", "a b"]
    assert secrets.command_line(words) == (
        "python train.py --hf-token [redacted] --seq-length 4096 --wandb_key=[redacted] --name 'a b'"
    )


def test_a_plain_word_under_a_secret_s_name_leaves_a_digest_of_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    def line(value: str, name: str = "--router-key") -> str:
        return secrets.command_line(["train.py", name, value]).removeprefix(f"train.py {name} ")

    assert line("topk") == "[redacted]"
    monkeypatch.setenv("RECEIPTS_STORE", "/lab/store.sqlite")
    topk, hashed = line("topk"), line("hash")
    assert re.fullmatch(r"\[redacted:[0-9a-f]{4}:[0-9a-f]{4}\]", topk)
    assert topk != hashed
    assert (topk, line("topk", "--router-key")) == (line("topk"), topk)
    assert secrets.redact(f"--router-key {topk}") == f"--router-key {topk}"
    assert secrets.hidden("inputs.options.router_key", topk) == topk
    for value in ("k3yWith0Digits", "a" * 30, "0123456789abcdef"):
        assert line(value) == "[redacted]"
    assert line("hunter", "--db-password") == "[redacted]"
    monkeypatch.setenv("RECEIPTS_STORE", "/other/store.sqlite")
    assert line("topk")[:15] != topk[:15]


def _planted(rec: Recorder, texts: list[str], every: str) -> None:
    rec.state("model.name", texts[0])
    rec.state("features", {"note": every, "api_key": "plainvalue99"})
    rec.state("flags.XLA_FLAGS", {"value": texts[3], "before_runtime": True})
    rec.state(every, 1)
    rec.note(every)
    rec.attach(NAMED["query"][0])
    rec.attach(NAMED["address"][0], kind="trace")
    rec.observe(attention=texts[4], kind="x", observed={"text": every, "password": "plainvalue99"})
    rec.counter(texts[5], 1)
    raise RuntimeError(every)


def test_no_door_lets_a_secret_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planted = [*ISSUED.values(), *(secret for _, secret in NAMED.values())]
    texts = [*ISSUED.values(), *(text for text, _ in NAMED.values())]
    every = " ".join(texts)
    monkeypatch.setattr(sys, "orig_argv", ["python", "train.py", *texts, "--secret", "argumentvalue99"])
    monkeypatch.setenv("NCCL_DEBUG", ISSUED["aws"])
    rec = recorder(tmp_path, label=every, context=texts[0], tags=texts, site=texts[1], keep_journal=True)
    with pytest.raises(RuntimeError), rec:
        _planted(rec, texts, every)
    (journal,) = tmp_path.glob("*.journal")
    for data in (Path(rec.written).read_bytes(), journal.read_bytes()):
        found = [secret for secret in (*planted, "argumentvalue99", "plainvalue99") if secret.encode() in data]
        assert found == []
