"""Scores as probabilities: what calibration and log loss are made of.."""

from pyspark.sql import Column
from pyspark.sql import functions as F

from ranklake.metrics.ranking import TINY


def log_loss(probability: Column, happened: bool) -> Column:
    """-ln of the probability given to what happened, which is kept above 1e-15."""
    of_outcome = probability if happened else F.lit(1.0) - probability
    return F.when(probability.isNotNull(), -F.log(F.greatest(of_outcome, F.lit(TINY))))


def score_sums(score: Column) -> dict[str, Column]:
    """Sums over a query's candidates, by name: what its scores say as probabilities.

    Only scores from 0 to 1 count: others are none.
    score_sum  Σ score
    n_scored   candidates with a score
    miss_loss  Σ log loss of the scores if no candidate were relevant
    """
    probability = as_probability(score)
    return {
        "score_sum": F.sum(probability),
        "n_scored": F.count(probability),
        "miss_loss": F.sum(log_loss(probability, False)),
    }


def as_probability(score: Column) -> Column:
    """The score where it can be one; null for any other, NaN among them."""
    return F.when(score.between(F.lit(0.0), F.lit(1.0)), score)
