"""A training loop in miniature that is told by a YAML file, and by words that override its keys."""

import sys

import yaml

from receipts.emit import Recorder

with open(sys.argv[1]) as stream:
    config = yaml.safe_load(stream)
for word in sys.argv[2:]:
    path, _, text = word.partition("=")
    *above, last = path.split(".")
    node = config
    for part in above:
        node = node[part]
    node[last] = yaml.safe_load(text)
model, train = config["model"], config["train"]
with Recorder("cpu-torch", out=config["output_dir"] + "/run.json", warmup=1, quiet=True, journal=False) as rec:
    rec.state("numerics.learning_rate", float(train["lr"]))
    for _ in range(int(config["max_steps"])):
        with rec.step(tokens=64):
            sum(range(model["heads"] * model["layers"]))
