"""The configuration that a command's options name."""

from ranklake.cli import options
from ranklake.config import EvalConfig, load
from ranklake.errors import ConfigError


def configured(
    config: options.Config, settings: options.Set, *, needs_lake: bool = False
) -> EvalConfig:
    """The configuration. Raises ConfigError with every problem; a missing lake can be one."""
    loaded = load(config or (), settings or ())
    if needs_lake and not loaded.lake.is_given:
        raise ConfigError("lake: give lake.path (a directory) or lake.catalog_schema")
    return loaded
