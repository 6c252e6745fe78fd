"""What several tests know of the metrics, said by hand."""

OF_ALL_CANDIDATES = ("auc", "judged", "calibration", "log_loss")
"""Metrics that say something of candidates that are not relevant."""

OF_THE_MEAN = ("average", "mean")
"""Options that the value of one query does not know."""
