"""A train step of the estimator's model, compiled ahead of time for TPU v6e: its bytes beside the estimate."""

from receipts.base.plugins import Plugin

PLUGIN = Plugin(
    services={"compiler": "compiler"},
)
