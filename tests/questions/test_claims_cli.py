"""``receipts claim``, ``decide`` and ``impact``, and what a store keeps of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import rule_cases
from command_line import Shell
from receipts.base.environment import this_process
from receipts.base.errors import ConflictError, NotFound, UsageError
from receipts.store import Store, open_store
from store_receipts import claim_verdict, new_claim, publish, ready

pytestmark = pytest.mark.slow

SECONDS = {"base": 0.8, "cand": 0.6}


def _launches(shell: Shell) -> None:
    """Three stored launches a side, labelled base and cand, a third apart."""
    for side, seconds in SECONDS.items():
        for index in range(3):
            hour = 9 + index + (0 if side == "base" else 3)
            tree = rule_cases.build({"steps": {"seconds": seconds, "seed": hour}})
            leaves = {
                "run.launch": f"{side}-{index}",
                "run.label": side,
                "run.started": f"2026-03-02T{hour:02}:00:00+00:00",
                "run.finished": f"2026-03-02T{hour:02}:10:00+00:00",
                "numerics.learning_rate": 3e-4 if side == "base" else 7,
            }
            for leaf, value in leaves.items():
                rule_cases.put(tree, leaf, value)
            path = shell.folder / f"{side}-{index}.json"
            path.write_text(json.dumps(tree), encoding="utf-8")
            said = shell("submit", str(path))
            assert said.code == 0, said.err
            shell.made[f"{side}-{index}"] = rule_cases.parsed(tree).id


def _claims(shell: Shell, *claims: str, name: str = "claims.toml") -> str:
    path = shell.folder / name
    path.write_text('schema_version = "1.0"\n' + "".join(f"[[claim]]\n{claim}\n" for claim in claims), encoding="utf-8")
    return str(path)


def _speedup(name: str, effect: str = "at least 1.30", more: str = "") -> str:
    return (
        f'id = "{name}"\ntext = "a third faster"\nkind = "speedup"\nbaseline = "label=base"\n'
        f'candidate = "label=cand"\naxis = "numerics.learning_rate"\neffect = "{effect}"\n{more}'
    )


def test_check_answers_with_the_worst_claim_of_a_file(shell: Shell) -> None:
    _launches(shell)
    assert shell("claim", "check", _claims(shell, _speedup("good"))).code == 0
    assert shell("claim", "check", _claims(shell, _speedup("good"), _speedup("open", "at least 1.3333"))).code == 3
    both = _claims(shell, _speedup("good"), _speedup("open", "at least 1.3333"), _speedup("bad", "at least 1.5"))
    said = shell("claim", "check", both, "--json")
    assert said.code == 1
    assert [item["status"] for item in said.json] == ["supported", "unproven", "refuted"]
    assert shell("claim", "check", both, "--only", "good").code == 0


def test_a_file_of_claims_on_files_needs_no_store(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    shell.write("one")
    claim = 'id = "c"\ntext = "t"\nkind = "ceiling"\ncandidate = "one.json"\n'
    monkeypatch.setenv("RECEIPTS_STORE", str(shell.folder / "none" / "store.sqlite"))
    said = shell("claim", "check", _claims(shell, claim))
    assert said.code == 1
    assert "K105" in said.out


def test_words_that_name_nothing_leave_a_claim_unproven(shell: Shell) -> None:
    _launches(shell)
    path = _claims(shell, _speedup("a").replace("label=base", "label=nobody"))
    said = shell("claim", "check", path)
    assert said.code == 3
    assert "K101" in said.out


def test_a_wrong_call_or_file_is_code_two(shell: Shell) -> None:
    shell.store("one")
    assert shell("claim", "check").code == 2
    assert shell("claim", "check", "--all", "claims.toml").code == 2
    assert shell("claim", "check", "none.toml").code == 2
    said = shell("claim", "check", _claims(shell, _speedup("a", "fast")))
    assert said.code == 2
    assert "claim[0].effect" in said.err
    assert shell("claim", "check", _claims(shell, _speedup("a")), "--only", "b").code == 2
    assert shell("claim", "show", "nobody").code == 2
    assert shell("claim", "footnote", "nobody").code == 2


def test_claims_are_kept_shown_and_never_edited(shell: Shell) -> None:
    _launches(shell)
    path = _claims(shell, _speedup("win", more='quoted_in = ["README.md"]'))
    assert shell("claim", "add", path, "--json").json[0]["status"] == "supported"
    assert "already" in shell("claim", "add", path).err
    changed = shell("claim", "add", _claims(shell, _speedup("win", "at least 1.2")))
    assert changed.code == 2
    assert "never edited" in changed.err
    shown = shell("claim", "show", "win", "--json").json
    assert (shown["verdict"]["status"], shown["before"][0]["status"]) == ("supported", "supported")
    assert "README.md" in shell("claim", "show", "win").out
    assert shown["actor"] == str(this_process())
    assert str(this_process()) in shell("claim", "show", "win").out
    assert [item["claim"] for item in shell("claim", "list", "--json").json] == ["win"]
    assert shell("claim", "list", "--status", "refuted", "--json").json == []


def test_a_stored_claim_names_no_file_that_could_move(shell: Shell) -> None:
    shell.store("one")
    said = shell("claim", "add", _claims(shell, 'id = "c"\ntext = "t"\nkind = "ceiling"\ncandidate = "one.json"'))
    assert said.code == 2
    assert "claim[0].candidate" in said.err


def test_a_superseded_claim_is_listed_only_when_asked_for(shell: Shell) -> None:
    _launches(shell)
    assert shell("claim", "add", _claims(shell, _speedup("old"))).code == 0
    new = _speedup("new", "at least 1.25", 'supersedes = "old"\nreason = "too close to the interval"')
    assert shell("claim", "add", _claims(shell, new)).code == 0
    assert [item["claim"] for item in shell("claim", "list", "--json").json] == ["new"]
    everything = shell("claim", "list", "--everything", "--json").json
    assert everything[0]["superseded"] == ["new", "too close to the interval"]
    assert shell("claim", "supersede", "new", "--reason", "withdrawn").code == 0
    assert shell("claim", "supersede", "new", "--reason", "again").code == 2
    actor = str(this_process())
    assert f"withdrawn: withdrawn; actor: {actor}" in shell("claim", "show", "new").out
    assert shell("claim", "show", "old", "--json").json["superseded"]["actor"] == actor
    assert shell("claim", "check", "--all").out.startswith("0 claims")


def test_a_win_waits_for_its_retest_at_the_target(shell: Shell) -> None:
    _launches(shell)
    path = _claims(shell, _speedup("win"), _speedup("far", more="target = { depth = 52 }"))
    assert [item["claim"] for item in shell("claim", "pending", path, "--json").json] == ["far"]
    shell("claim", "add", path)
    assert "depth 52" in shell("claim", "pending").out


def test_a_footnote_is_written_from_the_store_and_from_a_file(shell: Shell) -> None:
    _launches(shell)
    path = _claims(shell, _speedup("win"))
    said = shell("claim", "footnote", "win", "--file", path)
    assert said.code == 0
    for part in ("numerics.learning_rate 0.0003 → 7", "3 and 3 launches", "95 % interval", "rule set"):
        assert part in said.out
    shell("claim", "add", path)
    assert shell("claim", "footnote", "win", "--json").json["footnote"] == said.out.rstrip("\n")


def test_what_quotes_a_receipt_goes_stale_with_it_and_is_listed(shell: Shell) -> None:
    _launches(shell)
    shell("claim", "add", _claims(shell, _speedup("win", more='quoted_in = ["docs/results.md"]')))
    cand = shell.made["cand-0"]
    (shell.folder / "note.md").write_text(f"[fast](receipt:{cand[:8]})", encoding="utf-8")
    (shell.folder / "other.md").write_text("[fast](receipt:00000000)", encoding="utf-8")
    before = shell("impact", cand, "--in", str(shell.folder), "--json")
    assert (before.code, before.json["stale"]) == (0, False)
    assert before.json["claims"][0]["id"] == "win"
    found = [Path(item).name for item in before.json["documents"]]
    assert "note.md" in found
    assert "results.md" in found
    assert "other.md" not in found
    shell("retract", cand, "--reason", "silent gradient corruption")
    after = shell("impact", cand)
    assert after.code == 3
    assert "silent gradient corruption" in after.out
    checked = shell("claim", "check", "--all")
    assert checked.code == 3
    assert "silent gradient corruption" in checked.out
    assert shell("impact", cand, "--in", "nowhere").code == 2


def test_a_report_is_known_to_quote_what_it_shows(shell: Shell) -> None:
    receipt = shell.store("one")
    assert shell("report", "weekly", "--week", "2026-W10", "--out", "out").code == 0
    documents = shell("impact", receipt, "--json").json["documents"]
    assert [Path(item).name for item in documents] == ["report.md"]


def test_a_decision_is_shown_wherever_the_receipt_is_quoted(shell: Shell) -> None:
    _launches(shell)
    base, cand = shell.made["base-0"], shell.made["cand-0"]
    assert shell("decide", cand, "ship", "--reason", "validated").code == 0
    assert shell("decide", cand, "drop", "--reason", "the loss parts after 200 steps").code == 0
    assert [item["decision"] for item in shell("decide", cand, "--json").json] == ["ship", "drop"]
    for words in (("show", cand), ("compare", base, cand), ("compare", base, cand, "--format", "markdown")):
        assert "the loss parts after 200 steps" in shell(*words).out
    assert shell("compare", base, cand).lines[-1].startswith(("accepted", "inconclusive", "rejected"))
    assert shell("compare", base, cand, "--json").json["decisions"][1]["decision"] == "drop"
    shell("claim", "add", _claims(shell, _speedup("win")))
    assert "the loss parts" in shell("claim", "show", "win").out
    assert "the loss parts" in shell("claim", "footnote", "win").out
    assert "the loss parts" in shell("impact", cand).out
    assert "nothing was decided" in shell("decide", base).out


def test_a_decision_needs_its_reason_and_a_known_word(shell: Shell) -> None:
    receipt = shell.store("one")
    assert shell("decide", receipt, "ship").code == 2
    assert shell("decide", receipt, "--reason", "x").code == 2
    assert shell("decide", receipt, "maybe", "--reason", "x").code == 2
    assert shell("decide", "nobody", "ship", "--reason", "x").code == 2


@pytest.fixture
def store(made_url: str) -> Store:
    """A store on each engine."""
    return open_store(made_url)


def test_claims_keep_their_order_and_their_supersession(store: Store) -> None:
    receipt = store.submit(*ready()).id
    assert store.published.add_claims([new_claim("b", receipt, supersedes="a"), new_claim("a", receipt)]) == ["b", "a"]
    assert store.published.add_claims([new_claim("a", receipt)]) == []
    assert [item.id for item in store.published.claims()] == ["b"]
    standing, gone = (item.superseded for item in store.published.claims(standing=False))
    assert standing is None
    assert gone is not None
    assert gone[1:3] == ("b", "a better one")
    assert str(gone.actor).endswith(str(this_process()))
    with pytest.raises(ConflictError, match="never edited"):
        store.published.add_claims([new_claim("c", receipt), new_claim("a", "0" * 64)])
    assert len(store.published.claims(standing=False)) == 2
    with pytest.raises(NotFound):
        store.published.supersede_claim("b", "nobody", "x")
    with pytest.raises(UsageError, match="say why"):
        store.published.supersede_claim("b", None, " ")
    store.close()


def test_the_last_verdict_of_a_claim_says_what_it_stands_on(store: Store) -> None:
    one, two = store.submit(*ready()).id, store.submit(*ready()).id
    store.published.add_claims([new_claim("a", one)])
    store.published.record_claims([claim_verdict("a", one)])
    assert (store.published.claims_on(one), store.published.claims_on(two)) == (["a"], [])
    store.published.record_claims([claim_verdict("a", two, "stale")])
    assert (store.published.claims_on(one), store.published.claims_on(two)) == ([], ["a"])
    assert [item.status for item in store.published.claim_verdicts("a")] == ["supported", "stale"]
    last = store.published.last_claim_verdict("a")
    assert last is not None
    assert last.receipts == (("candidate", two),)
    assert last.document["claim"] == "a"
    store.close()


def test_the_last_reading_of_a_document_counts(store: Store) -> None:
    receipt = store.submit(*ready()).id
    store.published.quote("README.md", [(receipt, "98k"), ("f" * 64, None)])
    assert [(item.document, item.says) for item in store.published.quotes(receipt)] == [("README.md", "98k")]
    store.published.quote("README.md", [])
    assert store.published.quotes(receipt) == []
    store.close()


def test_a_purge_takes_the_verdicts_that_quote_the_receipt(store: Store) -> None:
    gone, kept = store.submit(*ready()).id, store.submit(*ready()).id
    publish(store, gone)
    store.published.add_claims([new_claim("third", kept)])
    store.published.record_claims([claim_verdict("third", kept)])
    store.purge(gone, "it held a password")
    assert store.published.claim_verdicts("second") == []
    assert len(store.published.claim_verdicts("third")) == 1
    assert [item.decision for item in store.published.decisions([gone])] == ["hold"]
    store.close()


def test_a_target_larger_than_the_launch_is_held_against_what_any_layout_sustained_there(shell: Shell) -> None:
    _launches(shell)
    claim = _speedup("far", more="target = { sequence_length = 512 }")
    assert "K108" in shell("claim", "check", _claims(shell, claim)).out
    for day in (1, 2):
        tree = rule_cases.build({"steps": {"seconds": 0.9, "seed": day}})
        leaves = {
            "run.launch": f"large-{day}",
            "run.label": "large",
            "run.started": f"2026-02-0{day}T09:00:00+00:00",
            "run.finished": f"2026-02-0{day}T09:10:00+00:00",
            "batch.sequence_length": 512,
            "batch.micro_batch": 4,
            "batch.global_batch": 8,
            "numerics.recompute": "full",
            "numerics.recompute_applied": "full",
        }
        for leaf, value in leaves.items():
            rule_cases.put(tree, leaf, value)
        path = shell.folder / f"large-{day}.json"
        path.write_text(json.dumps(tree), encoding="utf-8")
        assert shell("submit", str(path)).code == 0
    assert "K108" not in shell("claim", "check", _claims(shell, claim)).out
