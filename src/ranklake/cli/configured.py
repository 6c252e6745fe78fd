"""The configuration that a command's options name."""

from ranklake import schemas
from ranklake.cli import options
from ranklake.comparison import Tables
from ranklake.config import EvalConfig, load
from ranklake.errors import ConfigError
from ranklake.lake import Lake


def configured(
    config: options.Config, settings: options.Set, *, needs_lake: bool = False
) -> EvalConfig:
    """The configuration. Raises ConfigError with every problem; a missing lake can be one."""
    loaded = load(config or (), settings or ())
    if needs_lake and not loaded.lake.is_given:
        raise ConfigError("lake: give lake.path (a directory) or lake.catalog_schema")
    return loaded


def directory(loaded: EvalConfig, command: str) -> str:
    """The lake's directory. Raises ConfigError where it lies in a catalog, or there is none."""
    place = loaded.lake
    if place.catalog_schema:
        name = place.sql_name(schemas.METRICS.name)
        raise ConfigError(
            f"lake.catalog_schema: {command} reads a directory, not a catalog; on Spark say:"
            f" SELECT * FROM {name} WHERE slice = 'all'"
            f" AND event_date = (SELECT max(event_date) FROM {name})"
        )
    if not place.path:
        raise ConfigError("lake: give --lake, or lake.path in the configuration")
    return place.path


def tables(loaded: EvalConfig, lake: str | None, command: str) -> Tables:
    """The published tables: of a directory without a JVM, of a catalog by Spark."""
    if lake is None and loaded.lake.catalog_schema:
        from ranklake import read, session

        return read.SparkTables(session.session(engine=loaded.engine), loaded.lake)
    return Lake(lake or directory(loaded, command))
