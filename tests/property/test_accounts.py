"""Whatever is asked of accounting: a tree, one default account for each user, only known names."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from spur.projections.invariants import check_invariants
from spur.testing.accounts import random_edit
from spur.testing.builders import Cluster, replay
from spur.values.accounts import Setting, line_of, merged, text_setting
from spur.wire.accounts import EditEntities

SETTING = st.builds(
    Setting,
    st.sampled_from(("GrpTRES", "MaxJobs")),
    st.sampled_from(("", "cpu", "mem")),
    st.one_of(st.none(), st.integers(0, 9)),
)


@given(st.randoms(use_true_random=False))
def test_accounts_stay_a_tree_and_replay_alike(rng: Random) -> None:
    """Administrators add, move and remove at random, several things at once."""
    cluster = Cluster(checked=False)
    for _ in range(40):
        edits = tuple(random_edit(rng) for _ in range(1 + rng.randrange(3)))
        cluster.ask(EditEntities(edits))
    state = cluster.state
    check_invariants(state)
    for key in state.associations.sorted_keys():
        line = line_of(lambda each: state.associations[each].settings, key)
        assert text_setting(line[-1], "Parent") == ""
    for user in state.users.sorted_keys():
        keys = state.associations_of_user.keys(user)
        default = text_setting(state.users[user].settings, "DefaultAccount")
        assert (default in {account for account, _, _ in keys}) == bool(keys)
    again = replay(cluster.entries)
    assert [again.associations.rows, again.users.rows] == [
        state.associations.rows,
        state.users.rows,
    ]


@given(st.lists(SETTING), st.lists(SETTING))
def test_settings_are_the_last_of_each_in_one_order(
    first: list[Setting], then: list[Setting]
) -> None:
    """Changes come in two requests, or in one."""
    twice = merged(merged((), first), then)
    assert twice == merged((), [*first, *then])
    pairs = [(setting.name, setting.resource) for setting in twice]
    assert pairs == sorted(set(pairs))
    assert all(setting.value is not None for setting in twice)
