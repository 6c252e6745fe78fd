"""TOML files and --set arguments → one checked EvalConfig, or every problem at once."""

import hashlib
import json
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from ranklake.config.model import EvalConfig, near_miss
from ranklake.errors import ConfigError

BASE = Path("conf/base.toml")
"""Read first where it exists. It holds the defaults, so a run without it means the same."""

Keys = tuple[str | int, ...]


def load(files: Sequence[Path] = (), settings: Iterable[str] = ()) -> EvalConfig:
    """The configuration of base.toml, then the files left to right, then `a.b=c` settings.

    Raises ConfigError with every problem of every file.
    """
    values: dict[str, Any] = {}
    origins: dict[Keys, str] = {}
    layers = [(str(path), _toml(path)) for path in ([BASE] if BASE.exists() else []) + [*files]]
    for origin, layer in [*layers, *(("--set", _setting(text)) for text in settings)]:
        _merge(values, layer, origin, origins)
    return _checked(values, origins)


def config_hash(config: EvalConfig) -> str:
    """16 hex digits that are equal for equal effective configurations."""
    return hashlib.sha256(config.model_dump_json().encode()).hexdigest()[:16]


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ConfigError(f"{path}: there is no such file") from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from error


def _setting(text: str) -> dict[str, Any]:
    """`slices.max_values=20` as a nested dict; a value that is not TOML is a string."""
    key, equals, value = text.partition("=")
    parts = key.strip().split(".")
    if not equals or not all(parts):
        raise ConfigError(f"--set {text}: expected a.b=value")
    try:
        parsed: Any = tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        parsed = value
    for part in reversed(parts):
        parsed = {part: parsed}
    nested: dict[str, Any] = parsed
    return nested


def _merge(
    values: dict[str, Any], layer: dict[str, Any], origin: str, origins: dict[Keys, str], at: Keys = ()
) -> None:
    """Lay the layer over the values: tables are merged, everything else is replaced."""
    for key, value in layer.items():
        if isinstance(value, dict) and isinstance(values.get(key, {}), dict):
            _merge(values.setdefault(key, {}), value, origin, origins, (*at, key))
        else:
            values[key] = value
        origins[(*at, key)] = origin


def _checked(values: dict[str, Any], origins: dict[Keys, str]) -> EvalConfig:
    try:
        text = json.dumps(values)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"configuration: a value is no text, number, list or table: {error}") from error
    try:
        return EvalConfig.model_validate_json(text)
    except ValidationError as error:
        raise ConfigError([_sentence(problem, origins) for problem in error.errors()]) from error


def _sentence(problem: ErrorDetails, origins: dict[Keys, str]) -> str:
    at: Keys = problem["loc"]
    origin = next((origins[at[:n]] for n in range(len(at), 0, -1) if at[:n] in origins), "configuration")
    key = ".".join(str(part) for part in at)
    if problem["type"] == "extra_forbidden":
        known = _known_keys(at[:-1])
        listed = ", ".join(known)
        return f"{origin}: unknown key {key!r}{near_miss(str(at[-1]), known)} known keys are {listed}"
    what = problem["msg"].removeprefix("Value error, ")
    if problem["type"] == "value_error":
        return f"{origin}: {key}: {what}" if key else f"{origin}: {what}"
    return f"{origin}: {key}: {what}, found {problem['input']!r}"


def _known_keys(at: Keys) -> list[str]:
    model: Any = EvalConfig
    for part in at:
        field = model.model_fields.get(part)
        model = _model_of(field.annotation) if field else None
        if model is None:
            return []
    return [field.alias or name for name, field in model.model_fields.items()]


def _model_of(annotation: Any) -> type[BaseModel] | None:
    options = [annotation, *getattr(annotation, "__args__", ())]
    models = [o for o in options if isinstance(o, type) and issubclass(o, BaseModel)]
    return models[0] if models else None
