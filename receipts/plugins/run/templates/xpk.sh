#!/bin/sh
# xpk on TPU slices: hosts are ranks, slice by slice. The script is one of JAX with a Recorder; xpk leaves no uid in the
# pods, so the launch is named here.
set -e
xpk workload create \
  --cluster {{cluster!q|my-cluster}} \
  --workload {{name!q|train}} \
  --tpu-type {{tpu!q|v6e-256}} \
  --num-slices {{slices!q|1}} \
  --docker-image {{image!q|ghcr.io/you/train:latest}} \
  --env RECEIPTS_LAUNCH="$(uuidgen)" \
  --env RECEIPTS_STORE={{store!q|https://receipts.example.org}} \
  --env RECEIPTS_TOKEN="$RECEIPTS_TOKEN" \
  --env RECEIPTS_DELIVER=1 \
  --command {{command!q|python train.py}}
