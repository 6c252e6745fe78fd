"""What a command that starts no JVM does not wait for."""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from types import ModuleType

import pyarrow as pa


def without_pandas() -> None:
    """Has pyarrow find no pandas in this process: importing it takes as long as a small command.

    pyarrow looks for it once, at its first value, to know its objects; we hand it none. Whoever
    else imports pandas gets it.
    """
    if "pandas" in sys.modules:
        return
    sys.meta_path.insert(0, _NoPandas())
    try:
        pa.scalar(0)
    finally:
        sys.meta_path.pop(0)


class _NoPandas(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> None:
        """Raises ModuleNotFoundError for pandas; of other modules it knows nothing."""
        if fullname == "pandas":
            raise ModuleNotFoundError("pandas is not needed here", name="pandas")
