"""Gives each rule the engines it can apply to: `engine` all, `crashable` those with processes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.contract.log.engines import Engine, chosen_engines


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a rule once for each engine it can apply to."""
    can_apply: dict[str, Callable[[Engine], bool]] = {
        "engine": lambda _: True,
        "crashable": lambda engine: engine.make_crashable is not None,
        "scripted": lambda engine: engine.situations is not None,
    }
    for fixture, applies in can_apply.items():
        if fixture in metafunc.fixturenames:
            engines = [engine for engine in chosen_engines() if applies(engine)]
            metafunc.parametrize(fixture, engines, ids=[engine.name for engine in engines])
