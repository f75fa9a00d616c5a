"""The page on notebooks is executed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from command_line import Shell


def test_the_page_in_a_notebook_is_executed(shell: Shell, checkout: Path) -> None:
    shell.write("before")
    shell.write("after", flags__OMP_NUM_THREADS={"value": 4, "before_runtime": True})
    page = (checkout / "docs" / "notebook.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.M | re.S)
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, "notebook.md", "exec"), names)
    assert len(blocks) >= 3
    assert names["before"].status == "valid"
    assert list(names["table"]["label"])
