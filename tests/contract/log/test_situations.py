"""Rules that a rare order of messages breaks, shown on an engine's own classes."""

from __future__ import annotations

from pathlib import Path

from tests.contract.log.engines import Engine


def test_restarted_voter_keeps_its_vote(scripted: Engine, tmp_path: Path) -> None:
    """A term has one leader, though a voter restarts right after it voted and is asked again."""
    assert scripted.situations is not None
    leaders = scripted.situations(tmp_path).voter_restarted()
    twice = {term: nodes for term, nodes in leaders.items() if len(set(nodes)) > 1}
    assert not twice, "; ".join(
        f"term {term} has {len(nodes)} leaders: {', '.join(nodes)}" for term, nodes in twice.items()
    )
    assert leaders, "nobody was elected, so nothing was shown"


def test_late_append_takes_nothing_back(scripted: Engine, tmp_path: Path) -> None:
    """An old append that arrives once more takes nothing back that was acknowledged."""
    assert scripted.situations is not None
    found = scripted.situations(tmp_path).append_repeated_late()
    assert found.acknowledged, "nothing was acknowledged, so nothing was shown"
    lost = [name for name in found.acknowledged if name not in found.kept]
    assert not lost, f"of {len(found.acknowledged)} acknowledged, lost: {', '.join(lost)}"
