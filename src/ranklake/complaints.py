"""What Spark complains of in the data → a ContractError that says so in one line."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import PySparkException

from ranklake.errors import ContractError


@contextmanager
def data_errors(what: str) -> Iterator[None]:
    """Turns Spark's complaint about a value or a file into a ContractError that names the input."""
    try:
        yield
    except Exception as error:  # some of them reach Python as a bare Java error
        problems = [text for text in _complaints(error) if text[1:].startswith(_DATA_CONDITIONS)]
        if not problems:
            raise
        raise ContractError([f"{what}: {problem}" for problem in problems]) from error


_DATA_CONDITIONS = (
    "CANNOT_PARSE",
    "CAST_",
    "DATETIME_",
    "DIVIDE_BY",
    "FAILED_READ_FILE",
    "INVALID_",
    "MALFORMED_",
    "NUMERIC_",
    "USER_RAISED_EXCEPTION",
)


_MISSING_TABLE = (
    "DELTA_MISSING",
    "DELTA_PATH_DOES_NOT_EXIST",
    "DELTA_TABLE_NOT_FOUND",
    "PATH_NOT_FOUND",
    "TABLE_OR_VIEW_NOT_FOUND",
)


def is_missing_table(error: PySparkException) -> bool:
    """Whether Spark or Delta says that there is no such table or path."""
    return any(condition in f"{error.getCondition()} {error}" for condition in _MISSING_TABLE)


def _complaints(error: Exception) -> list[str]:
    """What Spark says under an error condition, each once: `[CONDITION] sentence`."""
    found = re.findall(r"\[[A-Z][A-Z_]+[A-Z](?:\.[A-Z_]+)?\] [^\n]*", str(error))
    return list(dict.fromkeys(text.split(" SQLSTATE:")[0].strip() for text in found))


def first_line(error: Exception) -> str:
    """The error's first line: the rest is a plan or a stack."""
    return str(error).strip().split("\n", 1)[0].strip()
