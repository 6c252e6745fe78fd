"""Names that several rooms must spell alike: of columns inside the pipeline, and of models."""

import re

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

MODEL_VERSION = "[A-Za-z0-9][A-Za-z0-9._-]{0,127}"


def is_model_version(name: str) -> bool:
    """Whether the name may be a partition: every reader finds it again as it was written."""
    return re.fullmatch(MODEL_VERSION, name) is not None
