"""`python -m receipts` is the `receipts` command."""

from __future__ import annotations

import sys

from receipts.cli import main

sys.exit(main())
