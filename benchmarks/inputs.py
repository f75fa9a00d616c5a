"""Pairs of launches of three programs in miniature, with none to three options changed: `python -m benchmarks.inputs`.

Each launch is a process that records itself; its options are spelled and ordered at random, and bookkeeping (output,
names, seeds, lengths) changes in every one. Truth is what the programs were told. Asked is the axis question alone.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from receipts.axes.configuration import configuration
from receipts.axes.replicates import replicates
from receipts.judging.comparison import compare
from receipts.judging.rulebook import Rulebook, builtin
from receipts.receipt import Document, Parsed, parse, read

SEED = 7
PROGRAMS = ROOT / "benchmarks" / "launched"
# Values of each setting, the first by default, and the ways in which each is written.
ARGPARSE = {
    "heads": (("8", "8.0e0"), ("2",)),
    "lr": (("0.01", "1e-2", ".01"), ("3e-4", "0.0003")),
    "attn": (("math",), ("flash",)),
    "bs": (("4",), ("8",)),
    "workers": (("0",), ("2",)),
    "SCALE": (("1", "1.0"), ("0.5", ".5")),
}
YAML = {
    "model.heads": (("8",), ("2",)),
    "model.layers": (("2",), ("1",)),
    "train.lr": (("0.01", "1.0e-2"), ("3.0e-4", "0.0003")),
    "train.attn": (("math",), ("flash",)),
    "train.dropout": (("0.0", "0"), ("0.1",)),
}
CONFIG = {
    "heads": (("8",), ("2",)),
    "layers": (("2",), ("1",)),
    "learning_rate": (("0.01", "1e-2"), ("3e-4",)),
    "attention": (("'math'", '"math"'), ("'flash'",)),
    "batch_size": (("4",), ("8",)),
    "dropout": (("0.0", "0."), ("0.1",)),
}
Choice = tuple[int, ...]


@dataclass
class Tally:
    """What was said of pairs with one number of changed options."""

    pairs: int = 0
    said: dict[str, int] = field(default_factory=lambda: {"yes": 0, "unknown": 0, "no": 0})
    one_configuration: int = 0


def argparse_words(choice: Mapping[str, str], folder: Path, rng: random.Random) -> tuple[list[str], dict[str, str]]:
    """A line of options, whose defaults are typed or not, and a variable, of which nobody knows what its absence is."""
    given = {name: text for name, text in choice.items() if name != "SCALE"}
    given["heads"] = str(int(float(given["heads"])))
    words = []
    for name, text in rng.sample(sorted(given.items()), len(given)):
        if text not in ARGPARSE[name][0] or rng.random() < 0.4:
            words.append([f"--{name}={text}"] if rng.random() < 0.5 else [f"--{name}", text])
    words += [["--out", str(folder / "run.json")], ["--run-name", rng.choice("abc")], ["--seed", str(rng.randrange(9))]]
    words += [["--steps", str(rng.choice((4, 5)))]] if rng.random() < 0.3 else []
    rng.shuffle(words)
    return [word for group in words for word in group], {"SCALE": choice["SCALE"]}


def yaml_words(choice: Mapping[str, str], folder: Path, rng: random.Random) -> tuple[list[str], dict[str, str]]:
    """A file of settings, and words that override some of them."""
    written, words = dict(choice), []
    for path, text in choice.items():
        if rng.random() < 0.4:
            written[path] = YAML[path][rng.randrange(2)][0]
            words.append(f"{path}={text}")
    lines = [f"# {rng.random()}", f"output_dir: {folder}", f"max_steps: {rng.choice((4, 5))}"]
    for head in ("model", "train"):
        rows = [f"  {path.partition('.')[2]}: {text}" for path, text in written.items() if path.startswith(head)]
        lines += [f"{head}:", *rng.sample(rows, len(rows))]
    file = folder / f"{rng.choice(('base', 'small'))}.yaml"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    rng.shuffle(words)
    return [str(file), *words], {}


def config_words(choice: Mapping[str, str], folder: Path, rng: random.Random) -> tuple[list[str], dict[str, str]]:
    """A Python file that assigns settings, and words that assign others."""
    written, words = [], [f"--out_dir={folder}", f"--seed={rng.randrange(9)}", f"--wandb_run_name=r{rng.randrange(9)}"]
    for name, text in choice.items():
        where = rng.random()
        if where < 0.4:
            words.append(f"--{name}={text.strip(chr(39) + chr(34))}")
        elif where < 0.8 or text not in CONFIG[name][0]:
            written.append(f"{name} = {text}  # {rng.random():.3f}")
    file = folder / "settings.py"
    file.write_text("\n".join(written) + "\n", encoding="utf-8")
    rng.shuffle(words)
    return [str(file), *words], {}


KINDS = {
    "argparse": ("by_argparse.py", ARGPARSE, argparse_words),
    "YAML with overrides": ("by_yaml.py", YAML, yaml_words),
    "Python configuration": ("by_config.py", CONFIG, config_words),
}


def launches(kind: str, count: int, folder: Path, seed: int) -> list[tuple[Choice, Parsed]]:
    """Launches near one another, with what each was told: of every setting the number of its value."""
    program, values, words = KINDS[kind]
    rng = random.Random(f"{kind} {seed}")
    near = [()] + [item for size in (1, 2) for item in combinations(range(len(values)), size)]
    choices = [tuple(int(at in near[number % len(near)]) for at in range(len(values))) for number in range(count)]

    def launched(number: int, own: random.Random) -> tuple[Choice, Parsed]:
        choice, place = choices[number], folder / f"{number}"
        place.mkdir(parents=True)
        texts = {name: own.choice(values[name][value]) for name, value in zip(values, choice, strict=True)}
        line, variables = words(texts, place, own)
        known = {name: text for name, text in os.environ.items() if not name.startswith(("RECEIPTS_", "PYTEST_"))}
        environment = {**known, "PYTHONPATH": str(ROOT), **variables}
        subprocess.run([sys.executable, PROGRAMS / program, *line], check=True, env=environment, cwd=place)
        return choice, parse(read(place / "run.json"))

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(launched, range(count), [random.Random(rng.random()) for _ in range(count)]))


def in_context(parsed: Parsed, name: str | None) -> Parsed:
    """The same launch under a context, or under none."""
    tree: dict[str, Any] = json.loads(parsed.raw)
    tree["run"].pop("context", None)
    tree["run"] |= {"context": name} if name else {}
    return parse(Document(json.dumps(tree).encode(), "run.json"))


def axis_answer(a: Parsed, b: Parsed, rulebook: Rulebook) -> str:
    """Whether the two are one experiment, as far as their settings say."""
    codes = {item.code for item in compare([a], [b], rulebook).findings}
    return "no" if "C101" in codes else "unknown" if codes & {"C102", "C122"} else "yes"


def pairs(launched: Sequence[tuple[Choice, Parsed]], count: int, seed: int) -> Iterator[tuple[int, int, int]]:
    """Numbers of two launches and of the options in which they differ: as many of none as of one, two and three."""
    apart: dict[int, list[tuple[int, int]]] = {0: [], 1: [], 2: [], 3: []}
    for one, other in combinations(range(len(launched)), 2):
        changed = sum(a != b for a, b in zip(launched[one][0], launched[other][0], strict=True))
        if changed in apart:
            apart[changed].append((one, other))
    rng = random.Random(seed)
    for changed, every in apart.items():
        yield from ((changed, *item) for item in rng.sample(every, min(len(every), count // 4)))


def tallied(launched: Sequence[tuple[Choice, Parsed]], count: int, context: str | None, seed: int) -> dict[int, Tally]:
    """Pairs of one program's launches by how many options changed, under a context or under none."""
    rulebook = builtin()
    told = [(choice, in_context(parsed, context)) for choice, parsed in launched]
    lane = rulebook.lanes.of("cpu-torch")
    tallies = {number: Tally() for number in range(4)}
    for changed, one, other in pairs(told, count, seed):
        a, b = told[one][1], told[other][1]
        tally = tallies[changed]
        tally.pairs += 1
        tally.said[axis_answer(a, b, rulebook)] += 1
        same = configuration(a, lane).whole == configuration(b, lane).whole
        tally.one_configuration += replicates(a, b, lane) or same
    return tallies


def main() -> int:
    """Print the table; 1 where a pair with two changes passes, or too few honest ones are decided."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--launches", type=int, default=56, help="processes of each program")
    parser.add_argument("--pairs", type=int, default=300, help="pairs of each program")
    asked = parser.parse_args()
    print("program | context | changed | pairs | one experiment | unknown | several | one configuration")
    bad = honest = decided = 0
    for kind in KINDS:
        with tempfile.TemporaryDirectory() as folder:
            launched = launches(kind, asked.launches, Path(folder), SEED)
        for context in (None, "preset"):
            for changed, tally in tallied(launched, asked.pairs, context, SEED).items():
                cells = (tally.pairs, tally.said["yes"], tally.said["unknown"], tally.said["no"])
                print(" | ".join(map(str, (kind, context or "–", changed, *cells, tally.one_configuration))))
                bad += (tally.said["yes"] if changed > 1 else 0) + (tally.one_configuration if changed else 0)
                honest += tally.pairs if changed < 2 else 0
                decided += tally.said["yes"] if changed < 2 else 0
    print(f"pairs with two or more changes that pass, and different launches taken as one: {bad}")
    print(f"pairs with at most one change that are decided: {decided} of {honest}")
    return int(bad > 0 or decided < 0.97 * honest)


if __name__ == "__main__":
    sys.exit(main())
