"""The tables of one evaluation. All are Delta tables, partitioned by event_date and model_version.

Reader version 1 without table features, so that delta-rs, DuckDB and Polars read them.
`query_metrics` gains one column a slice and one a configured measure (pipeline.publish).
"""

from collections.abc import Mapping

from ranklake.schemas.comparisons import COMPARISONS
from ranklake.schemas.series import LABEL, PARTITION, PARTITIONS, SERIES
from ranklake.schemas.table import Check, Column, Table

EVERY_QUERY = "all"
"""The slice without a condition, and its value."""
RARE_VALUE = "__other__"
"""The slice value that stands for all values without numbers of their own."""
NO_VALUE = "__null__"
"""The slice value of null."""
SliceLists = Mapping[str, tuple[str, ...] | None]
"""The fixed values of each slice column; None: every value has numbers of its own."""

_NUM = "numerator: sum over the queries"
_DEN = "denominator: sum over the queries"
BY_ITEMS = (("num_by_item", "den_by_item"), ("num_by_both", "den_by_both"))
"""Both sums by the clusters of items, and by those of users and items."""
_NO_ITEMS = "item_clusters is not set, or no metric of items"

QUERY_METRICS = Table(
    name="query_metrics",
    one_row="one query of one model, for one label",
    columns=(
        *PARTITION,
        Column("query_id", "STRING", "one search or ad request", required=True),
        LABEL,
        Column(
            "bucket",
            "INT",
            "the cluster of the query: pmod(xxhash64(user or query), buckets)",
            required=True,
        ),
        Column(
            "has_mixed_slices",
            "BOOLEAN",
            "whether the query's rows disagree on a slice; the query counts once, where slice_id is"
            " largest",
            required=True,
        ),
        Column("n_candidates", "INT", "distinct candidates ranked", required=True),
        Column(
            "n_relevant",
            "INT",
            "distinct relevant items, also those that were no candidates",
            required=True,
        ),
        Column(
            "hit_ranks", "ARRAY<INT>", "ranks of the relevant candidates, ascending", required=True
        ),
        Column(
            "hit_gains", "ARRAY<DOUBLE>", "their gains, in the order of hit_ranks", required=True
        ),
        Column(
            "ideal_gains", "ARRAY<DOUBLE>", "gains of all relevant items, descending", required=True
        ),
    ),
    partitioned_by=PARTITIONS,
    checks=(
        Check("bucket_range", "bucket >= 0"),
        Check("counts_range", "n_candidates >= 0 AND n_relevant >= cardinality(hit_ranks)"),
    ),
    with_bounds=("query_id",),
)

QUERY_EXTRA_COLUMNS = (
    Column("n_slots", "INT", "items that the query's page shows; null: all of them"),
    Column("weight", "DOUBLE", "the query's weight; null counts as 1"),
    Column("n_scored", "INT", "candidates with a score"),
    Column("n_scored_hits", "INT", "relevant candidates with a score"),
)
"""Columns of query_metrics that are there where some measure needs them."""

METRIC_SUMS = Table(
    name="metric_sums",
    one_row="one series of one day and model: both sums of the metric, bucket by bucket",
    columns=(
        *PARTITION,
        *SERIES,
        Column(
            "num",
            "ARRAY<DOUBLE>",
            f"{_NUM} of each bucket; add days and slices freely",
            required=True,
        ),
        Column("den", "ARRAY<DOUBLE>", f"{_DEN} of each bucket", required=True),
        *(
            Column(name, "ARRAY<DOUBLE>", f"{of} by {buckets}; null: {_NO_ITEMS}")
            for names, buckets in zip(
                BY_ITEMS,
                ("the bucket of the item", "the bucket of its user's and item's buckets"),
                strict=True,
            )
            for name, of in zip(names, ("num", "den"), strict=True)
        ),
        Column(
            "fingerprint",
            "ARRAY<BIGINT>",
            "of metric n_queries: bit_xor of the query ids' xxhash64, per bucket; null for other"
            " metrics",
        ),
        Column(
            "definition_hash",
            "STRING",
            "what the number means; see runs.definitions",
            required=True,
        ),
    ),
    partitioned_by=PARTITIONS,
    checks=(
        Check("same_buckets", "cardinality(num) = cardinality(den)"),
        Check(
            "same_item_buckets",
            "num_by_item IS NULL OR cardinality(num_by_item) + cardinality(den_by_item)"
            " + cardinality(num_by_both) + cardinality(den_by_both) = 4 * cardinality(num)",
        ),
    ),
)

METRICS = Table(
    name="metrics",
    one_row="one series of one day (or window of days) and model: what people read",
    columns=(
        *PARTITION,
        *SERIES,
        Column(
            "window_days",
            "INT",
            "days in the window that ends on event_date; 1: the day alone",
            required=True,
        ),
        Column("value", "DOUBLE", "num / den; null when den is 0"),
        Column("std_err", "DOUBLE", "delete-a-bucket jackknife; null when status is not ok"),
        Column("ci_low", "DOUBLE", "lower end of the interval; null when status is not ok"),
        Column("ci_high", "DOUBLE", "upper end of the interval; null when status is not ok"),
        Column("num", "DOUBLE", _NUM, required=True),
        Column("den", "DOUBLE", _DEN, required=True),
        Column("n_queries", "BIGINT", "queries of the slice", required=True),
        Column(
            "n_defined",
            "BIGINT",
            "queries whose value is defined: the mean's population",
            required=True,
        ),
        Column("n_clusters", "INT", "buckets that hold any of them", required=True),
        Column(
            "status", "STRING", "ok; insufficient: too little data for an interval", required=True
        ),
        Column(
            "is_mature",
            "BOOLEAN",
            "whether every label could have happened by label_as_of (or the run), a time that had"
            " come; null when no window bounds them",
        ),
        Column("label_as_of", "TIMESTAMP", "labels known by then count; null: all events"),
        Column(
            "definition_hash",
            "STRING",
            "what the number means; see runs.definitions",
            required=True,
        ),
    ),
    partitioned_by=PARTITIONS,
    checks=(
        Check("interval_order", "ci_low IS NULL OR ci_low <= ci_high"),
        Check("counts_range", "n_defined >= 0 AND n_queries >= n_defined"),
        Check("no_nan", "value IS NULL OR NOT isnan(value)"),
    ),
)

QUALITY = Table(
    name="quality",
    one_row="one check of one run",
    columns=(
        *PARTITION,
        Column("name", "STRING", "the check: input.finding", required=True),
        Column("value", "DOUBLE", "what was found: a count, or a share of n_rows", required=True),
        Column("n_rows", "BIGINT", "rows the check looked at", required=True),
        Column("limit", "DOUBLE", "the limit that the configuration sets; null: none"),
        Column("status", "STRING", "ok, finding (worth a look) or exceeded", required=True),
    ),
    partitioned_by=PARTITIONS,
)

REJECTED = Table(
    name="rejected",
    one_row="one row of an input that does not count: a sample, where it is asked for",
    columns=(
        *PARTITION,
        Column("input", "STRING", "the input's name", required=True),
        Column("reason", "STRING", "why it does not count, as quality names it", required=True),
        Column("query_id", "STRING", "its query, or the SHA-256 of it; null: it has none"),
        Column("item_id", "STRING", "its item, or the SHA-256 of it; null: it has none"),
        Column("impression_id", "STRING", "the delivery it names, or the SHA-256; null: none"),
        Column("user_id", "STRING", "its user, or the SHA-256 of it; null: it has none"),
        Column("happened_at", "TIMESTAMP", "its event time; null: it has none"),
        Column("ingest_ts", "TIMESTAMP", "when it reached the log; null: the log does not say"),
    ),
    partitioned_by=PARTITIONS,
)

RUNS = Table(
    name="runs",
    one_row="one step of one attempt for one model: STARTED first, then SUCCESS, FAILED or"
    " REJECTED",
    columns=(
        Column("event_date", "DATE", "the day of the queries", required=True),
        Column(
            "model_version",
            "STRING",
            "the model; null: the attempt ended before its models were known",
        ),
        Column("run_id", "STRING", "the attempt", required=True),
        Column("evaluation", "STRING", "the evaluation's name", required=True),
        Column("status", "STRING", "STARTED, SUCCESS, FAILED or REJECTED", required=True),
        Column("started_at", "TIMESTAMP", "when the attempt began", required=True),
        Column("finished_at", "TIMESTAMP", "when it ended; null while it runs"),
        Column("message", "STRING", "why it failed or was rejected"),
        Column("model_name", "STRING", "the model's original name, where an alias replaced it"),
        Column(
            "inputs", "STRING", "JSON: each input's place, version, rows and fingerprints of files"
        ),
        Column("config", "STRING", "JSON: the effective configuration"),
        Column("config_hash", "STRING", "the hash of config"),
        Column("definitions", "STRING", "JSON: what every published number means"),
        Column("label_as_of", "TIMESTAMP", "labels known by then count; null: all events"),
        Column("package_version", "STRING", "the version of ranklake"),
        Column("git_sha", "STRING", "the commit, where it is known"),
        Column("spark_version", "STRING", "the version of Spark"),
        Column("engine", "STRING", "jvm or comet"),
        Column(
            "plan",
            "STRING",
            "pruned: rows of labelled queries alone were shuffled and ranked; pruned late: all rows"
            " were shuffled; nested: ranked inside their rows; full: every query was ranked;"
            " stored hits: none, measured again from query_metrics",
        ),
        Column("plan_reason", "STRING", "why that plan"),
        Column(
            "table_versions",
            "MAP<STRING,BIGINT>",
            "the Delta version that holds this run, by table",
        ),
        Column("stage_seconds", "MAP<STRING,DOUBLE>", "wall-clock seconds, by stage"),
    ),
    partitioned_by=PARTITIONS,
    checks=(Check("status_known", "status IN ('STARTED', 'SUCCESS', 'FAILED', 'REJECTED')"),),
)

LAKE = (QUERY_METRICS, METRIC_SUMS, METRICS, COMPARISONS, QUALITY, REJECTED, RUNS)
