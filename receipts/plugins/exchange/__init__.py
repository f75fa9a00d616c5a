"""Foreign formats in and out: exports of a store and the way back, tables, tracked runs and published results.

See docs/export.md for what is written, and docs/scale.md for what engines make of it."""
