"""A training loop in miniature that executes a Python file of settings, and words that override its globals."""

import sys
from ast import literal_eval

from receipts.emit import Recorder

heads = 8
layers = 2
learning_rate = 0.01
attention = "math"
batch_size = 4
dropout = 0.0
max_iters = 4
seed = 0
out_dir = "out"
wandb_run_name = "gpt"
for word in sys.argv[1:]:
    if word.startswith("--"):
        name, _, text = word[2:].partition("=")
        try:
            globals()[name] = literal_eval(text)
        except (SyntaxError, ValueError):
            globals()[name] = text
    else:
        exec(open(word).read())  # noqa: SIM115 — as nanoGPT does
with Recorder("cpu-torch", out=out_dir + "/run.json", warmup=1, quiet=True, journal=False) as rec:
    rec.state("numerics.learning_rate", learning_rate)
    for _ in range(max_iters):
        with rec.step(tokens=batch_size * 64):
            sum(range(heads * layers))
