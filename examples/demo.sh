#!/bin/sh
# Walks through the whole on a store of its own: real runs in, comparisons judged, a failure shown, a report written.
# Each command is printed before it runs, with its exit code where that is not 0. `sh examples/demo.sh DIR` names the
# folder; it is made anew.
set -eu
cd "$(dirname "$0")/.."
out=${1:-build/demo}
rm -rf "$out"
mkdir -p "$out"
RECEIPTS_STORE=$out/demo.sqlite
export RECEIPTS_STORE

say() { printf '\n\n# %s\n' "$*"; }

run() {
    printf '\n$'
    for word in "$@"; do
        case $word in *[!a-zA-Z0-9/._=,@:-]*) printf " '%s'" "$word" ;; *) printf ' %s' "$word" ;; esac
    done
    echo
    code=0
    "$@" || code=$?
    case $code in
        0) ;;
        1) echo "(exit 1: it does not hold)" ;;
        3) echo "(exit 3: not enough to say)" ;;
        *) echo "(exit $code)"; exit "$code" ;;
    esac
}

say "Figures of 32 runs from public lab notebooks, and the launches of a small decoder on a CPU"
run receipts import notebook examples/lab/runs.json --mapping examples/lab/mapping.toml --submit
run receipts submit examples/cpu/*.json

say "Comparable, and unproven: only MTP moved, and the notebook kept no steps"
run receipts compare "label=grid 02*" "label=grid 03*"

say "Refused: pipeline, micro batch and global batch moved together"
run receipts compare "label=grid 02*" "label=grid 06*" --format markdown

say "An out-of-memory failure is a receipt, too"
run receipts show "label=grid 07*"

say "Accepted: one axis, five launches a side, interleaved, on the witnessed path"
run receipts compare "label=cpu attention math*" "label=cpu attention flash*"

say "A grid as a table"
run receipts sweep "label=grid*" --vary pipeline,mtp_depth,cuda_graph_scope --base "label=grid 02*"

say "The weekly frontier"
run receipts report weekly --since 2026-11-21 --until 2026-11-29 --out "$out/report"
run receipts report weekly --week 2026-W15 --as-of 2026-11-22 --out "$out/report-of-the-grid"
echo
echo "Open $out/report/index.html and $out/report-of-the-grid/index.html"
