"""What `import receipts` offers; see `__init__.py`."""

from collections.abc import Callable

from receipts.api.comparison import Comparison as Comparison
from receipts.api.receipt import Check as Check
from receipts.api.receipt import Receipt as Receipt
from receipts.api.receipt import Receipts as Receipts
from receipts.api.receipt import check as check
from receipts.api.receipt import load as load
from receipts.api.store import Store as Store
from receipts.api.store import compare as compare
from receipts.api.store import open as open

__version__: str

def lazy(package: str, places: dict[str, str]) -> tuple[Callable[[str], object], Callable[[], list[str]]]: ...
