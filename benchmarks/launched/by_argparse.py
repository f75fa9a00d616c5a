"""A training loop in miniature that is told by options, and states of itself what its author remembered."""

import argparse
import os

from receipts.emit import Recorder

parser = argparse.ArgumentParser()
parser.add_argument("--heads", type=int, default=8)
parser.add_argument("--layers", type=int, default=2)
parser.add_argument("--lr", type=float, default=0.01)
parser.add_argument("--attn", default="math")
parser.add_argument("--bs", type=int, default=4)
parser.add_argument("--workers", type=int, default=0)
parser.add_argument("--compile", action="store_true")
parser.add_argument("--steps", type=int, default=4)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--out", default="run.json")
parser.add_argument("--run-name", default="")
args = parser.parse_args()
scale = float(os.environ.get("SCALE", "1"))
with Recorder("cpu-torch", out=args.out, warmup=1, quiet=True, journal=False) as rec:
    rec.state("batch", {"micro_batch": args.bs, "sequence_length": 64})
    for _ in range(args.steps):
        with rec.step(tokens=args.bs * 64):
            sum(range(args.heads * args.layers))
        rec.loss(args.lr * scale)
