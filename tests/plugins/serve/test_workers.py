"""Costly questions: answered by processes that are ended where one takes too long."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from datetime import date
from typing import Any

import pytest
from starlette.testclient import TestClient

import report_store
from receipts.base.errors import NotFound, ReceiptsError
from receipts.plugins.serve.guard import AccessDenied, Limits, TooSlow
from receipts.plugins.serve.run import with_pages
from receipts.plugins.serve.server import Server, Settings
from receipts.plugins.serve.workers import Workers

pytestmark = pytest.mark.slow
EVERY = report_store.everything()
A, B = EVERY[0].id, EVERY[4].id


@pytest.fixture
def asked(server: Server) -> Iterator[Server]:
    """A server with one process for costly questions, which has a second for each once it has begun."""
    one = Server(server.opened, server.rulebook, Settings(("testserver",), open=True, limits=Limits(comparisons=1)))
    one.workers = Workers(one, 1)
    one.workers.ask(_process)
    one.workers._seconds = 1.0
    yield one
    one.close()


def _process(server: Server) -> int:
    return os.getpid()


def _ends_never(server: Server) -> None:
    while True:
        pass


def _fails(server: Server, name: str) -> None:
    server.opened.resolve(name)


def _refuses(server: Server) -> None:
    raise AccessDenied(403, "ana may read", "ana")


def _leaves(server: Server) -> None:
    os._exit(3)


def _cannot_be_sent(server: Server) -> Any:
    return lambda: 1


def test_a_question_that_does_not_end_is_ended_and_the_next_one_answered(asked: Server) -> None:
    assert asked.workers is not None
    before = asked.workers.ask(_process)
    with pytest.raises(TooSlow):
        asked.workers.ask(_ends_never)
    asked.workers._seconds = 60.0  # it starts again
    after = asked.workers.ask(_process)
    assert os.getpid() not in (before, after)
    assert before != after
    with pytest.raises(ProcessLookupError):
        os.kill(before, 0)


def test_what_a_question_raises_is_raised_and_costs_no_process(asked: Server) -> None:
    assert asked.workers is not None
    before = asked.workers.ask(_process)
    with pytest.raises(NotFound, match="nobody"):
        asked.workers.ask(_fails, "nobody")
    with pytest.raises(AccessDenied, match="ana may read"):
        asked.workers.ask(_refuses)
    with pytest.raises(ReceiptsError, match="pickle"):
        asked.workers.ask(_cannot_be_sent)
    assert asked.workers.ask(_process) == before


def test_a_process_that_is_gone_is_an_error_once(asked: Server) -> None:
    assert asked.workers is not None
    with pytest.raises(ReceiptsError, match="ask again"):
        asked.workers.ask(_leaves)
    asked.workers._seconds = 60.0
    assert asked.workers.ask(_process) > 0


def test_the_answers_are_those_of_the_server_itself(
    asked: Server, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("receipts.judging.grade.LAST_BY_START", date(2026, 11, 28))  # as its processes do
    assert asked.workers is not None
    asked.workers._seconds = 60.0
    with TestClient(with_pages(asked)) as other:
        for path in (
            f"/v1/compare?a={A}&b={B}",
            f"/v1/compare?a={A}&b={B}&format=text",
            f"/v1/neighbours?of={A}&format=text",
            f"/v1/bridge?a={A}&b={B}",
            "/v1/frontier",
            "/v1/claims",
            "/v1/compare?a=nobody&b=nobody",
            "/v1/claims/nobody",
            f"/v1/receipts/{A}/verify",
        ):
            theirs, own = other.get(path), client.get(path)
            assert (theirs.status_code, theirs.text) == (own.status_code, own.text), path
            assert theirs.headers.get("receipts-exit-code") == own.headers.get("receipts-exit-code")
        for path in (f"/compare?a={A}&b={B}", f"/compare?run={A}&run={B}&run={EVERY[2].id}", "/compare?a=nobody&b=x"):
            theirs, own = other.get(path), client.get(path)
            assert theirs.status_code == own.status_code, path
            assert _without_proof(theirs.text) == _without_proof(own.text)


def _without_proof(text: str) -> str:
    import re

    return re.sub(r"[0-9a-f]{64}", "", text)


def test_a_question_over_its_time_is_told_so_and_others_are_answered(
    asked: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert asked.workers is not None
    monkeypatch.setattr("receipts.plugins.serve.operation.answer_in_one_state", _waits)
    with TestClient(with_pages(asked)) as client:
        for path in (f"/v1/compare?a={A}&b={B}", f"/compare?a={A}&b={B}"):
            answer = client.get(path)
            assert answer.status_code == 504
            assert "more than 1 s" in answer.text
        assert client.get("/healthz").status_code == 200


def _waits(server: Server, *_: Any) -> None:
    time.sleep(600)
