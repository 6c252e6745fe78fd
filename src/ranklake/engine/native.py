"""What of a plan Comet executes, as Comet itself explains it."""

import re
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

_NODE = re.compile(r"(?P<indent>[ :]*(?:[+:]- )? ?)(?P<name>\w.*?) *(?:\[COMET: (?P<why>.*)\])?")
_CONVERSION = re.compile(r"Comet(Native)?ColumnarToRow|ColumnarToRow|AdaptiveSparkPlan")
"""What hands the result over, at the very top."""


@dataclass(frozen=True)
class Coverage:
    """The nodes of a plan, by who executes them.

    n_native  executed by Comet
    scans     read by Spark, and handed to Comet batch by batch: no finding
    foreign   executed by Spark, each with Comet's reason
    """

    n_native: int
    scans: tuple[str, ...]
    foreign: tuple[str, ...]


def coverage_of(frame: DataFrame) -> Coverage | None:
    """What Comet makes of the frame's plan, which is not run; None where the session hides it.

    Spark Connect does: its plans are made elsewhere.
    """
    try:
        jvm: Any = frame.sparkSession._jvm
        explained = jvm.org.apache.comet.ExtendedExplainInfo()
        plan = frame._jdf.queryExecution().executedPlan()
    except (AttributeError, TypeError):  # TypeError: py4j calls a class that it does not find
        return None
    return coverage(str(explained.generateVerboseInfo(plan)))


def coverage(explained: str) -> Coverage:
    """Read Comet's tree of nodes, one a line, which a line about their number ends.

    >>> coverage("CometProject\\n+-  Sort [COMET: why it is not native]\\n   +- CometFilter")
    Coverage(n_native=2, scans=(), foreign=('Sort (why it is not native)',))
    """
    n_native, scans, foreign, above = 0, [], [], ""
    for line in explained.split("\n\n")[0].splitlines():
        node = _NODE.fullmatch(line)
        if node is None:
            continue
        name, why = node["name"], node["why"]
        if name.startswith("CometSpark"):  # Spark's rows or batches become Comet's
            pass
        elif above.startswith("CometSpark") and "Scan" in name:
            scans.append(name)
        elif name == "ReusedExchange" or (not above and _CONVERSION.fullmatch(name)):
            continue
        elif name.startswith("Comet"):
            n_native += 1
        else:
            foreign.append(f"{name} ({why})" if why else name)
        above = name
    return Coverage(n_native, tuple(scans), tuple(foreign))
