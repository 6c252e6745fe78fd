"""The table comparisons: a candidate against a baseline."""

from ranklake.schemas.series import PARTITION, PARTITIONS, SERIES
from ranklake.schemas.table import Check, Column, Table

COMPARISONS = Table(
    name="comparisons",
    one_row="one series of a candidate (model_version) against one baseline, for one rule or none",
    columns=(
        *PARTITION,
        Column("baseline_version", "STRING", "the model compared with", required=True),
        Column("baseline_alias", "STRING", "the name it was asked for by, such as production"),
        Column("rule", "STRING", "the rule of the gate; empty: none", required=True),
        *SERIES,
        Column("date_from", "DATE", "first day of the window", required=True),
        Column("date_to", "DATE", "last day of the window", required=True),
        Column("n_days", "INT", "days of the window that both models have", required=True),
        Column("value", "DOUBLE", "the candidate's value; null: undefined"),
        Column("baseline_value", "DOUBLE", "the baseline's value; null: undefined"),
        Column("delta", "DOUBLE", "value - baseline_value"),
        Column("std_err", "DOUBLE", "paired delete-a-bucket jackknife of delta"),
        Column("ci_low", "DOUBLE", "lower end of delta's interval; null: insufficient"),
        Column("ci_high", "DOUBLE", "upper end of delta's interval; null: insufficient"),
        Column("relative_delta", "DOUBLE", "value / baseline_value - 1"),
        Column("relative_ci_low", "DOUBLE", "lower end of relative_delta's interval"),
        Column("relative_ci_high", "DOUBLE", "upper end of relative_delta's interval"),
        Column("confidence", "DOUBLE", "of the intervals: 0.95 as a rule", required=True),
        Column("p_value", "DOUBLE", "two-sided, no difference: Student's t"),
        Column(
            "p_sign_flip",
            "DOUBLE",
            "the same from 10 000 flips of the buckets' signs; null: the denominators differ, or"
            " the value is made of others, or clustered by items too",
        ),
        Column(
            "p_holm",
            "DOUBLE",
            "adjusted over the rows without a rule, or over those with one but the primary (Holm)",
        ),
        Column("p_bh", "DOUBLE", "adjusted over the same family (Benjamini-Hochberg)"),
        Column(
            "mde",
            "DOUBLE",
            "the difference that is found in 80 % of the cases: 2.8 standard errors at 0.95",
        ),
        Column("n_clusters", "INT", "buckets that hold a query of either model"),
        Column(
            "status",
            "STRING",
            "ok; same: both are equal in every bucket; insufficient: too little data for an"
            " interval",
            required=True,
        ),
        Column(
            "pairing",
            "STRING",
            "same_queries: in every bucket; partial: in some; disjoint: in none",
            required=True,
        ),
        Column("n_queries", "BIGINT", "the candidate's queries", required=True),
        Column("baseline_n_queries", "BIGINT", "the baseline's queries", required=True),
        Column(
            "n_paired_queries",
            "BIGINT",
            "the candidate's queries in buckets that hold the same ones of both",
            required=True,
        ),
        Column(
            "judged_at_k",
            "DOUBLE",
            "judged share of the candidate's top k; 1: its candidates were shown; null: unknown",
        ),
        Column("baseline_judged_at_k", "DOUBLE", "the same of the baseline"),
        Column("role", "STRING", "primary, guardrail or info; null: no rule"),
        Column("max_drop", "DOUBLE", "the drop that the rule allows"),
        Column("max_relative_drop", "DOUBLE", "the drop that it allows, by baseline_value"),
        Column("floor", "DOUBLE", "the least value that it allows"),
        Column("ceiling", "DOUBLE", "the largest value that it allows"),
        Column("verdict", "STRING", "PASS, FAIL or INCONCLUSIVE; null: no rule"),
        Column("reason", "STRING", "why, where it is not the interval alone"),
        Column("definition_hash", "STRING", "what the numbers mean; see runs.definitions"),
        Column("is_mature", "BOOLEAN", "whether the labels of all days and both are complete"),
        Column("label_as_of", "TIMESTAMP", "of the last day; null: all events"),
    ),
    partitioned_by=PARTITIONS,
    checks=(
        Check("interval_order", "ci_low IS NULL OR ci_low <= ci_high"),
        Check("verdict_known", "verdict IS NULL OR verdict IN ('PASS', 'FAIL', 'INCONCLUSIVE')"),
    ),
)
