"""The contracts of the inputs: what the mapping at the door has to deliver.

A query-level column that is not listed here (device, country, ...) is a slice and is a STRING.
"""

from ranklake.schemas.table import Column, Table

_QUERY_ID = "one search or ad request"
_ITEM_ID = "what was ranked: a document, an ad, a product"
_TIE_KEY = "orders equal scores where rules.tie_break says column:tie_key"
_N_SLOTS = "how many items the page of this query shows: the k of @shown; null: all of them"
_WEIGHT = "the query's weight where average=weighted; null counts as 1"
_INGEST_TS = "when the event reached the log"
_OF_USER = "whose it is, where attribution.key says so"
_ADVERTISER = "who advertises the item, for attribution.key and item_clusters"

IMPRESSIONS = Table(
    name="impressions",
    one_row="one item shown (or considered) for one query",
    columns=(
        Column("query_id", "STRING", _QUERY_ID, required=True),
        Column("item_id", "STRING", _ITEM_ID, required=True),
        Column("event_date", "DATE", "the day of the query"),
        Column(
            "event_ts", "TIMESTAMP", "when the item was shown; dates the query without event_date"
        ),
        Column("model_version", "STRING", "the model that ranked the query"),
        Column("impression_id", "STRING", "the delivery of this item; clicks may refer to it"),
        Column("user_id", "STRING", "who asked; the cluster of the intervals, null when unknown"),
        Column("advertiser_id", "STRING", _ADVERTISER),
        Column("position", "INT", "where it was shown, 1 is the top"),
        Column("score", "DOUBLE", "the model's score, higher is better; null when never scored"),
        Column("tie_key", "DOUBLE", _TIE_KEY),
        Column("clicked", "DOUBLE", "label on the row: above 0 when clicked"),
        Column("converted", "DOUBLE", "label on the row: above 0 when converted"),
        Column("gain", "DOUBLE", "label on the row: graded relevance, 0 is not relevant"),
        Column("n_slots", "INT", _N_SLOTS),
        Column("weight", "DOUBLE", _WEIGHT),
        Column("ingest_ts", "TIMESTAMP", _INGEST_TS),
    ),
)

ROW_LABELS = {"clicked": "click", "converted": "conversion", "gain": "judgment"}
"""The labels on the rows of impressions, and the kind of event that each stands for."""

CLICKS = Table(
    name="clicks",
    one_row="one click",
    columns=(
        Column("query_id", "STRING", "the query of the clicked item"),
        Column("item_id", "STRING", "the clicked item"),
        Column("impression_id", "STRING", "the clicked delivery, instead of query_id and item_id"),
        Column(
            "event_date",
            "DATE",
            "the day of the click's query; without it click_ts bounds the read",
        ),
        Column("click_ts", "TIMESTAMP", "when it was clicked"),
        Column("user_id", "STRING", _OF_USER),
        Column("advertiser_id", "STRING", _ADVERTISER),
        Column("ingest_ts", "TIMESTAMP", _INGEST_TS),
    ),
)

CONVERSIONS = Table(
    name="conversions",
    one_row="one conversion",
    columns=(
        Column("query_id", "STRING", "the query of the converted item"),
        Column("item_id", "STRING", "the converted item"),
        Column(
            "impression_id", "STRING", "the converted delivery, instead of query_id and item_id"
        ),
        Column(
            "event_date", "DATE", "the day of its query; without it conversion_ts bounds the read"
        ),
        Column("conversion_ts", "TIMESTAMP", "when it converted"),
        Column("conversion_id", "STRING", "the conversion itself: rows that share it are one"),
        Column("user_id", "STRING", _OF_USER),
        Column("advertiser_id", "STRING", _ADVERTISER),
        Column("value", "DOUBLE", "what it was worth, in the business' currency"),
        Column("ingest_ts", "TIMESTAMP", _INGEST_TS),
    ),
)

SCORES = Table(
    name="scores",
    one_row="one candidate scored offline by one model",
    columns=(
        Column("query_id", "STRING", _QUERY_ID, required=True),
        Column("item_id", "STRING", _ITEM_ID, required=True),
        Column("model_version", "STRING", "the model that scored it", required=True),
        Column("score", "DOUBLE", "higher is better; null when never scored"),
        Column("tie_key", "DOUBLE", _TIE_KEY),
        Column("event_date", "DATE", "the day of the query"),
    ),
)

JUDGMENTS = Table(
    name="judgments",
    one_row="one graded label",
    columns=(
        Column("query_id", "STRING", _QUERY_ID, required=True),
        Column("item_id", "STRING", _ITEM_ID, required=True),
        Column("gain", "DOUBLE", "graded relevance, 0 is not relevant, below 0 counts as 0"),
        Column(
            "event_date",
            "DATE",
            "the day it belongs to; without it every judgment counts for every day",
        ),
        Column("user_id", "STRING", "who asked; the cluster of the intervals, null when unknown"),
        Column("n_slots", "INT", _N_SLOTS),
        Column("weight", "DOUBLE", _WEIGHT),
    ),
)

INVALID_TRAFFIC = Table(
    name="invalid_traffic",
    one_row="one query, or one user, that is no person's",
    columns=(
        Column("query_id", "STRING", "the query to remove"),
        Column("user_id", "STRING", "the user whose queries are removed, all of the day"),
        Column("event_date", "DATE", "the day it is about; without it every day"),
    ),
)

INPUTS = (IMPRESSIONS, CLICKS, CONVERSIONS, SCORES, JUDGMENTS, INVALID_TRAFFIC)
