"""Pages of the server: each view is there, escaped, runs no script of others, and changes nothing that no token may."""

from __future__ import annotations

import re
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from html.parser import HTMLParser
from typing import Any

import pytest
from starlette.testclient import TestClient

import report_store
from receipts.plugins.serve import runs, site
from receipts.plugins.serve.run import with_pages
from receipts.plugins.serve.server import Server
from receipts.publish import plots

pytestmark = pytest.mark.slow

EVERY = report_store.everything()
A, B = EVERY[0].id, EVERY[4].id
PAGES = {
    "/": "Frontier",
    "/runs": "Runs",
    "/runs?outcome=oom": "Runs",
    "/runs?q=chips>=1 outcome=oom": "Runs",
    f"/runs/{A}": "small decoder",
    f"/runs/{EVERY[6].id}": "<script>alert(1)</script>",
    f"/compare?a={A}&b={B}": "small decoder",
    f"/compare?run={B}&run={A}": "small decoder",
    f"/compare?run={B}&run={A}&run={EVERY[8].id}": "Compare",
    "/compare": "Compare",
    "/failures": "Failures and envelope",
    "/failures?lane=cpu-torch&plan=@golden": "Failures and envelope",
    "/inbox": "Inbox",
    "/histories": "Histories and incidents",
    f"/histories?receipt={A}": "small decoder",
    "/histories?lane=cpu-torch": "cpu-torch",
    "/bridge": "Bridge",
    f"/bridge?a={A}&b={B}": "Bridge",
    "/claims": "Claims",
    "/decisions": "@golden",
    "/reports": "2026-W10",
    "/login": "Sign in",
}


class Read(HTMLParser):
    """A page's text, its links, and every tag with its attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    @property
    def links(self) -> list[str]:
        return [attrs["href"] or "" for tag, attrs in self.tags if tag == "a" and "href" in attrs]


@pytest.mark.parametrize("path", PAGES)
def test_every_view_is_a_page_without_scripts_of_others_whose_links_lead_somewhere(
    client: TestClient, path: str
) -> None:
    answer = client.get(path)
    assert answer.status_code == 200
    scripts = re.findall(r"<script>(.*?)</script>", answer.text, re.DOTALL)
    digests = [b64encode(sha256(text.encode()).digest()).decode() for text in scripts]
    policy = answer.headers["content-security-policy"]
    assert re.findall(r"script-src (.*?);", f"{policy};") == [f"'sha256-{one}'" for one in digests]
    assert len(scripts) == (path.partition("?")[0] in site.LIVE)
    page = Read(answer.text)
    assert PAGES[path] in page.text
    assert not {tag for tag, _ in page.tags} & {"iframe", "object", "embed", "img"}
    assert not [name for _, attrs in page.tags for name in attrs if name.startswith("on")]
    ids = {attrs["id"] for _, attrs in page.tags if "id" in attrs}
    assert len(ids) == sum("id" in attrs for _, attrs in page.tags)
    for link in page.links:
        if link.startswith("#"):
            assert link[1:] in ids
        else:
            assert client.get(link).status_code == 200, link
    inputs = [attrs for tag, attrs in page.tags if tag in ("input", "select") and attrs.get("type") != "hidden"]
    labels = {attrs.get("for") for tag, attrs in page.tags if tag == "label"}
    assert all(attrs.get("id") in labels or attrs.get("aria-label") for attrs in inputs)


def test_pages_say_what_the_commands_say(client: TestClient) -> None:
    from receipts.publish.page import text

    page = client.get(f"/compare?a={A}&b={B}").text
    headline = client.get(f"/v1/compare?a={A}&b={B}&format=text").text.splitlines()[0]
    plain = " ".join(Read(page).text.split())
    assert " ".join(headline.split()) in plain
    assert "<svg" in page
    assert re.search(r"\d fit", Read(client.get("/failures").text).text)
    assert "2 launches" in Read(client.get("/runs?outcome=oom").text).text
    assert text(("a",)) == "a"


def test_a_wrong_question_is_a_page_that_says_so(client: TestClient) -> None:
    for path, status in (("/runs/nothing", 404), ("/runs?until=soon", 400), ("/failures?lane=none", 404)):
        answer = client.get(path)
        assert answer.status_code == status
        assert "<!doctype html>" in answer.text
    assert client.get("/runs/%3Cscript%3E").text.count("<script>") == 0


def test_a_wrong_word_is_corrected_where_it_stands(client: TestClient) -> None:
    for path, status, field in (
        ("/compare?a=nobody&b=no-one", 404, 'name="b" value="no-one"'),
        ("/runs?q=rain%3D1", 404, 'name="q" value="rain=1"'),
        ("/failures?plan=nobody", 404, 'name="plan" value="nobody"'),
    ):
        answer = client.get(path)
        assert answer.status_code == status
        assert field in answer.text
    both = Read(client.get("/compare?a=nobody&b=no-one").text).text
    assert "'nobody'" in both
    assert "'no-one'" in both


def test_a_visitor_signs_in_with_a_token(guarded: tuple[TestClient, dict[str, str]]) -> None:
    client, tokens = guarded
    away = client.get("/runs", follow_redirects=False)
    assert (away.status_code, away.headers["location"]) == (303, "/login?next=/runs")
    assert _sign_in(client, "rcp_wrong").status_code == 401
    assert _sign_in(client, tokens["submit"]).status_code == 403
    entered = _sign_in(client, tokens["read"], "/runs")
    assert (entered.status_code, entered.headers["location"]) == (303, "/runs")
    cookie = entered.headers["set-cookie"].lower()
    assert all(word in cookie for word in ("httponly", "samesite=strict", "path=/"))
    assert "read" in Read(client.get("/runs").text).text
    away = _sign_in(client, tokens["read"], "//evil.example")
    assert away.headers["location"] == "/"
    assert client.post("/logout").status_code == 403
    client.post("/logout", data={"form": _proof(client, "/runs")})
    assert client.get("/runs", follow_redirects=False).status_code == 303


def _proof(client: TestClient, path: str) -> str:
    """What the first form of a page carries."""
    found = re.search(r'type="hidden"[^>]* value="([0-9a-f]{64})"', client.get(path).text)
    assert found
    return found[1]


def _sign_in(client: TestClient, secret: str, target: str = "/") -> Any:
    given = {"token": secret, "form": _proof(client, "/login")}
    return client.post(f"/login?next={target}", data=given, follow_redirects=False)


def test_a_page_elsewhere_signs_nobody_in_or_out(guarded: tuple[TestClient, dict[str, str]]) -> None:
    client, tokens = guarded
    theirs = TestClient(client.app)
    proof = _proof(theirs, "/login")
    theirs.cookies.clear()
    for given in ({}, {"form": proof}, {"form": "0" * 64}):  # a cookie that is strict does not come with their form
        answer = theirs.post("/login", data={"token": tokens["read"], **given}, follow_redirects=False)
        assert (answer.status_code, "set-cookie" in answer.headers) == (403, False)
    _sign_in(client, tokens["decide"])
    for path in ("/login", "/logout"):
        answer = client.post(path, data={"token": tokens["read"], "form": proof}, follow_redirects=False)
        assert (answer.status_code, "set-cookie" in answer.headers) == (403, False)
    assert "decide" in Read(client.get("/runs").text).text


def _form(client: TestClient) -> str:
    found = re.search(r'name="form" value="([0-9a-f]{64})"', client.get(f"/runs/{A}").text)
    return found[1] if found else ""


def test_only_a_form_of_the_site_and_a_token_that_may_change_anything(
    guarded: tuple[TestClient, dict[str, str]], server: Server
) -> None:
    client, tokens = guarded
    pin = {"pin": "best", "note": "why"}
    _sign_in(client, tokens["read"])
    assert _form(client) == ""
    assert client.post(f"/runs/{A}", data=pin).status_code == 403
    _sign_in(client, tokens["decide"])
    proof = _form(client)
    assert proof
    assert client.post(f"/runs/{A}", data=pin).status_code == 403
    assert client.post(f"/runs/{A}", data={**pin, "form": proof[::-1]}).status_code == 403
    assert server.opened.pins().keys() == {"golden"}
    assert client.post(f"/runs/{A}", data={**pin, "form": proof}).status_code == 200
    assert server.opened.pins()["best"].receipt == A
    decision = {"decision": "ship", "reason": "it holds", "form": proof}
    assert "it holds" in client.post(f"/runs/{A}", data=decision).text
    _sign_in(client, tokens["admin"])
    assert client.post(f"/runs/{A}", data={**pin, "form": proof}).status_code == 403


def _links(client: TestClient, path: str) -> dict[str, str]:
    """The links of a page by their text."""
    found = re.findall(r'<a href="([^"]+)"[^>]*>([^<]*)', client.get(path).text)
    return {text.strip(): address.replace("&amp;", "&") for address, text in found}


def _names(client: TestClient, path: str) -> list[str]:
    return re.findall(r'class="what"><div><a href="[^"]+">(.*?)</a>', client.get(path).text)


def test_one_box_finds_labels_with_blanks_models_ids_pins_and_conditions(client: TestClient) -> None:
    for words, count in (
        ('"micro batch 64 again"', 1),
        ("MICRO again", 1),
        ('"other decoder"', 1),
        (A[:10], 1),
        ("@golden", 1),
        ('label="micro batch 64*"', 2),
        ("micro outcome=oom chips>=1", 2),
        ('"micro batch', 2),
        ("100%", 0),
    ):
        text = " ".join(Read(client.get("/runs", params={"q": words}).text).text.split())
        assert (f"Runs {count} receipt" if count else "no receipt meets") in text, words


def test_facets_count_what_the_others_and_the_search_leave(client: TestClient) -> None:
    links = _links(client, "/runs?outcome=oom")
    shown = " ".join(Read(client.get("/runs?outcome=oom").text).text.split())
    assert re.search(r"outcome ok 9 oom 2", shown)  # its own others stay, to be chosen instead
    assert re.search(r"lane cpu-torch 2 status", shown)
    assert links["oom"] == "/runs"  # once more takes it away
    assert "lane cpu-torch 1 status" in " ".join(Read(client.get("/runs?q=again").text).text.split())


def test_columns_sort_and_pages_go_both_ways(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    fast = _names(client, "/runs?sort=rate")
    assert fast[0] == "small decoder, 4 threads"
    assert _links(client, "/runs?sort=rate")["rate"] == "/runs?sort=rate&turned=true"
    assert _names(client, "/runs?sort=rate&turned=true")[0] != fast[0]
    assert client.get("/runs?sort=luck").status_code == 400
    monkeypatch.setattr("receipts.plugins.serve.runs.ROWS", 4)
    for start in ("/runs", "/runs?turned=true", "/runs?sort=lane"):
        second = _links(client, start)["Older"]
        assert _names(client, second) != _names(client, start)
        assert _names(client, _links(client, second)["Newer"]) == _names(client, start)


def test_a_range_of_days_takes_both_ends(client: TestClient) -> None:
    day = EVERY[6].receipt.run.started.date()
    (name,) = _names(client, f"/runs?since={day}&until={day}")
    assert "alert" in name


def test_who_is_signed_in_opens_what_a_page_links_to(guarded: tuple[TestClient, dict[str, str]]) -> None:
    client, tokens = guarded
    assert client.get(f"/v1/receipts/{A}/raw").status_code == 401
    _sign_in(client, tokens["read"])
    assert client.get(f"/v1/receipts/{A}/raw").content == EVERY[0].raw
    assert "<!doctype html>" in client.get("/v1/reports/weekly?week=2026-W10&format=html").text
    assert client.put("/v1/pins/x", json={"receipt": A}).status_code == 401  # a cookie changes nothing


def test_a_pin_shows_where_the_run_does(client: TestClient) -> None:
    (pinned,) = client.get("/v1/pins").json()
    assert "pinned as @golden" in Read(client.get(f"/runs/{pinned['receipt']}").text).text


def test_a_comparison_of_one_run_keeps_it_and_offers_the_other(client: TestClient) -> None:
    page = Read(client.get(f"/compare?b={A}").text)
    fields = {attrs["name"]: attrs["value"] for tag, attrs in page.tags if tag == "input" and attrs.get("value")}
    assert fields == {"b": A}
    (other,) = [link for link in page.links if link.startswith("/compare?a=")]
    assert "4 threads" in Read(client.get(other).text).text


def test_a_path_that_leads_nowhere_is_a_page_for_a_browser(client: TestClient) -> None:
    browser, program = {"accept": "text/html,*/*"}, {"accept": "application/json"}
    shown, raw = client.get("/nowhere", headers=browser), client.get("/nowhere", headers=program)
    assert (shown.status_code, raw.status_code) == (404, 404)
    assert "there is nothing at /nowhere" in Read(shown.text).text
    assert raw.json()["status"] == client.get("/v1/nowhere", headers=browser).json()["status"] == 404


def test_twelve_who_open_one_comparison_are_all_answered_by_one(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    compared = runs.comparison

    def counted(call: Any) -> Any:
        made.append(1)
        return compared(call)

    monkeypatch.setitem(site.COSTLY, "/compare", counted)
    with TestClient(with_pages(server)) as client, ThreadPoolExecutor(12) as crowd:
        answers = list(crowd.map(lambda _: client.get(f"/compare?a={A}&b={B}"), range(12)))
    assert {item.status_code for item in answers} == {200}
    assert len(made) == 1


def test_pictures_say_what_they_show() -> None:
    def drawn(seconds: list[float], steady: list[int]) -> str:
        return plots.steps_picture([plots.Trace("", seconds, steady)], name="t", title="Steps") or ""

    assert "5 steps, the slowest 3000 ms; 3 of them are steady" in drawn([2.0, 1.0, 1.0, 1.0, 3.0], [1, 2, 3])
    assert drawn([1.0, 1.1] * 50_000, []).count(" L ") <= plots.MAX_POINTS + 50
    assert drawn([1.0], []) == ""
    clipped = drawn([9.0, *[1.0 + at % 3 / 100 for at in range(40)]], list(range(1, 41)))
    assert "1 slower step at the edge, up to 9,000 ms" in clipped
    assert "axis from" in clipped  # the scale is that of what is steady


def test_a_headline_counts_no_more_than_is_known(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def headline(path: str) -> str:
        return " ".join(Read(client.get(path).text).text.split())

    assert "Runs 11 receipts" in headline("/runs")
    assert "Runs 2 receipts" in headline("/runs?outcome=oom")
    assert "no receipt meets these conditions" in headline("/runs?q=chips>=9999")
    for page in ("runs", "inbox"):
        monkeypatch.setattr(f"receipts.plugins.serve.{page}.ROWS", 1)
    assert "1 of 11 receipts" in headline("/runs")
    assert "1 of 2 receipts" in headline("/runs?outcome=oom")
    assert "1 more of 2 receipts" in headline(_links(client, "/runs?outcome=oom")["Older"])
    assert "The newest 1 failed launch of cpu-torch" in headline("/failures")


def test_a_title_is_no_page(client: TestClient) -> None:
    found = re.search(r"<h1.*?</h1>", client.get(f"/runs/{EVERY[6].id}").text, re.DOTALL)
    assert found is not None
    assert found[0].count("w") < 120


def test_the_inbox_counts_who_waits_for_each_question(client: TestClient) -> None:
    text = Read(client.get("/inbox").text).text
    assert "Questions of 1 open receipt," in text
    assert re.search(r"step times \(.*R205.*\) · 1 receipt", text)


def test_what_was_reported_is_shown_however_long_ago_it_ran(client: TestClient) -> None:
    text = Read(client.get("/").text).text
    assert "Reported, not proven" in text
    assert "from a notebook" in text


def test_the_first_page_draws_the_frontier_of_each_lane_and_who_leads_it(client: TestClient) -> None:
    page = client.get("/").text
    assert page.index('id="lane-0-368-title"') < page.index("Newest runs") < page.index('id="lane-cpu-torch"')
    assert "tokens/s/chip, small decoder, 4 threads, 3 launches" in page
    assert "Proven on cpu-torch" in Read(page).text


def test_a_rejected_comparison_leads_to_its_bridge(client: TestClient) -> None:
    pair = f"a={A}&b={EVERY[6].id}"
    links = Read(client.get(f"/compare?{pair}").text).links
    assert f"/bridge?{pair}" in links
    assert "Bridge" not in Read(client.get(f"/compare?a={A}&b={B}").text).text


def test_what_is_wrong_with_a_run_comes_first(client: TestClient) -> None:
    shown = client.get(f"/runs/{EVERY[6].id}").text
    assert re.search(r'<details class="entry"[^>]* open>\s*<summary><strong><bdi>[A-Z][^<]+</bdi><code>[A-Z]\d+', shown)
    assert 0 < shown.index('<section id="errors"') < shown.index('<section id="answers"')


def test_a_run_names_itself_once_and_an_unknown_cost_is_not_zero(client: TestClient) -> None:
    assert "<bdi>small decoder</bdi></p>" not in client.get(f"/runs/{A}").text
    failed = Read(client.get("/failures").text).text
    assert "2 failed launches of cpu-torch" in failed
