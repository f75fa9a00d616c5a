"""Secrets in what comes from outside: found in linear time, blanked by the recorder's own rules."""

from __future__ import annotations

import pytest

from planted import HONEST, ISSUED, NAMED
from receipts.base.untrusted_text import redacted, secret_in
from receipts.emit.secrets import HIDDEN, redact

TOKEN = "hf_" + "a1B2" * 6
SECRETS = [
    f"login with {TOKEN} failed",
    "cloning https://ada:s3cret-pass@host/repo.git",
    "s3://KEYID:SECRETKEY@bucket/data",
    "Authorization: Bearer abcdefgh12345678",
    "password=hunter22",
    "--wandb-api-key 0123456789abcdef",
]


@pytest.mark.parametrize("text", [*SECRETS, *ISSUED.values(), *(text for text, _ in NAMED.values())])
def test_a_reader_blanks_what_the_recorder_blanks(text: str) -> None:
    assert redacted(text) == redact(text)
    assert HIDDEN in redacted(text)


@pytest.mark.parametrize("text", ["sha256 " + "0a" * 32, "git@host:team/repo.git", "8192 tokens a step", *HONEST])
def test_honest_texts_stay(text: str) -> None:
    assert redacted(text) == text
    assert not secret_in(text)


def test_what_is_named_a_secret_is_blanked_whole_inside_lists_and_maps() -> None:
    assert redacted({"api_key": "plain", "lr": "3e-4", "list": [TOKEN]}) == {
        "api_key": HIDDEN, "lr": "3e-4", "list": [HIDDEN],
    }  # fmt: skip


def test_only_issued_tokens_and_passwords_in_addresses_count_as_certain() -> None:
    assert [bool(secret_in(text)) for text in SECRETS] == [True, True, True, False, False, False]
