"""A launch line names its program, its options and its launchers, in whatever form it was typed."""

from __future__ import annotations

import shlex

import pytest

from receipts.emit.launch_line import launcher_role, options, parse, parse_words
from receipts.emit.launch_values import flat, normal

# Each line with its program and its options, in one form of those that launch lines of this field have.
LINES = [
    ("python t.py --lr 1e-2 --bf16", "t.py", {"lr": "1e-2", "bf16": "true"}),
    ("python3.11 -u -X dev -m pkg.train --lr=1", "-m pkg.train", {"lr": "1"}),
    ("OMP_NUM_THREADS=1 ./t.py a b", "t.py", {"#0": "a", "#1": "b"}),
    ("torchrun --nproc_per_node 8 --rdzv_id 7 ./x/t.py --a 1", "x/t.py", {"a": "1"}),
    ("python -m torch.distributed.run --nnodes=2 t.py --a 1", "t.py", {"a": "1"}),
    ("torchrun --standalone -m pkg.train --a.b c", "-m pkg.train", {"a.b": "c"}),
    ("accelerate launch --config_file f.yaml --multi_gpu t.py c.yaml", "t.py", {"#0": "c.yaml"}),
    ("deepspeed --hostfile h t.py --deepspeed ds.json", "t.py", {"deepspeed": "ds.json"}),
    ("composer -n 8 t.py y.yaml data_local=d", "t.py", {"#0": "y.yaml", "data_local": "d"}),
    ("srun -p gpu -w n1 -l numactl --membind=0 nsys profile -o r -t nvtx python t.py -o x -t 3", "t.py",
     {"o": "x", "t": "3"}),
    ("mpirun -np 4 -x A=1 --bind-to none python t.py --a 1", "t.py", {"a": "1"}),
    ("docker run --rm -it -e A=1 --gpus all img:1 python t.py --a 1", "t.py", {"a": "1"}),
    ("apptainer exec --nv img.sif python t.py --a 1", "t.py", {"a": "1"}),
    ("uv run t.py --a 1", "t.py", {"a": "1"}),
    ("xpk workload create --cluster c --command \"export A=1; python3 t.py base.yml lr=1\"", "t.py",
     {"#0": "base.yml", "lr": "1"}),
    ("bash babysit.sh n -z us -- A=1 bash run.sh python t.py --a 1", "t.py", {"a": "1"}),
    ("bash -c 'cd x && python t.py --a 1'", "t.py", {"a": "1"}),
    ("cd /x; export A=1 && python t.py --a 1 2>&1 > log --b 2 | tee out", "t.py", {"a": "1", "b": "2"}),
    ("t.py model.optim.name=adam ++m.x=1 +rank=3 ~callbacks.y g/h=z", "t.py",
     {"model.optim.name": "adam", "m.x": "1", "rank": "3", "callbacks.y": "deleted", "g/h": "z"}),
    ("t.py --config-name c a.b=1", "t.py", {"config_name": "c", "a.b": "1"}),
    ("t.py fit --config a.yaml --config b.yaml", "t.py", {"#0": "fit", "config": "a.yaml then b.yaml"}),
    ("t.py --optimizer AdamW --optimizer.lr 0.1", "t.py", {"optimizer": "AdamW", "optimizer.lr": "0.1"}),
    ("t.py --no-fusion --micro-batch-size -1", "t.py", {"fusion": "false", "micro_batch_size": "-1"}),
    ("t.py --data-path 0.5 a 0.5 b --x", "t.py", {"data_path": "[0.5, a, 0.5, b]", "x": "true"}),
    ("t.py --f '{\"a\": {\"b\": 1}, \"c\": [1, 2]}'", "t.py", {"f.a.b": "1", "f.c": "[1, 2]"}),
    ("t.py --over 'n_embd=4,n_head=2' --cfg a.b=1 c=2", "t.py",
     {"over.n_embd": "4", "over.n_head": "2", "cfg.a.b": "1", "cfg.c": "2"}),
    ("t.py --gin.X=\\\"y\\\" --sep '|' --n 1", "t.py", {"gin.X": '"y"', "sep": "|", "n": "1"}),
    ("A=1 sbatch --wrap 'srun python t.py --a 1'", "t.py", {"a": "1"}),
]  # fmt: skip


@pytest.mark.parametrize(("line", "program", "expected"), LINES, ids=[line[:40] for line, _, _ in LINES])
def test_a_line_names_its_program_and_its_options(line: str, program: str, expected: dict[str, str]) -> None:
    read = parse(line)
    assert (read.program, dict(read.options)) == (program, expected)


def test_a_line_without_a_script_names_no_program() -> None:
    assert [parse(line).program for line in ("", "python -c 'x' a", "python", "python - a")] == [None] * 4


def test_variables_come_from_every_place_of_a_line() -> None:
    line = "export A=1; B=2 srun env C=3 docker run -e D=4 img python t.py"
    assert parse(line).environment == {"A": "1", "B": "2", "C": "3", "D": "4"}


def test_short_options_mean_what_their_launcher_says() -> None:
    read = parse("srun -N 2 -t 10 torchrun --nproc-per-node 8 t.py -N 3")
    assert read.options == {"N": "3"}
    assert (read.launcher["srun.nodes"], read.launcher["srun.time"]) == ("2", "10")
    roles = [launcher_role(key) for key in ("srun.nodes", "srun.time", "torchrun.nproc_per_node", "numactl.membind")]
    assert roles == ["topology", "rendezvous", "topology", "setting"]
    assert launcher_role("wrapper.py.amp") == "setting"


def test_a_sweep_of_one_line_is_several_runs() -> None:
    assert parse("t.py -m lr=1,2 seed=3").multirun
    assert parse("t.py --multirun lr=1,2").multirun
    assert not parse("t.py lr=1,2").multirun


def test_words_in_another_order_are_the_same_options() -> None:
    assert options(["--a", "1", "--b=2"]) == options(["--b", "2", "--a=1"])


def test_a_switch_that_is_known_takes_no_word() -> None:
    assert options(["--fast", "c.yaml"], switches=("fast",)) == {"fast": "true", "#0": "c.yaml"}


@pytest.mark.parametrize(
    ("texts", "same"),
    [
        (("1e-2", "0.01", ".01", "0.010", "'0.01'"), "0.01"),
        (("1_000", "1000", "1e3", "1000.0"), "1000"),
        (("True", "yes", "on"), "true"),
        (("False", "no", "off"), "false"),
        (("None", "null", "~"), "none"),
        (("[1, 2]", "[1,2.0]", "(1, 2)"), "[1, 2]"),
        (("a/./b", "a/x/../b", "a//b"), "a/b"),
        (("0", "-0.0", "0e9"), "0"),
    ],
)
def test_texts_that_say_one_value_have_one_form(texts: tuple[str, ...], same: str) -> None:
    assert {normal(text) for text in texts} == {same}


def test_values_that_differ_have_two_forms() -> None:
    values = (
        "1",
        "true",
        "none",
        "",
        "1e-400",
        "1e-399",
        "0.1000000000000000000000000000000001",
        "0.1",
        "1.0.0",
        "no_x",
    )
    assert len({normal(text) for text in values}) == len(values)


def test_a_tree_is_flat_keys_and_a_list_of_scalars_one_value() -> None:
    assert flat({"a": {"b": 1, "c": [1, None]}, "d": [{"e": 2}]}) == {
        "a.b": "1",
        "a.c": "[1, none]",
        "d.0.e": "2",
    }


def test_a_command_as_the_recorder_keeps_it_is_read_as_it_ran() -> None:
    words = ["python3", "-u", "t.py", "--sep", "|", "--name", "a b; c", "--empty", "", "--last", "1"]
    assert parse(shlex.join(words)) == parse_words(words)
    assert parse_words(words).options == {"sep": "|", "name": "a b; c", "empty": "", "last": "1"}


def test_a_line_that_was_cut_in_a_quote_is_read_all_the_same() -> None:
    assert parse("python t.py --a 1 --b 'x").options["a"] == "1"
