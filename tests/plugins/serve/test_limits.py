"""What one request may cost: depth, length, words and rows are bounded, and so are the answers."""

from __future__ import annotations

import http.client
from contextlib import closing
from urllib.parse import urlsplit

from starlette.testclient import TestClient

from receipts.base.errors import MAX_WRONG
from receipts.plugins.serve.tools import MAX_ANSWER, brief
from receipts.publish.text import json_text

JSON = {"Content-Type": "application/json"}


def test_a_body_that_nests_too_deep_is_refused(client: TestClient) -> None:
    for depth in (40, 100_000):
        document = b'{"a":' * depth + b"1" + b"}" * depth
        assert client.post("/v1/receipts", content=document, headers=JSON).status_code == 422
    nested = b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b', "b": ["x"]}'
    assert client.post("/v1/compare", content=nested, headers=JSON).status_code == 422


def test_unknown_words_are_looked_up_a_few_at_a_time(client: TestClient) -> None:
    sides = {name: [f"{name}-{number}" for number in range(1000)] for name in "ab"}
    answer = client.post("/v1/compare", json=sides)
    assert answer.status_code == 404
    assert answer.json()["detail"].count("no receipt is called") == MAX_WRONG
    assert "the 1,980 words after these were not looked up" in answer.json()["detail"]


def test_a_parameter_and_the_rows_of_a_page_are_bounded(client: TestClient) -> None:
    assert client.get("/v1/receipts", params={"where": f"label={'x' * 495}"}).status_code == 400
    assert client.get("/v1/receipts", params={"limit": "1000"}).status_code == 200
    assert client.get("/v1/receipts", params={"limit": "1001"}).status_code == 400


def test_the_head_of_a_request_is_bounded(listening: str) -> None:
    with closing(http.client.HTTPConnection(urlsplit(listening).netloc)) as connection:
        connection.request("GET", "/healthz", headers={"X-Long": "x" * 100_000})
        with connection.getresponse() as answer:
            assert answer.status in (400, 431)  # while it comes, or when it is there


def test_an_answer_to_an_agent_is_cut() -> None:
    answer = brief({"rows": [{"label": "x" * 400, "note": "y" * 3000} for _ in range(500)]})
    assert len(json_text(answer)) <= 2 * MAX_ANSWER
