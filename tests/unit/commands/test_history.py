"""What of others' history a user may ask for."""

from __future__ import annotations

from spur.commands.decide import Context
from spur.commands.history import narrow
from spur.events.envelope import Actor
from spur.testing.builders import ADMIN, SMALL_CONFIG, Cluster, actor
from spur.testing.hall import submission
from spur.values.config import ConfigFile
from spur.values.errors import ERROR_CODES, Rejection
from spur.values.ids import JobId
from spur.wire.cluster import Reconfigure
from spur.wire.declare import Request
from spur.wire.history import QueryRecords, ReadStory, RecordFilter
from spur.wire.jobs import JobAccepted, JobFilter, JobPage, QueryJobs, page_views
from spur.wire.why import ExplainJob

PRIVATE = """
ClusterName=hall
SlurmctldHost=ctl
PrivateData=jobs,usage
NodeName=n[1-4] CPUs=4 RealMemory=4000
PartitionName=gpu Nodes=n[1-4] Default=YES
"""


def private() -> Cluster:
    """Return a cluster whose users' jobs are private."""
    cluster = Cluster()
    outcome = cluster.ask(Reconfigure((ConfigFile("slurm.conf", PRIVATE),)))
    assert not isinstance(outcome, Rejection), outcome
    return cluster


def narrowed(cluster: Cluster, request: Request, by: Actor) -> Request | Rejection:
    state = cluster.state
    return narrow(state, request, Context(now_ns=state.time_ns, index=state.index, actor=by))


def query(*, uids: tuple[int, ...] = ()) -> QueryRecords:
    return QueryRecords(RecordFilter(uids=uids), JobId(0), 100)


def test_everybody_sees_all_records_where_nothing_is_private() -> None:
    """A user looks at what a colleague's jobs took, as most sites allow."""
    cluster = Cluster()
    cluster.configure(SMALL_CONFIG)
    for asked in (query(), query(uids=(1002,)), ReadStory(JobId(7), 0, 10)):
        assert narrowed(cluster, asked, actor(1001)) == asked


def test_private_jobs_are_shown_to_their_owner_alone() -> None:
    """PrivateData=jobs: a user asks for all jobs, and for a colleague's."""
    cluster = private()
    assert narrowed(cluster, query(), actor(1001)) == query(uids=(1001,))
    assert narrowed(cluster, query(uids=(1002, 1001)), actor(1001)) == query(uids=(1001,))
    nobody = narrowed(cluster, query(uids=(1002,)), actor(1001))
    assert nobody == query(uids=(-1,))
    story = narrowed(cluster, ReadStory(JobId(7), 0, 10), actor(1001))
    assert story == ReadStory(JobId(7), 0, 10, (1001,))


def test_administrators_see_private_jobs() -> None:
    """PrivateData=jobs: root asks for all jobs."""
    assert narrowed(private(), query(), ADMIN) == query()


def test_users_can_not_say_whose_story_they_may_read() -> None:
    """Someone writes a request by hand that names every user."""
    story = ReadStory(JobId(7), 0, 10, (1001, 1002))
    assert narrowed(private(), story, actor(1001)) == ReadStory(JobId(7), 0, 10, (1001,))


def test_pages_have_a_size() -> None:
    """Someone asks for no rows, or for more than a page may hold."""
    cluster = Cluster()
    cluster.configure(SMALL_CONFIG)
    for asked in (
        QueryRecords(RecordFilter(), JobId(0), 0),
        QueryRecords(RecordFilter(), JobId(0), 1_001),
        ReadStory(JobId(7), 0, 0),
    ):
        refused = narrowed(cluster, asked, ADMIN)
        assert isinstance(refused, Rejection)
        assert refused.code == "invalid-value"
        assert refused.code in ERROR_CODES


def test_hosts_that_vouch_for_nobody_get_no_history() -> None:
    """A host that was removed goes on asking."""
    refused = narrowed(private(), query(), actor(1001, host_role="login", host_id=99))
    assert isinstance(refused, Rejection)
    assert refused.code == "not-permitted"


def test_the_queue_shows_private_jobs_to_their_owner_alone() -> None:
    """PrivateData=jobs: a user lists the queue, a colleague's jobs, and asks why one waits."""
    cluster = private()
    mine = cluster.ask(submission(), actor(1001))
    theirs = cluster.ask(submission(), actor(1002))
    assert isinstance(mine, JobAccepted)
    assert isinstance(theirs, JobAccepted)

    def shown(by: Actor, *uids: int) -> list[JobId]:
        page = cluster.ask(QueryJobs(JobFilter(uids=uids), JobId(0), 100), by)
        assert isinstance(page, JobPage)
        return [view.job_id for view in page_views(page)]

    assert shown(actor(1001)) == [mine.job_id]
    assert shown(actor(1001), 1002) == []
    assert shown(ADMIN) == [mine.job_id, theirs.job_id]
    refused = cluster.ask(ExplainJob(theirs.job_id, None), actor(1001))
    assert isinstance(refused, Rejection)
    assert refused.code == "unknown-job"
    assert not isinstance(cluster.ask(ExplainJob(mine.job_id, None), actor(1001)), Rejection)
