"""Queries → metric_sums: buckets, slices, and the two additive sums of every metric."""
