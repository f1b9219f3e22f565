"""Licences: given as long as there are any, kept for the first who waits, never given twice."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from spur.projections.invariants import check_invariants
from spur.scheduling.plan import policy_digest
from spur.testing.builders import ADMIN, CLUSTER
from spur.testing.floor import Floor
from spur.values.arrays import TaskSet
from spur.values.config import ConfigFile
from spur.values.errors import InvariantBroken, Rejection
from spur.values.ids import JobId
from spur.values.states import Reason
from spur.wire.cluster import Configured, Reconfigure
from spur.wire.jobs import CancelJobs, JobFilter
from spur.wire.licenses import LicenseInfo, LicenseList, ListLicenses
from spur.wire.runs import PlaceJobs, PlacementsJudged
from spur.wire.why import ExplainJob, JobExplained

TEXT = """\
ClusterName=c
SlurmctldHost=h
SelectType=select/cons_tres
DefMemPerCPU=100
NodeName=n[1-2] CPUs=8 RealMemory=8000
PartitionName=debug Nodes=n[1-2] Default=YES MaxTime=60
PartitionName=other Nodes=n[1-2] MaxTime=60
"""


def conf(licenses: str = "Licenses=matlab:4,ansys:2\n") -> ConfigFile:
    """Return a small site's slurm.conf."""
    return ConfigFile("slurm.conf", TEXT + licenses)


@pytest.fixture
def floor() -> Floor:
    """A site with four licences of one kind and two of another."""
    return Floor(conf())


def shown(floor: Floor, *jobs: JobId) -> list[str]:
    """Return for each job "runs", or why it waits."""
    return ["runs" if floor.given(job) else floor.reason(job).value for job in jobs]


def used(floor: Floor) -> dict[str, int]:
    """Return how many of each licence are used, as a user is told."""
    listed = floor.cluster.ask(ListLicenses())
    assert isinstance(listed, LicenseList)
    return {row.name: row.used for row in listed.licenses}


def test_a_job_waits_for_licenses_and_starts_when_they_are_back(floor: Floor) -> None:
    """One job takes all of a kind; the next waits until it has ended."""
    first, second = floor.submit(licenses="matlab:4"), floor.submit(licenses="matlab,ansys")
    plain = floor.submit()
    floor.cycle()
    assert shown(floor, first, second, plain) == ["runs", "Licenses", "runs"]
    assert used(floor) == {"ansys": 0, "matlab": 4}
    floor.end(first)
    floor.cycle()
    assert (shown(floor, second), used(floor)) == (["runs"], {"ansys": 1, "matlab": 1})


def test_the_first_who_waits_keeps_what_is_free(floor: Floor) -> None:
    """Small asks don't starve a large one, and what it can't use is given to others."""
    small = floor.submit(licenses="matlab:2")
    floor.cycle()
    large = floor.submit(licenses="matlab:4,ansys")
    later, other, last = (floor.submit(licenses=text) for text in ("matlab", "ansys:1", "ansys:1"))
    floor.cycle()
    assert shown(floor, large, later, other, last) == ["Licenses", "Licenses", "runs", "Licenses"]
    floor.end(small)
    floor.cycle()
    assert shown(floor, large, later, last) == ["runs", "Licenses", "Licenses"]


def test_tasks_of_an_array_take_licenses_one_by_one(floor: Floor) -> None:
    """Six tasks of one licence each, of which there are four."""
    job_id = floor.submit(array=TaskSet(((1, 6, 1),)), licenses="matlab")
    made = floor.cycle()
    assert len(made.placements) == 4
    assert (used(floor), shown(floor, job_id)) == ({"ansys": 0, "matlab": 4}, ["Licenses"])


def test_licenses_are_the_same_in_every_partition(floor: Floor) -> None:
    """A job of two partitions has no more licences than one of one."""
    jobs = [floor.submit(partitions="other,debug", licenses="ansys:2") for _ in range(2)]
    floor.cycle()
    assert shown(floor, *jobs) == ["runs", "Licenses"]


def test_a_job_that_is_being_ended_still_holds_its_licenses(floor: Floor) -> None:
    """It is cancelled, and its node has not yet said that nothing of it is left."""
    job_id = floor.submit(licenses="ansys:2")
    floor.cycle()
    floor.cluster.ask(CancelJobs(JobFilter(job_ids=(job_id,))), ADMIN)
    assert used(floor)["ansys"] == 2
    floor.end(job_id)
    assert used(floor)["ansys"] == 0


def test_a_plan_that_gives_more_than_there_are_is_refused(floor: Floor) -> None:
    """Two jobs are planned as if each were the only one; the second is not started."""
    one, two = floor.submit(licenses="matlab:3"), floor.submit(licenses="matlab:3")
    (first,) = floor.plan().placements
    cpu_8 = replace(first.shares[0], cpu_set=b"\x80")
    second = replace(first, job_id=two, shares=(cpu_8,))
    request = PlaceJobs(floor.state.index, policy_digest(), (first, second))
    judged = floor.cluster.ask(request, CLUSTER)
    assert isinstance(judged, PlacementsJudged)
    assert [refusal.code for refusal in judged.refusals] == ["does-not-fit"]
    assert (bool(floor.given(one)), floor.given(two)) == (True, "")


@pytest.mark.parametrize("text", ["matlab:5", "nosuch", "matlab:x", "MATLAB", "matlab:2,matlab:3"])
def test_licenses_that_there_never_are_enough_of_are_refused(floor: Floor, text: str) -> None:
    """As Slurm does, at submission."""
    with pytest.raises(ValueError, match="invalid-license"):
        floor.submit(licenses=text)


def test_a_cluster_without_licenses_gives_none() -> None:
    """No line of slurm.conf names any."""
    floor = Floor(conf(""))
    assert used(floor) == {}
    with pytest.raises(ValueError, match="invalid-license"):
        floor.submit(licenses="matlab")


def test_licenses_that_are_held_stay_configured(floor: Floor) -> None:
    """A site has fewer from now on than its jobs hold; more, or just as many, it may have."""
    job_id = floor.submit(licenses="matlab:3")
    floor.cycle()
    before = floor.state.index
    refused = floor.cluster.ask(Reconfigure((conf("Licenses=matlab:2,ansys:2\n"),)))
    assert isinstance(refused, Rejection)
    assert refused.text.endswith(
        "hold 3 of licence 'matlab' and there would be 2; nothing was changed"
    )
    assert floor.state.index == before
    taken = floor.cluster.ask(Reconfigure((conf("Licenses=matlab:3\n"),)))
    assert isinstance(taken, Configured)
    assert floor.cluster.ask(ListLicenses()) == LicenseList((LicenseInfo("matlab", 3, 3),))
    assert floor.given(job_id)


def test_a_file_whose_licenses_can_t_be_read_is_refused(floor: Floor) -> None:
    """A slip in a count."""
    refused = floor.cluster.ask(Reconfigure((conf("Licenses=matlab:x\n"),)))
    assert isinstance(refused, Rejection)
    assert "'matlab:x' is no licence with its count" in refused.text


def test_why_tells_how_many_are_free(floor: Floor) -> None:
    """One of four is free; two are asked."""
    floor.submit(licenses="matlab:3")
    job_id = floor.submit(licenses="matlab:2,ansys")
    floor.cycle()
    told = floor.cluster.ask(ExplainJob(job_id, None))
    assert isinstance(told, JobExplained)
    (row,) = (row for row in told.verdicts if row.filter == "licences")
    assert (row.asked, row.available, row.reason) == (
        "matlab:2,ansys",
        "1 of matlab, 2 of ansys",
        Reason.LICENSES,
    )


def test_a_state_that_gave_too_many_is_noticed(floor: Floor) -> None:
    """The configuration is changed behind the back of what guards it."""
    floor.submit(licenses="matlab:3")
    floor.cycle()
    row = floor.state.config[1]
    floor.state.config.put(1, replace(row, parameters=()))
    with pytest.raises(InvariantBroken, match="there are 0 of licence 'matlab' and 3 are held"):
        check_invariants(floor.state)
