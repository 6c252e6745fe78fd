"""The Spark session: the one that is there, or a local one that needs no setting up."""

from ranklake.session.progress import task_progress
from ranklake.session.start import session, stop

__all__ = ["session", "stop", "task_progress"]
