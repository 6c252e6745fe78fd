"""The user's cache directory: what a local session fetches or writes once."""

import os
from pathlib import Path

from ranklake.errors import ConfigError


def cache_dir() -> Path:
    """RANKLAKE_CACHE, or ranklake's place among the user's caches; created when missing."""
    directory = _chosen().expanduser().resolve()
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"{directory}: cannot be created ({error.strerror}); "
            "set RANKLAKE_CACHE to a directory that can be written"
        ) from error
    return directory


def _chosen() -> Path:
    if chosen := os.environ.get("RANKLAKE_CACHE"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "ranklake"
