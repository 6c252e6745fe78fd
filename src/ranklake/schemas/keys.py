"""Columns inside the pipeline that several rooms must name alike; no table shows them."""

IS_WANTED = "is_wanted"
"""Whether the input's `where` keeps the row: rows it leaves out are counted, then dropped."""

IS_CANDIDATE = "is_candidate"
"""What a row of a nested input stands for: true, a candidate; false, a null in the array; null, an
array without any. Rows without a candidate are counted, then dropped."""

ITEM = ("query_id", "item_id")

QUERY = ("query_hash", "query_id")
QUERY_KEYS = ("query_hash", "model_version", "query_id")
"""One ranking. The hash comes first: comparing 64 bits keeps shuffle and sort cheap, and strings
are compared only where two hashes are equal."""

OF_QUERY = ("bucket", "slice_id", "n_slots", "weight")
"""What a query's rows all say of it. Where they disagree, the largest value counts."""

QUERY_EXTRAS = ("n_slots", "weight", "score_sum", "n_scored", "miss_loss")
"""Values of a query that only some measures need: its page's places, its weight, sums of scores."""
