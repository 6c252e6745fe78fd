"""ranx: what it said of random queries, and that it still does."""

import re

import pytest
from parity import mismatches, replayed
from pyspark.sql import SparkSession
from test_parity_live import CASE, EXACT, SEED, as_integers, random_case, spread

RANX = {
    "hits@5": 0.44166666666666665,
    "hit_rate@1": 0.09583333333333334,
    "hit_rate@5": 0.275,
    "precision@1": 0.09583333333333334,
    "precision@5": 0.08833333333333335,
    "precision@20": 0.03895833333333333,
    "precision(rel=2)@5": 0.03833333333333334,
    "recall@5": 0.1531712962962963,
    "recall@20": 0.245760582010582,
    "recall(rel=2)@10": 0.13116071428571427,
    "f1@5": 0.09448479624950214,
    "f1(rel=2)@10": 0.04126380427851017,
    "r_precision": 0.10412863756613758,
    "rr": 0.1748446651387828,
    "rr@5": 0.16430555555555554,
    "rr(rel=2)@10": 0.08558366402116402,
    "ap": 0.11545604624150538,
    "ap@5": 0.0931511794532628,
    "ap(rel=2)@10": 0.057421390778533636,
    "ndcg": 0.15941156574763524,
    "ndcg@5": 0.12193887220531724,
    "ndcg(rel=2)": 0.10103214363334982,
    "ndcg(rel=2)@10": 0.08236431975714134,
    "ndcg(gain=exp2)@5": 0.11373203755578647,
    "ndcg(gain=exp2,rel=2)@10": 0.08077320519253949,
    "dcg@5": 0.43445343573323353,
    "dcg(rel=2)@10": 0.33935165137864076,
    "rbp(max_gain=3,p=0.8)": 0.1153832178019998 / 3,  # theirs adds up grades up to 3
    "rbp(max_gain=3,p=0.5)": 0.14989803621623043 / 3,
}
"""What ranx 0.3.21 said of these queries without ties, with make_comparable=True.

It compiles its metrics for a minute, so it is asked again only where the extra parity is installed.
"""


def test_ranx_said_the_same(spark: SparkSession) -> None:
    found = replayed(spark, [spread(random_case(), 0.001)], [*RANX], preset="ranx")
    pairs = [(text, found.mean(CASE, text), value) for text, value in RANX.items()]
    assert mismatches(pairs, EXACT) == [], f"seed {SEED}"


THEIR_NAMES = {
    "ap": "map",
    "rr": "mrr",
    "r_precision": "r-precision",
    "ndcg(gain=exp2)": "ndcg_burges",
    "rbp(max_gain=3,p=0.8)": "rbp.80",
    "rbp(max_gain=3,p=0.5)": "rbp.50",
}


def their_name(text: str) -> str:
    """ranx's name of the measure: P(rel=2)@5 is precision@5-l2."""
    rel = re.search(r"rel=(\d+)", text)
    named, _, k = re.sub(r",?rel=\d+|\(rel=\d+\)", "", text).partition("@")
    name = THEIR_NAMES.get(named, named)
    return f"{name}{'@' if k else ''}{k}{f'-l{rel[1]}' if rel else ''}"


def test_ranx_still_says_so() -> None:
    ranx = pytest.importorskip("ranx", reason="to compile its metrics takes a minute")
    case = spread(random_case(), 0.001)
    names = {text: their_name(text) for text in RANX}
    found = ranx.evaluate(
        ranx.Qrels(as_integers(case.gains)),
        ranx.Run({query: dict(items) for query, items in case.run.items()}),
        [*names.values()],
        make_comparable=True,
    )
    pairs = [
        (text, found[name] / 3 if "max_gain" in text else found[name], RANX[text])
        for text, name in names.items()
    ]
    assert mismatches(pairs, EXACT) == []
