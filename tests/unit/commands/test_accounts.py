"""Accounts, users, associations and QOS: what may be done to them, by whom, and what it brings."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from spur.testing.accounts import (
    add_account,
    add_association,
    add_qos,
    add_user,
    change,
    number,
    remove,
    word,
    words,
)
from spur.testing.builders import ADMIN, Cluster, actor, replay
from spur.testing.hall import SPEC, Hall
from spur.values.accounts import Setting, Settings, Subject, Verb
from spur.values.errors import Rejection
from spur.values.ids import JobId, PartitionName
from spur.wire.accounts import EditEntities, EntityEdit, EntityPage, EntityView, QueryEntities
from spur.wire.jobs import JobChanges, UpdateJob

ADA = 1001
"""The uid of the hall's user."""


@pytest.fixture
def hall() -> Hall:
    """Four nodes that are there."""
    return Hall()


@pytest.fixture
def cluster(hall: Hall) -> Cluster:
    """Physics with astro below it, chem beside it, and ada in physics and astro."""
    cluster = hall.cluster
    do(cluster, *add_account("physics"), *add_account("astro", parent="physics"))
    do(cluster, *add_account("chem"), add_qos("high"), add_user("ada", uid=ADA))
    do(cluster, add_association("physics", "ada"), add_association("astro", "ada"))
    return cluster


def do(cluster: Cluster, *edits: EntityEdit, uid: int = 0) -> None:
    """Do edits that must not be refused."""
    outcome = cluster.ask(EditEntities(edits), actor(uid))
    assert not isinstance(outcome, Rejection), outcome


def refused(cluster: Cluster, *edits: EntityEdit, uid: int = 0) -> tuple[str, str]:
    """Return the code and text of why edits are refused; nothing must have changed."""
    index = cluster.state.index
    outcome = cluster.ask(EditEntities(edits), actor(uid))
    assert isinstance(outcome, Rejection), outcome
    assert cluster.state.index == index
    assert outcome.text.endswith("nothing was changed")
    return outcome.code, outcome.text


def shown(cluster: Cluster, subject: Subject) -> dict[tuple[str, ...], EntityView]:
    """Return everything of one kind, fetched by twos."""
    found: dict[tuple[str, ...], EntityView] = {}
    after: tuple[str, ...] = ()
    while True:
        page = cluster.ask(QueryEntities(subject, after, 2), actor(ADA))
        assert isinstance(page, EntityPage)
        found.update((view.key, view) for view in page.entities)
        if not page.more:
            return found
        after = page.entities[-1].key


def settings(cluster: Cluster, subject: Subject, *key: str) -> Settings:
    """Return the settings of one entity."""
    return shown(cluster, subject)[key].settings


def test_a_new_cluster_has_root_and_normal_and_no_association() -> None:
    """Nobody has ever called sacctmgr."""
    cluster = Cluster()
    assert list(shown(cluster, Subject.ACCOUNT)) == [("root",)]
    assert list(shown(cluster, Subject.USER)) == [("root",)]
    assert list(shown(cluster, Subject.QOS)) == [("normal",)]
    assert not shown(cluster, Subject.ASSOCIATION)


def test_the_first_association_brings_the_root_with_it(cluster: Cluster) -> None:
    """A site begins with its first account; what is there has numbers in the order of adding."""
    numbers = {key: view.number for key, view in shown(cluster, Subject.ASSOCIATION).items()}
    assert numbers == {
        ("root", "", ""): 1,
        ("root", "root", ""): 2,
        ("physics", "", ""): 3,
        ("astro", "", ""): 4,
        ("chem", "", ""): 5,
        ("physics", "ada", ""): 6,
        ("astro", "ada", ""): 7,
    }
    assert settings(cluster, Subject.USER, "root")[1] == word("DefaultAccount", "root")


def test_the_first_association_of_a_user_is_their_default(cluster: Cluster) -> None:
    """Someone is added to two accounts; the second changes nothing of the first."""
    assert word("DefaultAccount", "physics") in settings(cluster, Subject.USER, "ada")


def test_limits_are_kept_as_numbers_each_by_its_resource(cluster: Cluster) -> None:
    """A QOS gets limits, then other ones, then one is taken away."""
    cpu, memory = number("GrpTRES", 8, "cpu"), number("GrpTRES", 1024, "mem")
    do(cluster, change(Subject.QOS, ("high",), cpu, memory, number("GraceTime", 30)))
    do(cluster, change(Subject.QOS, ("high",), number("GrpTRES", 4, "cpu")))
    do(cluster, change(Subject.QOS, ("high",), Setting("GraceTime", "", None)))
    assert settings(cluster, Subject.QOS, "high") == (number("GrpTRES", 4, "cpu"), memory)


def test_what_changes_nothing_is_no_entry(cluster: Cluster) -> None:
    """Somebody sets what is set already."""
    do(cluster, change(Subject.QOS, ("high",), number("Priority", 7)))
    index = cluster.state.index
    do(cluster, change(Subject.QOS, ("high",), number("Priority", 7)))
    assert cluster.state.index == index


@pytest.mark.parametrize(
    "setting",
    [
        number("Priority", -1),
        number("Priority", 1 << 63),
        number("NoSuch", 1),
        number("MaxJobs", 1),  # of associations, not of QOS
        number("GrpTRES", 1),
        number("Priority", 1, "cpu"),
        number("GrpTRES", 1, "CPU s"),
        word("Priority", "high"),
        words("Flags", "b", "a"),
        words("Flags", "a", "a"),
        words("Preempt", "no such"),
        Setting("Priority", "", ("a",)),
        Setting("Description", "", "x" * 1_025),
    ],
)
def test_a_value_of_another_type_or_place_is_refused(cluster: Cluster, setting: Setting) -> None:
    """A client sends what is no such setting."""
    code, _ = refused(cluster, change(Subject.QOS, ("high",), setting))
    assert code == "invalid-value"


@pytest.mark.parametrize(
    ("edit", "code"),
    [
        (add_qos("high"), "already-exists"),
        (add_qos("a b"), "invalid-value"),
        (add_qos(""), "invalid-value"),
        (add_user("ada", uid=5), "already-exists"),
        (add_user("bob", uid=ADA), "already-exists"),
        (change(Subject.USER, ("ada",), number("Uid", 0)), "already-exists"),
        (add_association("nosuch", "ada"), "unknown-entity"),
        (add_association("chem", "nosuch"), "unknown-entity"),
        (add_association("chem", "ada", settings=(words("QOS", "nosuch"),)), "unknown-entity"),
        (add_association("chem", "ada", settings=(word("Parent", "chem"),)), "invalid-value"),
        (add_association("chem", "ada", "a b"), "invalid-value"),
        (change(Subject.USER, ("ada",), word("DefaultAccount", "chem")), "unknown-entity"),
        (change(Subject.USER, ("ada",), word("AdminLevel", "king")), "invalid-value"),
        (
            change(Subject.ASSOCIATION, ("physics", "", ""), word("Parent", "astro")),
            "invalid-value",
        ),
        (
            change(Subject.ASSOCIATION, ("physics", "", ""), word("Parent", "physics")),
            "invalid-value",
        ),
        (change(Subject.ASSOCIATION, ("root", "", ""), word("Parent", "chem")), "invalid-value"),
        (change(Subject.ACCOUNT, ("chem",), words("Coordinators", "nosuch")), "unknown-entity"),
        (remove(Subject.QOS, "normal"), "in-use"),
        (remove(Subject.ACCOUNT, "root"), "in-use"),
        (remove(Subject.ACCOUNT, "nosuch"), "unknown-entity"),
        (remove(Subject.ACCOUNT, "physics"), "in-use"),
        (remove(Subject.ASSOCIATION, "physics", "ada", ""), "default-account"),
        (
            EntityEdit(Verb.REMOVE, Subject.QOS, ("high",), (number("Priority", 1),)),
            "invalid-value",
        ),
        (EntityEdit(Verb.ADD, Subject.QOS, ("a", "b")), "invalid-value"),
        (add_qos("twice", number("Priority", 1), number("Priority", 2)), "invalid-value"),
    ],
)
def test_what_cannot_be_is_refused(cluster: Cluster, edit: EntityEdit, code: str) -> None:
    """Names that there are, or are not; circles; what others need. Nothing of a request is done."""
    assert refused(cluster, add_qos("before"), edit)[0] == code
    assert ("before",) not in shown(cluster, Subject.QOS)


def test_an_account_moves_with_all_below_it(cluster: Cluster) -> None:
    """Physics is put under chem."""
    do(cluster, change(Subject.ASSOCIATION, ("physics", "", ""), word("Parent", "chem")))
    assert word("Parent", "chem") in settings(cluster, Subject.ASSOCIATION, "physics", "", "")
    assert word("Parent", "physics") in settings(cluster, Subject.ASSOCIATION, "astro", "", "")


def test_a_user_goes_with_associations_and_offices(cluster: Cluster) -> None:
    """Ada, coordinator of chem, leaves; whoever comes back has another number."""
    do(cluster, change(Subject.ACCOUNT, ("chem",), words("Coordinators", "ada")))
    first = shown(cluster, Subject.USER)["ada",].number
    do(cluster, remove(Subject.USER, "ada"))
    assert all(key[1] != "ada" for key in shown(cluster, Subject.ASSOCIATION))
    assert not any(s.name == "Coordinators" for s in settings(cluster, Subject.ACCOUNT, "chem"))
    do(cluster, add_user("ada", uid=ADA))
    assert shown(cluster, Subject.USER)["ada",].number > first


def test_who_loses_the_last_association_has_no_default(cluster: Cluster) -> None:
    """Ada leaves astro, then physics."""
    do(cluster, remove(Subject.ASSOCIATION, "astro", "ada", ""))
    do(cluster, remove(Subject.ASSOCIATION, "physics", "ada", ""))
    assert not any(s.name == "DefaultAccount" for s in settings(cluster, Subject.USER, "ada"))


def test_a_removed_qos_is_named_nowhere(cluster: Cluster) -> None:
    """High was in lists, a default, and preempted by another."""
    key = ("astro", "ada", "")
    do(
        cluster,
        change(Subject.ASSOCIATION, key, words("QOS", "+high"), word("DefaultQOS", "high")),
        add_qos("higher", words("Preempt", "high", "normal")),
        remove(Subject.QOS, "high"),
    )
    assert settings(cluster, Subject.ASSOCIATION, *key) == ()
    assert settings(cluster, Subject.QOS, "higher") == (words("Preempt", "normal"),)


def test_edits_see_what_those_before_them_did(cluster: Cluster) -> None:
    """One request makes an account, a user in it, and takes both away again."""
    do(
        cluster,
        *add_account("bio", parent="astro"),
        add_user("bob", uid=7),
        add_association("bio", "bob"),
        change(Subject.USER, ("bob",), word("DefaultAccount", "bio")),
        remove(Subject.USER, "bob"),
        remove(Subject.ACCOUNT, "bio"),
    )
    assert ("bio",) not in shown(cluster, Subject.ACCOUNT)
    assert replay(cluster.entries).accounts.rows == cluster.state.accounts.rows


def test_too_many_edits_are_refused_by_the_name_of_the_limit(cluster: Cluster) -> None:
    """A client sends a whole world."""
    code, text = refused(cluster, *[add_qos(f"q{number}") for number in range(2_001)])
    assert (code, "edits-max is 2000" in text) == ("limit-exceeded", True)


# -- who may
def test_a_user_may_change_nothing(cluster: Cluster) -> None:
    """Ada would like a QOS of her own."""
    assert refused(cluster, add_qos("mine"), uid=ADA)[0] == "not-permitted"
    mine = change(Subject.ASSOCIATION, ("physics", "ada", ""), number("Priority", 9))
    assert refused(cluster, mine, uid=ADA)[0] == "not-permitted"


def test_a_coordinator_may_add_users_in_and_below_their_account(cluster: Cluster) -> None:
    """Ada is coordinator of physics: bob may go to astro below it, not to chem."""
    do(cluster, change(Subject.ACCOUNT, ("physics",), words("Coordinators", "ada")))
    do(cluster, add_user("bob", uid=7), add_association("astro", "bob"), uid=ADA)
    do(cluster, *add_account("solar", parent="astro"), uid=ADA)
    assert refused(cluster, add_association("chem", "bob"), uid=ADA)[0] == "not-permitted"
    assert refused(cluster, *add_account("top"), uid=ADA)[0] == "not-permitted"
    away = change(Subject.ASSOCIATION, ("astro", "", ""), word("Parent", "chem"))
    assert refused(cluster, away, uid=ADA)[0] == "not-permitted"
    king = add_user("eve", word("AdminLevel", "operator"), uid=8)
    assert refused(cluster, king, uid=ADA)[0] == "not-permitted"


def test_an_operator_makes_operators_and_no_administrators(cluster: Cluster) -> None:
    """Ada is given the level of an operator; its power counts from that entry on."""
    do(cluster, change(Subject.USER, ("ada",), word("AdminLevel", "operator")))
    do(cluster, add_user("bob", word("AdminLevel", "operator"), uid=7), uid=ADA)
    king = change(Subject.USER, ("bob",), word("AdminLevel", "administrator"))
    assert refused(cluster, king, uid=ADA)[0] == "not-permitted"
    do(cluster, king)
    away = change(Subject.USER, ("bob",), word("AdminLevel", "none"))
    assert refused(cluster, away, uid=ADA)[0] == "not-permitted"


# -- jobs
def accounted(hall: Hall, account: str = "", qos: str = "") -> tuple[str, str]:
    """Submit, and return the account and QOS that the job has."""
    spec = hall.view(hall.submit(replace(SPEC, account=account, qos=qos))).spec
    return spec.account, spec.qos


def test_jobs_of_a_cluster_without_associations_stay_as_they_are() -> None:
    """A small site never calls sacctmgr."""
    assert accounted(Hall()) == ("", "")
    assert accounted(Hall(), "any", "thing") == ("any", "thing")


def test_a_job_gets_the_default_account_and_qos(cluster: Cluster, hall: Hall) -> None:
    """Ada names nothing, or an account; astro's default QOS comes from physics above it."""
    assert accounted(hall) == ("physics", "normal")
    high = word("DefaultQOS", "high")
    do(cluster, change(Subject.ASSOCIATION, ("physics", "", ""), high))
    assert accounted(hall, "ASTRO") == ("astro", "high")
    assert accounted(hall, "astro", "normal") == ("astro", "normal")


def test_the_only_qos_of_a_list_is_the_default(cluster: Cluster, hall: Hall) -> None:
    """Physics may use high alone."""
    do(cluster, change(Subject.ASSOCIATION, ("physics", "", ""), words("QOS", "high")))
    assert accounted(hall) == ("physics", "high")


def test_an_association_of_a_partition_counts_before_that_of_all(
    cluster: Cluster, hall: Hall
) -> None:
    """Ada's jobs in gpu have a QOS of their own."""
    high = word("DefaultQOS", "high")
    do(cluster, add_association("physics", "ada", "gpu", settings=(high,)))
    assert accounted(hall) == ("physics", "high")


def test_without_enforcement_unknown_names_are_taken(cluster: Cluster, hall: Hall) -> None:
    """AccountingStorageEnforce is not set."""
    assert accounted(hall, "nosuch", "nosuch") == ("nosuch", "nosuch")


def test_an_update_of_the_account_is_judged_as_a_submission(cluster: Cluster, hall: Hall) -> None:
    """A waiting job is moved to another account of its user."""
    job_id = hall.submit(replace(SPEC, account="", qos=""))
    hall.cluster.ask(UpdateJob(job_id, None, JobChanges(account="Astro")), ADMIN)
    assert hall.view(job_id).spec.account == "astro"
    assert hall.view(JobId(job_id)).spec.partitions == (PartitionName("gpu"),)


def test_who_has_jobs_in_an_account_cannot_be_taken_out_of_it(cluster: Cluster, hall: Hall) -> None:
    """Ada has a job that waits."""
    hall.submit(replace(SPEC, account="astro", qos=""))
    assert refused(cluster, remove(Subject.ASSOCIATION, "astro", "ada", ""))[0] == "in-use"
    assert refused(cluster, remove(Subject.USER, "ada"))[0] == "in-use"
