"""Other evaluators, one module each: `prepared(options)` gives a function that computes once.

A module imports what it needs and nothing of ranklake, so that it also runs where only the peer is
installed.
"""
