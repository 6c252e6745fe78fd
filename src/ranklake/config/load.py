"""TOML files and --set arguments → one checked EvalConfig, or every problem at once."""

import hashlib
import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from ranklake.config.model import EvalConfig
from ranklake.errors import ConfigError, near_miss

BASE = Path("conf/base.toml")
"""Read first where it exists. It holds the defaults, so a run without it means the same."""

Keys = tuple[str | int, ...]

_EXPECTED = {
    "bool_type": "true or false",
    "dict_type": "a table",
    "finite_number": "a finite number",
    "float_type": "a number",
    "greater_than": "more than {gt}",
    "greater_than_equal": "at least {ge}",
    "int_type": "a whole number",
    "less_than": "less than {lt}",
    "less_than_equal": "at most {le}",
    "literal_error": "{expected}",
    "model_type": "a table",
    "string_type": "text in quotes",
    "too_short": "at least {min_length} item",
    "tuple_type": "a list, such as [1, 5]",
}
"""pydantic's kinds of errors, in words that need no Python."""


def load(files: Sequence[Path] = (), settings: Iterable[str] = ()) -> EvalConfig:
    """The configuration of base.toml, then the files left to right, then `a.b=c` settings.

    Raises ConfigError with every problem: of all files that cannot be read, else of all values.
    """
    values: dict[str, Any] = {}
    origins: dict[Keys, str] = {}
    for origin, layer in _layers([*([BASE] if BASE.exists() else []), *files], settings):
        _merge(values, layer, origin, origins)
    return _checked(values, origins)


def of_values(values: Mapping[str, Any]) -> EvalConfig:
    """The configuration of the keys that are given; the others have their defaults.

    Raises ConfigError with every problem.
    """
    return _checked(dict(values), {})


def _checked(values: dict[str, Any], origins: dict[Keys, str]) -> EvalConfig:
    # A date or time without quotes is its text; a tuple is a list.
    plain = json.loads(json.dumps(values, default=str))
    problems = _problems(plain)
    if problems:
        raise ConfigError([_sentence(problem, origins) for problem in problems])
    return EvalConfig.model_validate_json(json.dumps(plain))


def config_hash(config: EvalConfig) -> str:
    """16 hex digits that are equal for equal effective configurations."""
    return hashlib.sha256(config.model_dump_json().encode()).hexdigest()[:16]


def _layers(files: Iterable[Path], settings: Iterable[str]) -> list[tuple[str, dict[str, Any]]]:
    """Each file and each setting as where it comes from, and what it says."""
    layers: list[tuple[str, dict[str, Any]]] = []
    problems: list[str] = []
    for path in files:
        try:
            layers.append((str(path), _toml(path)))
        except ConfigError as error:
            problems += error.problems
    for text in settings:
        try:
            layers.append(("--set", _setting(text)))
        except ConfigError as error:
            problems += error.problems
    if problems:
        raise ConfigError(problems)
    return layers


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
    for written in (value, json.dumps(value, ensure_ascii=False)) if equals else ():
        try:
            return tomllib.loads(f"{key} = {written}")
        except tomllib.TOMLDecodeError:
            continue
    raise ConfigError(f"--set {key}: found no key and value, expected a.b=value")


def _merge(
    values: dict[str, Any],
    layer: dict[str, Any],
    origin: str,
    origins: dict[Keys, str],
    at: Keys = (),
) -> None:
    """Lay the layer over the values: tables are merged, everything else is replaced."""
    for key, value in layer.items():
        if isinstance(value, dict) and isinstance(values.get(key, {}), dict):
            _merge(values.setdefault(key, {}), value, origin, origins, (*at, key))
        else:
            values[key] = value
        origins[(*at, key)] = origin


def _problems(values: dict[str, Any]) -> list[ErrorDetails]:
    """What is wrong with the values, and then with those that are right one by one."""
    alone = _errors(values)
    if not alone or any(error["type"] == "impossible" for error in alone):
        return alone
    # pydantic does not look at what spans several keys while one of them is wrong.
    return [*alone, *_errors(_without(values, {_place(error) for error in alone}))]


def _errors(values: dict[str, Any]) -> list[ErrorDetails]:
    try:
        EvalConfig.model_validate_json(json.dumps(values))
    except ValidationError as error:
        errors = error.errors()
    else:
        return []
    places = [_place(error) for error in errors]
    return [e for e in errors if not (e["type"] == "too_short" and _is_outside(_place(e), places))]


def _is_outside(outer: Keys, places: Iterable[Keys]) -> bool:
    """Whether another place is inside: then a list is short only because its items are wrong."""
    return any(place != outer and place[: len(outer)] == outer for place in places)


def _without(value: Any, faulty: set[Keys], at: Keys = ()) -> Any:
    """The value without its faulty parts, and without lists and tables that hold nothing then."""
    if isinstance(value, dict):
        parts = [(key, part) for key, part in value.items() if (*at, key) not in faulty]
        sound = {key: _without(part, faulty, (*at, key)) for key, part in parts}
        return {key: part for key, part in sound.items() if part not in ([], {})}
    if isinstance(value, list):
        items = [(n, item) for n, item in enumerate(value) if (*at, n) not in faulty]
        kept = [_without(item, faulty, (*at, n)) for n, item in items]
        return [item for item in kept if item not in ([], {})]
    return value


def _place(error: ErrorDetails) -> Keys:
    return tuple(part for part in error["loc"] if part != "[key]")  # so pydantic marks a key


def _sentence(error: ErrorDetails, origins: dict[Keys, str]) -> str:
    at = _place(error)
    prefixes = [at[:n] for n in range(len(at), 0, -1)]
    origin = next((origins[prefix] for prefix in prefixes if prefix in origins), "configuration")
    return f"{origin}: {_dotted(at)}: {_what(error, at)}"


def _dotted(at: Keys) -> str:
    """The place as TOML would write its key.

    >>> _dotted(("models", "models:/ctr/42")), _dotted(("ks", 0))
    ('models."models:/ctr/42"', 'ks[0]')
    """
    words = [f"[{p}]" if isinstance(p, int) else f".{_quoted(p)}" for p in at]
    return "".join(words).removeprefix(".")


def _quoted(key: str) -> str:
    return key if re.fullmatch("[A-Za-z0-9_-]+", key) else json.dumps(key, ensure_ascii=False)


def _what(error: ErrorDetails, at: Keys) -> str:
    if error["type"] == "extra_forbidden":
        return _unknown_key(at)
    if error["type"] not in _EXPECTED:
        return error["msg"].removeprefix("Value error, ")
    expected = _EXPECTED[error["type"]].format(**error.get("ctx", {}))
    if "options" in at:  # the value may be a secret
        return f"expected {expected}"
    value = error["input"]
    found = repr(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"found {found}, expected {expected}"


def _unknown_key(at: Keys) -> str:
    known, key = _known_keys(at[:-1]), str(at[-1])
    listed = f"unknown key, known are {', '.join(known)}"
    if len(at) > 1 and key in EvalConfig.model_fields:
        return f"{listed}; {key!r} belongs above the first [section]"
    return f"{listed}{near_miss(key, known)}"


def _known_keys(at: Keys) -> list[str]:
    model: Any = EvalConfig
    for part in at:
        if isinstance(part, str):  # else it is a place in a list of the same
            model = _model_of(model.model_fields[part].annotation)
    return [field.alias or name for name, field in model.model_fields.items()]


def _model_of(annotation: Any) -> type[BaseModel]:
    options = [annotation, *getattr(annotation, "__args__", ())]
    return next(o for o in options if isinstance(o, type) and issubclass(o, BaseModel))
