"""The rules of an evaluation: what the order of a query is, and which queries count."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, Field

from ranklake.config.strict import STRICT
from ranklake.metrics import MAX_K

_TIE_BREAKS = re.compile(
    r"item_id_desc|item_id_asc|column:(?P<column>position|tie_key)( asc| desc)?|hash\(\d{1,18}\)"
)


def _tie_break(text: str) -> str:
    if not _TIE_BREAKS.fullmatch(text):
        raise ValueError(
            f"found {text!r}, expected item_id_desc, item_id_asc, column:position or"
            " column:tie_key (with asc or desc behind it), or hash(seed) with a number"
        )
    return text


TieBreak = Annotated[str, AfterValidator(_tie_break)]
Place = Literal["last", "first", "drop", "error"]


class Rules(BaseModel):
    """One policy for all metrics of the evaluation."""

    model_config = STRICT

    tie_break: TieBreak = "item_id_desc"
    tie_key_type: Literal["string", "native"] = "string"
    nan_scores: Place = "last"
    null_scores: Place = "last"
    score_type: Literal["double", "float"] = "double"
    depth: Annotated[int, Field(ge=1, le=MAX_K)] | None = None
    duplicates: Literal["best", "error", "keep"] = "best"
    negative: Literal["clip", "error"] = "clip"
    unjudged: Literal["nonrelevant", "drop"] = "nonrelevant"
    no_relevant: Literal["skip", "zero", "one", "error"] = "skip"
    missing_in_run: Literal["zero", "skip", "error"] = "zero"
    missing_in_truth: Literal["skip", "zero", "error"] = "skip"

    @property
    def tie_column(self) -> str | None:
        """The column of the candidates that orders equal scores; None: they go by the item."""
        found = _TIE_BREAKS.fullmatch(self.tie_break)
        return found["column"] if found else None
