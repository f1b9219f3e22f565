"""Recorded cases, scenes and steps, as the files of a recording directory hold them.

DIR/scenes/NAME.json    a starting state: configuration, setup, what it captured
DIR/cases/FAMILY.json   a list of cases, each in one scene
DIR/cluster/            the configuration
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path

import msgspec

from spur.values.errors import OperatorFault

__all__ = ["Case", "Scene", "Step", "load_cases", "load_scene"]


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is done; which of the first five fields is set says what."""

    command: str | None = None
    wait: str | None = None
    sleep: float | None = None
    file: str | None = None
    node: str | None = None

    user: str = "root"
    env: dict[str, str] | None = None
    stdin: str | None = None
    capture: dict[str, str] | None = None
    """Name of a variable, and the expression whose group 1 is its value."""
    match: str = ""
    """What the output of `wait` must have."""
    timeout: float = 30.0
    content: str = ""
    mode: str = "644"
    action: str = ""
    """Of a node: up or down."""

    stdout: str = ""
    stderr: str = ""
    exit_code: int | str = 0
    stdout_masked: str | None = None
    stderr_masked: str | None = None
    stdout_unstable: bool = False
    stderr_unstable: bool = False
    exit_code_unstable: bool = False


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """What was done in a scene, and what came of it; only `steps` are judged."""

    name: str
    family: str
    scene: str
    order: int = 0
    setup: tuple[Step, ...] = ()
    steps: tuple[Step, ...] = ()
    cleanup: tuple[Step, ...] = ()
    vars: dict[str, str] = {}
    read_only: bool = False

    @property
    def changes_nothing(self) -> bool:
        """Whether others may run at the same time: it only looks, or all of it is refused."""
        return self.read_only or not (
            self.setup
            or self.cleanup
            or any(
                step.command is None or step.capture or step.exit_code in (0, "timeout")
                for step in self.steps
            )
        )


class Scene(msgspec.Struct, frozen=True, kw_only=True):
    """A starting state."""

    scene: str
    config_overrides: dict[str, str] = {}
    """Replace keys of slurm.conf; an empty value takes the line away."""
    first_job_id: int = 1
    setup: tuple[Step, ...] = ()
    vars: dict[str, str] = {}


_CASES = msgspec.json.Decoder(list[Case])
_SCENE = msgspec.json.Decoder(Scene)


def load_cases(golden: Path, pattern: str = "*") -> dict[str, list[Case]]:
    """Return the cases whose name or family fits, by scene, each scene's in order.

    `pattern` is one, or several parted by blanks.

    Raises: OperatorFault when there are none, or a file can't be read.
    """
    found: dict[str, list[Case]] = {}
    patterns = pattern.split()
    for path in sorted((golden / "cases").glob("*.json")):
        try:
            cases = _CASES.decode(path.read_bytes())
        except (OSError, msgspec.DecodeError, msgspec.ValidationError) as error:
            raise OperatorFault(f"{path}: {error}; nothing was run") from error
        for case in cases:
            names = (case.name, case.family)
            if any(fnmatchcase(name, each) for name in names for each in patterns):
                found.setdefault(case.scene, []).append(case)
    if not found:
        raise OperatorFault(f"{golden} has no case {pattern!r}; nothing was run")
    return {scene: sorted(cases, key=lambda case: case.order) for scene, cases in found.items()}


def load_scene(scenes: Path, name: str) -> Scene:
    """Return a scene. Raises: OperatorFault when it can't be read."""
    path = scenes / f"{name}.json"
    try:
        return _SCENE.decode(path.read_bytes())
    except (OSError, msgspec.DecodeError, msgspec.ValidationError) as error:
        raise OperatorFault(f"{path}: {error}") from error
