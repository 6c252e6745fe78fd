"""`make demo`: a sample log, the job on three days of two models, and the numbers."""

import shutil
from pathlib import Path

from ranklake.cli import main

CONFIG = ("--config", "conf/local.toml")
SHOWN = (
    *("--label", "click", "--k", "5", "--k", "10"),
    *("--metric", "recall", "--metric", "precision", "--metric", "ndcg"),
)
DATES = ("2026-01-01", "2026-01-02", "2026-01-03")
HOME = Path("demo")


def demo() -> None:
    """Begins from nothing, so that a second run shows the same numbers."""
    shutil.rmtree(HOME, ignore_errors=True)
    main(
        [
            *("generate", f"{HOME}/log", "--rows", "1200000", "--dates", str(len(DATES))),
            *("--duplicates", "0.01", "--repeated-clicks", "0.05", "--unshown-clicks", "0.02"),
            *("--orphan-clicks", "0.01", "--null-scores", "0.005"),
        ]
    )
    main(["init", *CONFIG])
    main(["evaluate", *CONFIG, *(part for day in DATES for part in ("--date", day))])
    main(["show", *CONFIG, *SHOWN])
    print(f"\nThe tables lie in {HOME}/lake; read them with deltalake, DuckDB, Polars or Spark.")


if __name__ == "__main__":
    demo()
