"""``receipts check``."""

from __future__ import annotations

from command_line import HOSTILE, Shell


def test_a_clean_receipt_is_valid_and_ends_with_its_status(shell: Shell) -> None:
    said = shell("check", shell.write("clean"))
    assert said.code == 0
    assert said.lines[-1] == "valid · path witnessed"


def test_an_offence_is_told_with_what_to_do(shell: Shell) -> None:
    said = shell("check", shell.write("torn", batch__global_batch=17))
    assert said.code == 1
    assert "R106 batch_unaccounted" in said.out
    assert "→ " in said.out
    assert said.lines[-1].startswith("invalid")


def test_nothing_is_stored(shell: Shell) -> None:
    shell.unmade()
    shell("check", shell.write("clean"))
    assert not (shell.folder / "store.sqlite").exists()


def test_a_file_is_checked_beside_the_store_of_the_environment(shell: Shell) -> None:
    for day in (1, 2):
        shell.store(f"small-{day}", run__launch=f"small-{day}", run__started=f"2026-03-0{day}T09:00:00+00:00")
    larger = shell.write("larger", run__launch="larger", batch__sequence_length=512, batch__micro_batch=4)
    assert "R116 beyond_envelope" in shell("check", larger).out
    resumed = shell.write("resumed", run__resumed_from="small-1", wheels={"torch": {"version": "2.13.0"}})
    assert "R119 changed_midway" in shell("check", resumed).out


def test_a_store_that_cannot_be_read_is_said_and_not_asked(shell: Shell) -> None:
    (shell.folder / "store.sqlite").write_text("no database " * 100, encoding="utf-8")
    said = shell("check", shell.write("clean"))
    assert said.code == 0
    assert "judged without the store" in said.err
    assert shell("check", "clean.json", "--store", "store.sqlite").code == 4


def test_json_carries_every_finding_of_the_text(shell: Shell) -> None:
    path = shell.write("torn", batch__global_batch=17)
    (verdict,) = shell("check", path, "--json").json
    assert verdict["status"] == "invalid"
    text = shell("check", path).out
    assert all(item["code"] in text for item in verdict["findings"])


def test_quiet_is_one_line_a_receipt(shell: Shell) -> None:
    said = shell("check", "-q", shell.write("one"), shell.write("two", batch__global_batch=17))
    assert [line.split(":")[0] for line in said.lines] == ["one", "two"]
    assert said.code == 1


def test_a_bad_file_does_not_hide_the_others(shell: Shell) -> None:
    (shell.folder / "bad.json").write_text("{", encoding="utf-8")
    said = shell("check", "bad.json", "none.json", shell.write("clean"))
    assert said.code == 2
    assert "bad.json" in said.err
    assert "none.json" in said.err
    assert said.lines[-1].startswith("valid")


def test_an_id_and_a_label_are_as_good_as_a_file(shell: Shell) -> None:
    receipt = shell.store("stored")
    for word in (receipt, receipt[:10], "stored", "label=sto*"):
        assert shell("check", word).lines[-1].startswith("valid"), word


def test_an_unknown_id_is_refused_with_a_sentence(shell: Shell) -> None:
    shell.store("stored")
    said = shell("check", "nobody")
    assert said.code == 2
    assert "no receipt is called 'nobody'" in said.err
    assert said.out == ""


def test_a_hostile_label_never_reaches_the_terminal_raw(shell: Shell) -> None:
    path = shell.write("evil", run__label=HOSTILE, batch__global_batch=17)
    for words in (("check", path), ("check", path, "-q"), ("check", path, "--json")):
        said = shell(*words)
        assert not set(HOSTILE) & set(said.out) - set("evil[31m2J"), words


def test_a_number_is_held_against_the_statistic_that_it_claims_to_be(shell: Shell) -> None:
    leaves = {"measurement__stated__tokens_per_second": 114000.0, "measurement__stated__mfu": 0.402}
    leaves |= {f"{path}_stated": None for path in leaves}
    said = " ".join(shell("check", shell.write("run", "megatron", **leaves)).out.split())
    assert "over the median step of the window" in said
    assert "from the stated tokens/s, the stated FLOPs a token, 8 chips" in said


def test_what_is_missing_is_listed_by_weight_with_what_to_do(shell: Shell) -> None:
    path = shell.write("bare", measurement__step_durations_seconds=None, model__depth=None, path__witnessed=None)
    first = shell("check", path).lines[0]
    assert "keep it from being valid, first of all step times (R205), witness of the path" in first
    said = shell("check", path, "--missing")
    assert said.code == 3
    rows = said.lines[said.lines.index("") + 2 :]
    assert [row.split("  ")[1] for row in rows[:1]] == ["step times"]
    where = {name: at for at, line in enumerate(rows) for name in ("step times", "depth of the model") if name in line}
    assert where["step times"] < where["depth of the model"], "what keeps a question open is before a single fact"
    assert "state model.depth" in said.out
    assert "R301 unwitnessed_path" not in said.out


def test_a_submit_of_one_open_receipt_says_what_keeps_it_open(shell: Shell) -> None:
    whole = shell("submit", shell.write("bare", measurement__step_durations_seconds=None, path__witnessed=None))
    assert "from being valid" in " ".join(whole.out.split())


def test_a_mistyped_lane_is_answered_with_those_near_it(shell: Shell) -> None:
    said = " ".join(shell("check", shell.write("one", run__lane="cpu-troch")).out.split())
    assert "no lane is called cpu-troch; did you mean cpu-torch or " in said
    assert "a declared lane (R301)" in said


def test_a_trailing_comma_is_told_as_one(shell: Shell) -> None:
    (shell.folder / "run.json").write_text('{"run": {"lane": "cpu-torch",\n}}', encoding="utf-8")
    said = shell("check", "run.json")
    assert said.code == 2
    assert "a comma before a closing bracket (take the comma out)" in " ".join(said.err.split())
