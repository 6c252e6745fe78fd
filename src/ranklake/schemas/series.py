"""Columns that several tables of the lake share."""

from ranklake.schemas.table import Column

PARTITIONS = ("event_date", "model_version")

PARTITION = (
    Column("event_date", "DATE", "the day of the queries, in the configured zone", required=True),
    Column("model_version", "STRING", "the model that ranked", required=True),
    Column("run_id", "STRING", "the attempt that wrote the row; see runs", required=True),
)
LABEL = Column("label", "STRING", "what counts as relevant, such as click", required=True)

SERIES = (
    Column("slice", "STRING", "slice columns joined by a comma; all: no slice", required=True),
    Column(
        "slice_value", "STRING", "their values joined by a comma; all: every query", required=True
    ),
    LABEL,
    Column(
        "population",
        "STRING",
        "queries in the denominator: all, or with_relevant (at least one relevant item; of auc:"
        " those with a value)",
        required=True,
    ),
    Column("metric", "STRING", "the metric's canonical name", required=True),
    Column(
        "variant",
        "STRING",
        "the options that differ from the defaults; empty as a rule",
        required=True,
    ),
    Column("k", "INT", "the cut-off; 0: none; -1: the query's own n_slots", required=True),
)
"""What names one number of one model: the key of metric_sums and metrics."""
