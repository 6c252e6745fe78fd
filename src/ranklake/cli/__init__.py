"""The command line. Exit codes are those of ranklake.errors; success returns normally.

Commands import what needs Spark when they run: show and explain work where it is not installed.
"""

from ranklake.cli.main import main

__all__ = ["main"]
