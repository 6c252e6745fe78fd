"""The command line. Exit codes are those of ranklake.errors; success returns normally."""

from ranklake.cli.main import main

__all__ = ["main"]
