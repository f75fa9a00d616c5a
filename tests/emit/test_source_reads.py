"""What the text of a source, or of a configuration, says without being run."""

from __future__ import annotations

import json
from typing import Any

import pytest

from receipts.emit import configuration, python_source
from receipts.emit.python_source import SourceReads


def reads(*sources: str) -> SourceReads:
    found = SourceReads()
    for number, source in enumerate(sources):
        found.take(f"m{number}", source.encode(), "folder")
    found.finish()
    return found


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ('os.environ.get("A", "1")', {"A"}),
        ('os.environ["A"]', {"A"}),
        ("environ.pop('A')", {"A"}),
        ('os.getenv(\n    "A")', {"A"}),
        ('if "A" in os.environ: pass', {"A"}),
        ('K = "A"\nos.environ.get(K)', {"A"}),
        ('def env(name, default):\n    return os.environ.get(name, default)\nx = env("A", 1)', {"A"}),
        ('@click.option("--x", envvar="A")', {"A"}),
        ('os.environ["A"] = "1"', {"A"}),
        ("subprocess.run(words, env={**os.environ})\nos.environ.copy()", set()),
    ],
)
def test_a_variable_by_its_name(source: str, names: set[str]) -> None:
    found = reads(source)
    assert (found.names, found.computed) == (names, set())


@pytest.mark.parametrize("source", ['f"RUN_{name}"', '"RUN_" + name', '"RUN_%s" % name'])
def test_variables_by_a_prefix(source: str) -> None:
    found = reads(f"os.environ.get({source})")
    assert found.wants("RUN_DEPTH")
    assert not found.wants("DEPTH")
    assert found.computed == set()


@pytest.mark.parametrize(
    "source",
    [
        'os.environ[prefix + "_N"]',
        "os.environ[names[0]]",
        "for key, value in os.environ.items(): pass",
        "e = os.environ\n",
        "def f(config, name):\n    return os.environ[name]",
        "def env(name):\n    return os.getenv(name)\nenv(prefix)",
    ],
)
def test_a_variable_by_a_computed_name(source: str) -> None:
    assert reads(source).computed == {"m0"}


def test_a_helper_of_one_file_is_called_in_another_that_came_before() -> None:
    found = SourceReads()
    found.take("a", b'depth = env("DEPTH")')
    found.finish()
    found.take("b", b"def env(name):\n    return os.environ[name]")
    found.finish()
    assert found.names == {"DEPTH"}


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ('yaml.safe_load(Path("a.yaml").read_text())', ["a.yaml"]),
        ('exec(open("config/x.py").read())', ["config/x.py"]),
        ('open(os.path.join(here, "a.json"))', ["a.json"]),
        ('C = Path(__file__).parent / "a.json"\nwith open(C) as f: pass', ["a.json"]),
        ('C = Path("a.toml")\ntext = C.read_text()', ["a.toml"]),
        ('load(name="k", sources=["k.cu", "k.cpp"])', ["k.cpp", "k.cu"]),
        ('with open("a.json", "w") as f: pass', []),
        ('C = "a.json"\njson.dump(x, open(C, "w"))', []),
        ('Recorder("cpu-torch", out="run.json")', []),
        ('if exists("a.json"): x = json.load(open("a.json"))', []),
        ('subprocess.run(["python", "tool.py"])', []),
    ],
)
def test_files_that_are_read(source: str, names: list[str]) -> None:
    assert sorted(reads(source).files) == [(name, "folder") for name in names]


@pytest.mark.parametrize("source", ["x = input()", "sys.stdin.read()"])
def test_standard_input_is_read(source: str) -> None:
    assert reads(source).asks


@pytest.mark.parametrize("source", ["self.input(3)", "if sys.stdin.isatty(): pass"])
def test_standard_input_is_not_read(source: str) -> None:
    assert not reads(source).asks


@pytest.mark.parametrize(
    ("declaration", "expected"),
    [
        ('add_argument("--lr", "-l", type=float, default=LR)', {"lr": "0.0003", "l": "0.0003"}),
        ('add_argument("--micro-batch", default=2 * 4, dest="mb")', {"micro_batch": "8", "mb": "8"}),
        ('add_argument("--flash", action="store_true")', {"flash": "false"}),
        ('add_argument("--no-fuse", action="store_false", dest="fuse")', {"fuse": "true"}),
        ('add_argument("--f", action=BooleanOptionalAction, default=True)', {"f": "true"}),
        ('add_argument("--b", nargs="+", default=[1, "a"])', {"b": "[1, a]"}),
        ('add_argument("--c", default=compute())', {}),
        ('add_argument("--d")', {}),
        ('add_argument("file", default="x")', {}),
        ('add_argument("--e", default=1); q.add_argument("--e", default=2)', {}),
        ('add_argument("--e", default=1); p.set_defaults(e=2)', {}),
        ('DEFINE_integer("steps", 100, "how many")', {"steps": "100"}),
        ('option("--width/--no-width", default=True)', {"width": "true"}),
    ],
)
def test_defaults_that_are_declared(declaration: str, expected: dict[str, str]) -> None:
    known: dict[str, str | None] = {}
    python_source.option_defaults(f"LR = 3e-4\np.{declaration}\n", known)
    assert {name: text for name, text in known.items() if text is not None} == expected


def test_a_source_that_does_not_parse_declares_nothing() -> None:
    known: dict[str, str | None] = {}
    python_source.option_defaults("print 'python 2'", known)
    assert known == {}


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.json", '{"a": {"b": null, "c": [1, 2]}}', {"a.b": "none", "a.c": "[1, 2]"}),
        ("a.toml", "lr = 1e-3\n[model]\nheads = 8\n", {"lr": "0.001", "model.heads": "8"}),
        ("a.gin", "import x\nA.b = 3 # c\nm = [1,\n 2]\nX.y = %m\n", {"A.b": "3", "m": "[1, 2]", "X.y": "%m"}),
        (
            "a.py",
            "'doc'\nlr = 1e-3\na = b = 4 * 8\nflag: bool = True\n",
            {"lr": "0.001", "a": "32", "b": "32", "flag": "true"},
        ),
        ("a.py", "import os\nlr = 1e-3\n", None),
        ("a.py", "lr = 1e-3\nbatch = compute()\n", None),
        ("a.py", "x = 9 ** 9 ** 9\n", None),
        ("a.gin", "A.b = 3\nwhat is this\n", None),
        ("a.json", "[1, 2]", None),
        ("a.json", "{", None),
        ("a.txt", "a = 1", None),
        ("a.json", '{"a": ' * 40 + "1" + "}" * 40, None),
    ],
)
def test_settings_of_a_file(name: str, text: str, expected: dict[str, str] | None) -> None:
    assert configuration.file_settings(name, text.encode()) == expected


def test_settings_of_yaml_and_of_one_without_end() -> None:
    pytest.importorskip("yaml")
    assert configuration.file_settings("a.yml", b"a: {b: [x, {y: 2}]}\n") == {"a.b.0": "x", "a.b.1.y": "2"}
    bomb = "a0: &a0 [1, 1]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}, *a{n - 1}]\n" for n in range(1, 30))
    assert configuration.file_settings("a.yaml", bomb.encode()) is None


def test_bounds_of_a_file_of_settings() -> None:
    many: dict[str, Any] = {f"k{number}": number for number in range(configuration.MAX_KEYS + 1)}
    assert configuration.file_settings("a.json", json.dumps(many).encode()) is None
    found = configuration.file_settings("a.json", json.dumps({"a": "x" * 401, "b": "x" * 400}).encode())
    assert found is not None
    assert found["a"].startswith("sha256:")
    assert found["b"] == "x" * 400


def test_a_file_of_comments_alone_sets_nothing_and_is_read() -> None:
    files = ("c.py", b"# nothing\n"), ("c.json", b"{}"), ("c.toml", b"")
    assert [configuration.file_settings(name, raw) for name, raw in files] == [{}] * 3
    assert configuration.file_settings("c.py", b"def f(): ...\n") is None
