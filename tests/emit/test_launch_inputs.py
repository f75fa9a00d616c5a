"""What a launch was started with, as programs that are really started say it."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from jobs import environment, only, read, recorder
from receipts.emit.configuration import object_settings
from receipts.emit.integrations import maxtext_step

pytestmark = pytest.mark.slow

ROOT = str(Path(__file__).resolve().parents[2])
HEAD = """
import argparse, os, runpy, sys
from receipts.emit import Recorder
from receipts.emit.probes import inputs
def record(out="run.json", **options):
    with Recorder("cpu-torch", out=out, quiet=True, probes=[inputs], **options) as rec:
        with rec.step(tokens=8):
            pass
    return rec
"""


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def start(folder: Path, *words: str, stdin: str | None = None, **variables: str) -> None:
    env = {name: text for name, text in environment(**variables).items() if name != "WANDB_SWEEP_ID"}
    done = subprocess.run(
        [sys.executable, *words], cwd=folder, env=env, input=stdin, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def run(folder: Path, body: str, *words: str, **variables: str) -> dict[str, Any]:
    """The inputs of a program that was started with these words."""
    write(folder, "t.py", HEAD + body)
    (folder / "run.json").unlink(missing_ok=True)
    start(folder, "t.py", *words, **variables)
    return dict(read(folder / "run.json")["inputs"])


def test_options_are_what_was_typed(tmp_path: Path) -> None:
    found = run(tmp_path, "record()", "--lr", "1e-2", "--micro-batch=4", "model.depth=3", "fit", "--bf16")
    assert found["options"] == {"#0": "fit", "bf16": "true", "lr": "1e-2", "micro_batch": "4", "model.depth": "3"}
    assert (found["program"], found["capture"]) == ("t.py", "whole")
    assert (found["launcher"], found["environment"]) == ({}, {})


def test_an_option_that_the_program_takes_out_of_its_words_is_kept(tmp_path: Path) -> None:
    body = """
flash = "--flash" in sys.argv
sys.argv = [word for word in sys.argv if word != "--flash"]
del sys.argv[1]
record()
"""
    found = run(tmp_path, body, "first", "second", "--lr", "1", "--flash")
    assert found["options"] == {"#0": "first", "#1": "second", "flash": "true", "lr": "1"}


@pytest.mark.parametrize("words", [["t.py"], ["-m", "t"], ["./t.py"], ["../one/t.py"]], ids=" ".join)
def test_one_file_is_one_program_however_it_is_named(tmp_path: Path, words: list[str]) -> None:
    folder = tmp_path / "one"
    write(folder, "t.py", HEAD + "record()")
    start(folder, *words, "--lr", "3")
    found = read(folder / "run.json")["inputs"]
    assert (found["program"], found["options"], found["capture"]) == ("t.py", {"lr": "3"}, "whole")


def test_a_program_is_named_below_its_checkout(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    write(tmp_path, "train/pretrain/t.py", HEAD + "os.chdir('/'); record(sys.argv[1])")
    write(tmp_path, "conf/a.json", '{"lr": 1}')
    start(tmp_path / "train", "pretrain/t.py", str(tmp_path / "run.json"), "--config", str(tmp_path / "conf/a.json"))
    found = read(tmp_path / "run.json")["inputs"]
    assert found["program"] == "train/pretrain/t.py"
    assert found["options"] == {"#0": "run.json", "config": "conf/a.json"}


def test_the_interpreter_s_own_options_are_the_launcher_s(tmp_path: Path) -> None:
    write(tmp_path, "t.py", HEAD + "record()")
    start(tmp_path, "-u", "-O", "t.py", "--lr", "3")
    found = read(tmp_path / "run.json")["inputs"]
    assert (found["options"], found["launcher"]) == ({"lr": "3"}, {"python.O": "1"})


def test_a_wrapper_hands_on_the_program_s_words_and_its_own_stand_before(tmp_path: Path) -> None:
    write(tmp_path, "t.py", HEAD + "record()")
    wrapper = "import runpy, sys\nsys.argv = sys.argv[3:]\nrunpy.run_path(sys.argv[0], run_name='__main__')\n"
    write(tmp_path, "wrap.py", wrapper)
    start(tmp_path, "wrap.py", "--fuse", "hard", "t.py", "--lr", "3")
    found = read(tmp_path / "run.json")["inputs"]
    assert (found["program"], found["options"], found["capture"]) == ("t.py", {"lr": "3"}, "whole")
    assert found["launcher"] == {"wrap.py.fuse": "[hard, t.py]"}


def test_a_notebook_and_text_without_a_file_say_nothing(tmp_path: Path) -> None:
    for words, text in ((["-c", HEAD + "record()", "--lr", "3"], None), (["-"], HEAD + "record()")):
        start(tmp_path, *words, stdin=text)
        found = read(tmp_path / "run.json")["inputs"]
        assert "program" not in found
        assert found["capture"].startswith("no main program")
        (tmp_path / "run.json").unlink()


def test_a_worker_s_words_say_nothing_and_a_script_of_its_name_does(tmp_path: Path) -> None:
    write(tmp_path, "distributed.py", HEAD + "record()")
    start(tmp_path, "distributed.py")
    assert read(tmp_path / "run.json")["inputs"]["capture"] == "whole"
    (tmp_path / "run.json").unlink()
    write(tmp_path, "site-packages/submitit/_submit.py", HEAD + "record()")
    path = os.pathsep.join([str(tmp_path / "site-packages"), ROOT])
    start(tmp_path, "-m", "submitit._submit", "folder", PYTHONPATH=path)
    assert read(tmp_path / "run.json")["inputs"]["capture"] == "submitit._submit runs what another process hands it"


def test_a_second_launch_of_one_process_is_not_held_to_its_words(tmp_path: Path) -> None:
    body = """
for heads in (8, 2):
    record(f"run{heads}.json")
sys.argv = ["t.py", "--heads", "4"]
record("run4.json")
"""
    write(tmp_path, "t.py", HEAD + body)
    start(tmp_path, "t.py")
    captures = [read(tmp_path / f"run{heads}.json")["inputs"]["capture"] for heads in (8, 2, 4)]
    assert captures == ["whole", "a second launch was recorded with these words", "whole"]


def test_a_fork_says_what_it_was_started_with_only_by_words_of_its_own(tmp_path: Path) -> None:
    body = """
def child(out, *words):
    pid = os.fork()
    if not pid:
        if words:
            sys.argv = ["t.py", *words]
        record(out)
        os._exit(0)
    os.waitpid(pid, 0)
child("same.json")
child("own.json", "--heads", "2")
"""
    run_in = write(tmp_path, "t.py", HEAD + body)
    start(tmp_path, run_in.name, "--heads", "8")
    same, own = (read(tmp_path / f"{name}.json")["inputs"] for name in ("same", "own"))
    assert same["capture"] == "a fork of a process with these words"
    assert (own["options"], own["capture"]) == ({"heads": "2"}, "whole")


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_of_the_children_of_a_process_only_the_first_is_held_to_its_words(tmp_path: Path, method: str) -> None:
    body = f"""
import multiprocessing
if __name__ == "__main__":
    for number in (1, 2):
        child = multiprocessing.get_context({method!r}).Process(target=record, args=(f"run{{number}}.json",))
        child.start()
        child.join()
"""
    write(tmp_path, "t.py", HEAD + body)
    start(tmp_path, "t.py", "--heads", "8")
    one, two = (read(tmp_path / f"run{number}.json")["inputs"] for number in (1, 2))
    assert (one["program"], one["options"], one["capture"]) == ("t.py", {"heads": "8"}, "whole")
    assert two["capture"] == "child 2 of a process with these words"


def test_ranks_of_one_launch_are_one(tmp_path: Path) -> None:
    body = """
import multiprocessing
def rank(number):
    os.environ.update(RANK=str(number), WORLD_SIZE="2", LOCAL_RANK=str(number), LOCAL_WORLD_SIZE="2")
    record()
if __name__ == "__main__":
    ranks = [multiprocessing.get_context("spawn").Process(target=rank, args=(number,)) for number in range(2)]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join()
"""
    write(tmp_path, "t.py", HEAD + body)
    start(tmp_path, "t.py", "--lr", "3", RECEIPTS_LAUNCH="one")
    parts = [read(path)["receipt"]["inputs"] for path in sorted(tmp_path.glob("*.part.json"))]
    assert [part["options"] for part in parts] == [{"lr": "3"}] * 2
    assert [part["capture"] for part in parts] == ["whole"] * 2


def test_ranks_that_a_launcher_starts_are_merged(tmp_path: Path) -> None:
    from receipts.emit.merge import load_part, merge

    write(tmp_path, "t.py", HEAD + "record()")
    for rank in range(2):
        ranks = {"RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": str(rank), "RECEIPTS_LAUNCH": "one"}
        start(tmp_path, "t.py", f"--local_rank={rank}", "--lr", "3" if rank else "4", **ranks)
    merged = merge([load_part(str(path)) for path in sorted(tmp_path.glob("*.part.json"))])
    found = merged.tree["inputs"]
    assert found["options"] == {"local_rank": "0 (rank 0); 1 (rank 1)", "lr": "4 (rank 0); 3 (rank 1)"}
    assert (found["program"], found["capture"]) == ("t.py", "whole")
    assert [line for line in merged.disagreements if line.startswith("inputs")] == [
        "inputs.options.lr: ranks disagree: 4 (rank 0); 3 (rank 1)"
    ]


def test_a_line_that_starts_several_runs_says_so(tmp_path: Path) -> None:
    found = run(tmp_path, "record()", "-m", "lr=1,2")
    assert found["capture"] == "one line starts several runs (--multirun)"


def test_secrets_stay_out(tmp_path: Path) -> None:
    token = "hf_0123456789abcdefghijklmn"
    body = 'os.environ.get("MY_SERVICE_TOKEN"); os.environ.get("PLACE"); record()'
    words = ["--hub_token", token, "WANDB_API_KEY=abcdef0123456789", "--url", "https://me:pass1234@x.example/a"]
    found = run(tmp_path, body, *words, MY_SERVICE_TOKEN="abcdefgh99", PLACE=f"x-{token}")
    text = (tmp_path / "run.json").read_text(encoding="utf-8")
    assert not [secret for secret in (token, "abcdef0123456789", "pass1234", "abcdefgh99") if secret in text]
    assert set(found["options"]) == {"hub_token", "WANDB_API_KEY", "url"}
    assert found["environment"] == {"PLACE": "x-[redacted]"}


def test_variables_that_the_source_reads_are_inputs(tmp_path: Path) -> None:
    write(tmp_path, "helper.py", "import os\ndef env(name, default):\n    return os.environ.get(name, default)\n")
    body = """
import helper
KEY = "BY_CONSTANT"
os.environ.get("PLAIN"), os.getenv(KEY), helper.env("BY_HELPER", 1), os.environ.get(f"BENCH_{1 + 1}")
os.environ["MADE"] = "here"
print(os.environ["MADE"], os.environ.get("RANK"), os.environ.get("NCCL_DEBUG"), os.environ.get("HOME"))
record()
"""
    given = {"PLAIN": "1", "BY_CONSTANT": "2", "BY_HELPER": "3", "BENCH_2": "4", "UNREAD": "5", "NCCL_DEBUG": "INFO"}
    found = run(tmp_path, body, **given)
    assert found["environment"] == {"PLAIN": "1", "BY_CONSTANT": "2", "BY_HELPER": "3", "BENCH_2": "4"}
    assert found["capture"] == "whole"


def test_a_variable_by_a_computed_name_is_named(tmp_path: Path) -> None:
    found = run(tmp_path, "prefix = 'A'\nos.environ.get(prefix + '_N')\nrecord()")
    assert found["capture"] == "whole; environment: read by computed names in __main__"


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ("P = 'RUN'\nos.environ.get(P + '_WIDTH')", "RUN_WIDTH"),
        ("P = 'RUN'\nos.environ.get(f'{P}_{1}')", "RUN_1"),
        ("for key in dict(width=1):\n    os.environ.get(key.upper())", "WIDTH"),
        ("{k: v for k, v in os.environ.items() if k.startswith('GPT_')}", "GPT_DEPTH"),
    ],
)
def test_a_variable_whose_computed_name_the_source_has_words_of_is_an_input(
    tmp_path: Path, body: str, name: str
) -> None:
    found = run(tmp_path, f"{body}\nrecord()", **{name: "3", "UNREAD": "5"})
    assert found["environment"] == {name: "3"}


def test_the_default_of_a_variable_is_what_the_source_reads_in_its_place(tmp_path: Path) -> None:
    body = """
os.environ.get("DEPTH", "2"), os.getenv("WIDTH", 64), os.environ.get("NONE"), os.environ.get("ASKED", hash("x"))
os.environ.get("TORN", "1"), os.environ.get("TORN", "2"), os.environ.get("THERE", "1"), "THERE" in os.environ
record()
"""
    assert run(tmp_path, body)["defaults"] == {"env.DEPTH": "2", "env.WIDTH": "64"}


def test_what_is_imported_after_the_start_is_read_at_the_end(tmp_path: Path) -> None:
    write(tmp_path, "late.py", "import os\nDEPTH = os.environ.get('LATE')\nparser.add_argument('--x', default=3)")
    body = """
with Recorder("cpu-torch", out="run.json", quiet=True, probes=[inputs]) as rec:
    import builtins, types
    builtins.parser = types.SimpleNamespace(add_argument=lambda *words, **named: None)
    import late
"""
    found = run(tmp_path, body, LATE="7")
    assert (found["environment"], found["defaults"]) == ({"LATE": "7"}, {"x": "3"})


def test_defaults_are_what_the_source_declares(tmp_path: Path) -> None:
    body = """
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=3e-4)
parser.add_argument("--flash", action="store_true")
parser.add_argument("--seed", default=hash("x"))
record()
"""
    assert run(tmp_path, body)["defaults"] == {"lr": "0.0003", "flash": "false"}


CLASSES = """
from dataclasses import dataclass, field, fields
@dataclass
class Model:
    bare: int
    attn: str = "math"
    width: int = field(default=8 * 8, metadata={"help": "x"})
    torn: int = 1
@dataclass(frozen=True)
class Train:
    torn: int = 2
    dropout: float = 0.1
    tags: list = field(default_factory=list)
class Other:
    depth: int = 3
"""


def test_defaults_of_dataclasses_are_those_of_a_parser_that_makes_options_of_them(tmp_path: Path) -> None:
    write(tmp_path, "classes.py", CLASSES)
    body = "import classes\nHfArgumentParser = print\nargparse.ArgumentParser().add_argument('--dropout')\n"
    assert run(tmp_path, f"{body}record()")["defaults"] == {"attn": "math", "width": "64"}
    assert run(tmp_path, f"{body.replace('HfArgumentParser', 'parser')}record()")["defaults"] == {}


def test_a_configuration_counts_by_its_settings(tmp_path: Path) -> None:
    write(tmp_path, "conf/a.toml", "lr = 1e-3\n[model]\nbase = 'conf/b.json'\n")
    write(tmp_path, "conf/b.json", '{"heads": 8, "tags": [1, 2]}')
    (row, inner) = run(tmp_path, "record()", "--config", "conf/a.toml")["files"]
    assert (row["option"], row["name"], row["kind"]) == ("config", "conf/a.toml", "config")
    assert row["flat"] == {"lr": "0.001", "model.base": "conf/b.json"}
    assert row["sha256"] == hashlib.sha256((tmp_path / "conf/a.toml").read_bytes()).hexdigest()
    assert (inner["option"], inner["flat"]) == ("config.model.base", {"heads": "8", "tags": "[1, 2]"})


def test_a_script_whose_globals_a_file_assigns(tmp_path: Path) -> None:
    write(tmp_path, "config/x.py", "lr = 1e-3\nbatch = 4 * 8\n")
    write(tmp_path, "configurator.py", "for word in sys.argv[1:]:\n    exec(open(word).read())\n")
    body = "lr = 6e-4\nbatch = 12\nheads = 12\nexec(open('configurator.py').read())\nrecord()"
    found = run(tmp_path, body, "config/x.py")
    assert {row["name"]: row.get("flat") for row in found["files"]} == {
        "config/x.py": {"lr": "0.001", "batch": "32"},
        "configurator.py": None,
    }
    assert found["defaults"] == {"lr": "0.0006", "batch": "12", "heads": "12"}


def test_a_default_or_a_variable_that_names_a_configuration_is_read(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        write(tmp_path, f"{name}.json", json.dumps({"lr": name}))
    body = """
argparse.ArgumentParser().add_argument("--config", default="a.json")
os.environ.get("PRESET")
import json
json.load(open("c.json"))
record()
"""
    found = run(tmp_path, body, PRESET="b.json")["files"]
    assert {row.get("option", "source"): row["flat"] for row in found} == {
        "config": {"lr": "a"},
        "environment.PRESET": {"lr": "b"},
        "source": {"lr": "c"},
    }


def test_data_counts_by_its_bytes_and_a_folder_by_what_it_lists(tmp_path: Path) -> None:
    write(tmp_path, "data/train.bin", "0123")
    write(tmp_path, "data/more/val.bin", "01")
    words = ["--data", "data", "--bin", "data/train.bin", "--all", "data/*.bin", "--far", "s3://bucket/data"]
    rows = {row["option"]: row for row in run(tmp_path, "record()", *words)["files"]}
    assert {option: row["kind"] for option, row in rows.items()} == {"data": "folder", "bin": "data", "all": "folder"}
    assert rows["bin"]["sha256"] == hashlib.sha256(b"0123").hexdigest()
    write(tmp_path, "data/more/val.bin", "012")
    again = {row["option"]: row["sha256"] for row in run(tmp_path, "record()", *words)["files"]}
    assert [option for option in again if again[option] != rows[option]["sha256"]] == ["data"]


def test_a_place_that_the_run_makes_is_an_output(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    body = """
with Recorder("cpu-torch", out="run.json", quiet=True, probes=[inputs]) as rec:
    os.makedirs("out/run1")
    open("old/log.txt", "w").close()
"""
    rows = {row["option"]: row for row in run(tmp_path, body, "--to", "out/run1", "--log", "old")["files"]}
    assert rows["to"] == {"option": "to", "name": "out/run1", "kind": "output"}
    # What the run wrote to lists other things each time: its name is left, and no digest.
    assert rows["log"] == {"option": "log", "name": "old", "kind": "folder"}


def test_a_folder_that_is_there_for_the_run_is_an_output_and_a_bare_word_never_is(tmp_path: Path) -> None:
    for name in ("runs/empty", "runs/receipt", "data/tiny", "flash"):
        (tmp_path / name).mkdir(parents=True)
    write(tmp_path, "runs/receipt/old.log", "1")
    write(tmp_path, "data/tiny/train.bin", "01")
    body = """
with Recorder("cpu-torch", out="runs/receipt/run.json", quiet=True, probes=[inputs]) as rec:
    for folder in ("runs/empty", "data/tiny", "flash"):
        open(folder + "/new", "w").close()
"""
    write(tmp_path, "t.py", HEAD + body)
    start(tmp_path, "t.py", "--a", "runs/empty", "--b", "runs/receipt", "--data", "data/tiny", "--attn", "flash")
    rows = read(tmp_path / "runs/receipt/run.json")["inputs"]["files"]
    assert {row["option"]: row["kind"] for row in rows} == {
        "a": "output",
        "b": "output",
        "data": "folder",
        "attn": "folder",
    }


def test_the_receipt_itself_is_an_output(tmp_path: Path) -> None:
    write(tmp_path, "t.py", HEAD + "record(os.environ['TO'])")
    start(tmp_path, "t.py", "--to", "a.json", TO="a.json")
    rows = read(tmp_path / "a.json")["inputs"]["files"]
    assert sorted((row["option"], row["kind"]) for row in rows) == [("environment.TO", "output"), ("to", "output")]


def test_large_data_is_digested_when_the_run_ends(tmp_path: Path) -> None:
    with (tmp_path / "tokens.bin").open("wb") as stream:
        stream.write(os.urandom(5 << 20))
    (row,) = run(tmp_path, "record()", "--data", "tokens.bin")["files"]
    assert row["sha256"] == hashlib.sha256((tmp_path / "tokens.bin").read_bytes()).hexdigest()


def test_a_file_of_arguments_beyond_the_bounds_leaves_its_digest(tmp_path: Path) -> None:
    write(tmp_path, "a.json", json.dumps({f"k{number}": number for number in range(3000)}))
    (row,) = run(tmp_path, "record()", "a.json")["files"]
    assert "flat" not in row
    assert row["sha256"]


def test_a_program_states_what_it_was_started_with(tmp_path: Path) -> None:
    text = HEAD + "rec = record()\nprint(rec.launch)\n"
    text = text.replace(
        "        with rec.step", '        rec.inputs({"lr": 0.1, "model": {"heads": 8}})\n        with rec.step'
    )
    start(tmp_path, "-c", text, JPY_SESSION_NAME="/home/me/try.ipynb")
    found = read(tmp_path / "run.json")["inputs"]
    assert found["options"] == {"lr": "0.1", "model.heads": "8"}
    assert (found["program"], found["capture"]) == ("try.ipynb", "whole")


def test_settings_that_are_none_become_a_note(tmp_path: Path) -> None:
    with recorder(tmp_path) as rec:
        rec.inputs(["--lr", "3"])  # type: ignore[arg-type]
        rec.inputs({"layer": object(), "lr": 3})
    found = read(only(tmp_path, "run.json"))
    assert "inputs: TypeError: it takes a map, as vars(args) gives, and not list" in found["notes"]["recorder"]
    assert found["inputs"]["options"] == {"lr": "3"}


HYDRA = """
import types
cfg = types.SimpleNamespace(hydra=types.SimpleNamespace(
    runtime=types.SimpleNamespace(output_dir="out"), output_subdir=None))
module = types.ModuleType("hydra.core.hydra_config")
module.HydraConfig = types.SimpleNamespace(instance=lambda: types.SimpleNamespace(cfg=cfg))
sys.modules["hydra.core.hydra_config"] = module
"""


def test_what_standard_input_holds_is_not_among_the_words(tmp_path: Path) -> None:
    write(tmp_path, "t.py", HEAD + "heads = int(input())\nrecord()")
    start(tmp_path, "t.py", stdin="8\n")
    capture = read(tmp_path / "run.json")["inputs"]["capture"]
    assert capture == "the source reads standard input, which was handed to it"


def test_an_edited_file_of_a_folder_of_settings_shows(tmp_path: Path) -> None:
    digests = []
    for heads in (8, 2):
        write(tmp_path, "conf/model/a.yaml", f"heads: {heads}\n")
        (row,) = run(tmp_path, "record()", "--config-dir", "conf/model")["files"]
        digests.append(row["sha256"])
    assert digests[0] != digests[1]


def test_what_hydra_composed_is_resolved(tmp_path: Path) -> None:
    pytest.importorskip("yaml")
    write(tmp_path, "conf/config.yaml", "defaults: [model]\nlr: 1\n")
    write(tmp_path, "out/.hydra/config.yaml", "lr: 1\nmodel: {heads: 8}\n")
    found = run(tmp_path, HYDRA + "record()", "conf/config.yaml")
    assert (found["resolved"], found["capture"]) == ({"lr": "1", "model.heads": "8"}, "whole")
    (tmp_path / "out/.hydra/config.yaml").unlink()
    assert "not seen" in run(tmp_path, HYDRA + "record()")["capture"]
    alone = run(tmp_path, "record()", "conf/config.yaml")
    assert alone["capture"] == "a configuration is composed of others that were not seen"


def test_a_framework_s_settings_are_resolved(tmp_path: Path) -> None:
    class Arguments:
        def get_keys(self) -> dict[str, Any]:
            return {"steps": 3, "emb_dim": 64, "mesh": object(), "hf_access_token": "hf_0123456789abcdefghijklmn"}

    with recorder(tmp_path) as rec:
        maxtext_step(rec, lambda: None, Arguments())
    found = read(only(tmp_path, "run.json"))["inputs"]["resolved"]
    assert found == {"steps": "3", "emb_dim": "64", "hf_access_token": "[redacted]"}


def test_settings_are_flattened_and_what_has_no_text_is_left_out() -> None:
    @dataclass
    class Model:
        heads: int = 8
        kind: Any = Path

    given = {"a": {"b": [1, 2]}, "model": Model(), "own": Namespace(lr=1e-3, _private=1), "there": lambda: None}
    assert object_settings(given | {"where": Path("/x"), "which": {2, 1}, "long": "x" * 500}) == {
        "a.b": "[1, 2]",
        "model.heads": "8",
        "model.kind": "Path",
        "own.lr": "0.001",
        "there": "test_settings_are_flattened_and_what_has_no_text_is_left_out.<locals>.<lambda>",
        "where": "/x",
        "which": "[1, 2]",
        "long": f"sha256:{hashlib.sha256(b'x' * 500).hexdigest()}",
    }
    endless: dict[str, Any] = {"lr": 1}
    endless["self"] = endless
    assert object_settings(endless)["self.self.lr"] == "1"


def test_a_run_that_was_killed_still_says_its_options(tmp_path: Path) -> None:
    from receipts.emit.document import receipt_tree
    from receipts.emit.recovery import recover

    write(tmp_path, "a.json", '{"heads": 8}')
    body = """
rec = Recorder("cpu-torch", out="run.json", quiet=True, probes=[inputs]).start()
os.kill(os.getpid(), 9)
"""
    write(tmp_path, "t.py", HEAD + body)
    subprocess.run([sys.executable, "t.py", "a.json", "--lr", "3"], cwd=tmp_path, env=environment(), check=False)
    found = receipt_tree(recover(str(only(tmp_path, "*.journal"))))["inputs"]
    assert (found["options"], found["capture"]) == ({"#0": "a.json", "lr": "3"}, "whole")
    assert found["files"][0]["flat"] == {"heads": "8"}
