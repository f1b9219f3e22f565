"""State: every table of the cluster, and how far along the log it is.

One line per table, after the indexes that it keeps; a row's type lives in its subject's file.
Importing this module imports every subject, and so registers every arm of `apply`, every
reaction, due time and invariant.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from spur.events.envelope import chain_genesis
from spur.projections import (
    dispatch,
    hetjobs,
    jobdue,
    jobinvariants,
    mails,
    stepdispatch,
    stepdue,
    stepinvariants,
    steps,
)
from spur.projections.accounts import (
    BORN_ACCOUNTS,
    BORN_QOS,
    BORN_USERS,
    EntityRow,
    account_above,
    uid_of,
    user_in,
)
from spur.projections.agents import OutboxRow
from spur.projections.arrays import ArrayJobs
from spur.projections.attachments import BlobBytes
from spur.projections.cluster import ClusterRow, ConfigRow, HostRow, RoleKey, RoleRow, newborn
from spur.projections.counters import CounterRow
from spur.projections.crontabs import CrontabRow
from spur.projections.dependencies import (
    DependencyRow,
    awaited_ends,
    live_names,
    looks_often,
    named_jobs,
    namesakes_key,
)
from spur.projections.derived import Derived
from spur.projections.hetjobs import HetRuns
from spur.projections.indexes import (
    Counts,
    Group,
    Groups,
    Index,
    Oldest,
    Ordered,
    SortedGroup,
    SortedKeys,
    Spread,
)
from spur.projections.jobs import ArrayRow, GroupKey, GroupReasonRow, JobRow
from spur.projections.jobviews import EncodedOfAll, EncodedOfArrays, EncodedViews
from spur.projections.joining import TokenRow
from spur.projections.licenses import asked_licenses
from spur.projections.membership import MembershipRow
from spur.projections.nodes import NodeBlockRow, NodeRow, is_out, names_in_block
from spur.projections.partitions import Members, PartitionRow
from spur.projections.requests import RequestKey, RequestRow
from spur.projections.resources import Allocations
from spur.projections.runrows import PastRunsRow, RunRow, end_of, limit_of
from spur.projections.sharing import Shared
from spur.projections.steprows import StepsRow, earliest_limit
from spur.projections.tables import Journal, Table
from spur.projections.undo import UndoRecord
from spur.values.accounts import AssociationKey
from spur.values.ids import HostId, JobId, NodeName, PartitionName, TokenId

__all__ = ["REGISTERED", "State", "new_state"]

REGISTERED = (
    dispatch,
    hetjobs,
    jobdue,
    jobinvariants,
    mails,
    stepdispatch,
    stepdue,
    stepinvariants,
    steps,
)
"""Files of this room that declare no table: arms, reactions, due times and invariants."""


class State:
    """All tables and the position in the log that they stand for. Written by `apply` alone."""

    def __init__(self) -> None:
        journal = Journal()
        self.journal = journal
        #: Entries applied and not yet known to be committed, oldest first.
        self.undo: deque[UndoRecord] = deque()

        # -- position
        self.index = 0
        self.term = 0
        #: Chain value of the last entry (LOG-CONTRACT 1.7).
        self.chain = b""
        #: Stamp of the last entry that had one.
        self.time_ns = 0

        # -- tables
        self.cluster: Table[int, ClusterRow] = Table("cluster", int, ClusterRow, journal)
        self.membership: Table[int, MembershipRow] = Table(
            "membership", int, MembershipRow, journal
        )
        self.counters: Table[str, CounterRow] = Table("counters", str, CounterRow, journal)
        #: What follows from whatever priorities are made of, but for the jobs.
        self.of_priorities = Derived()
        self.encoded_views = EncodedViews()
        ranks = (self.of_priorities, EncodedOfAll(self.encoded_views))
        self.config: Table[int, ConfigRow] = Table("config", int, ConfigRow, journal, *ranks)
        self.host_of_name: Spread[HostId, HostRow] = Spread(lambda _, row: (row.name,))
        self.hosts: Table[HostId, HostRow] = Table(
            "hosts", int, HostRow, journal, self.host_of_name
        )
        self.token_of_digest: Spread[TokenId, TokenRow] = Spread(lambda _, row: (row.digest,))
        self.tokens: Table[TokenId, TokenRow] = Table(
            "tokens", int, TokenRow, journal, self.token_of_digest
        )
        self.roles: Table[RoleKey, RoleRow] = Table("roles", RoleKey, RoleRow, journal)
        self._declare_site(journal, *ranks)
        self.requests_oldest: Oldest[RequestKey, RequestRow] = Oldest(lambda _, row: row.index)
        self.requests: Table[RequestKey, RequestRow] = Table(
            "requests", RequestKey, RequestRow, journal, self.requests_oldest
        )
        self._declare_accounts(journal, *ranks)
        self._declare_jobs(journal)
        self._tables = tuple(value for value in vars(self).values() if isinstance(value, Table))

    def _declare_site(self, journal: Journal, *ranks: Index) -> None:
        """Declare nodes and partitions; `ranks` follow what ranks jobs."""
        #: What follows from configured nodes and partitions alone.
        self.of_hardware = Derived()
        self.block_of_node: Spread[str, NodeBlockRow] = Spread(names_in_block)
        self.node_blocks: Table[str, NodeBlockRow] = Table(
            "node_blocks",
            str,
            NodeBlockRow,
            journal,
            self.block_of_node,
            self.of_hardware,
            *ranks,
        )
        #: Nodes that are lost or down, whose runs are given up.
        self.nodes_out: Group[NodeName, NodeRow] = Group(is_out)
        self.nodes_of_host: Group[NodeName, NodeRow] = Group(lambda _, row: row.host_id or None)
        self.nodes: Table[NodeName, NodeRow] = Table(
            "nodes", str, NodeRow, journal, self.nodes_out, self.nodes_of_host
        )
        self.members = Members()
        self.partitions: Table[PartitionName, PartitionRow] = Table(
            "partitions", str, PartitionRow, journal, self.members, self.of_hardware, *ranks
        )

    def _declare_accounts(self, journal: Journal, *ranks: Index) -> None:
        """Declare whom and what jobs are accounted for; `ranks` follow what ranks jobs."""
        self.accounts: Table[str, EntityRow] = Table("accounts", str, EntityRow, journal)
        self.users_of_uid: Group[str, EntityRow] = Group(uid_of)
        self.users: Table[str, EntityRow] = Table(
            "users", str, EntityRow, journal, self.users_of_uid, *ranks
        )
        self.associations_of_user: Group[AssociationKey, EntityRow] = Group(user_in)
        #: Associations right under an account: of its users, and of the accounts below.
        self.associations_under: Group[AssociationKey, EntityRow] = Group(account_above)
        self.associations: Table[AssociationKey, EntityRow] = Table(
            "associations",
            AssociationKey,
            EntityRow,
            journal,
            self.associations_of_user,
            self.associations_under,
            *ranks,
        )
        self.qos: Table[str, EntityRow] = Table("qos", str, EntityRow, journal, *ranks)

    def _declare_jobs(self, journal: Journal) -> None:
        """Declare what belongs to jobs and their runs."""
        #: Equal parts of rows, kept once.
        self.shared = Shared()
        self.job_ids: SortedKeys[JobId, JobRow] = SortedKeys()
        self.jobs_of_user: SortedGroup[JobId, JobRow] = SortedGroup(lambda _, row: row.uid)
        #: By user and a digest of the name; see `namesakes_key`.
        self.namesakes: SortedGroup[JobId, JobRow] = SortedGroup(
            lambda _, row: namesakes_key(row.uid, row.spec.name)
        )
        self.jobs_by_deadline: Ordered[JobId, JobRow] = Ordered(
            lambda _, row: row.spec.deadline_ns or None
        )
        #: Jobs that ask for licences, by what they ask for.
        self.jobs_of_licenses: Group[JobId, JobRow] = Group(asked_licenses)
        self.array_jobs = ArrayJobs()
        self.job_blob_bytes = BlobBytes()
        self.jobs: Table[JobId, JobRow] = Table(
            "jobs",
            JobId,
            JobRow,
            journal,
            self.job_ids,
            self.jobs_of_user,
            self.namesakes,
            self.jobs_by_deadline,
            self.jobs_of_licenses,
            self.array_jobs,
            self.job_blob_bytes,
            self.encoded_views,
            share=self.shared.job,
        )
        self.array_blob_bytes = BlobBytes()
        #: Waiting jobs by each job or array that their conditions name.
        self.dependents_of: Groups[JobId, DependencyRow] = Groups(named_jobs)
        self.arrays: Table[JobId, ArrayRow] = Table(
            "arrays",
            JobId,
            ArrayRow,
            journal,
            self.array_blob_bytes,
            EncodedOfArrays(self.encoded_views, self.array_jobs, self.dependents_of),
        )
        #: Users' crontabs, by uid.
        self.crontabs: Table[int, CrontabRow] = Table("crontabs", int, CrontabRow, journal)
        self._declare_runs(journal)

    def _declare_runs(self, journal: Journal) -> None:
        """Declare the runs of jobs, and what keeps jobs from running."""
        #: Running runs by when their time limit is reached.
        self.runs_by_limit: Ordered[JobId, RunRow] = Ordered(limit_of)
        #: Ended runs by their end, for the purge.
        self.runs_by_end: Ordered[JobId, RunRow] = Ordered(end_of)
        #: Ids of jobs and arrays that have a run which has not ended.
        self.live: Counts[JobId, RunRow] = Counts(live_names)
        self.allocations = Allocations()
        self.het_runs = HetRuns()
        self.runs: Table[JobId, RunRow] = Table(
            "runs",
            JobId,
            RunRow,
            journal,
            self.runs_by_limit,
            self.runs_by_end,
            self.live,
            self.allocations,
            self.het_runs,
            self.encoded_views,
        )
        #: Waiting jobs by the job or array whose end they wait for.
        self.dependents: Groups[JobId, DependencyRow] = Groups(awaited_ends)
        #: Waiting jobs that no end of a whole job frees.
        self.restless_dependents: Group[JobId, DependencyRow] = Group(looks_often)
        self.dependencies: Table[JobId, DependencyRow] = Table(
            "dependencies",
            JobId,
            DependencyRow,
            journal,
            self.dependents,
            self.restless_dependents,
            self.dependents_of,
            self.encoded_views,
        )
        #: Jobs by when the first of their steps reaches its own time limit.
        self.steps_by_limit: Ordered[JobId, StepsRow] = Ordered(earliest_limit)
        self.steps: Table[JobId, StepsRow] = Table(
            "steps", JobId, StepsRow, journal, self.steps_by_limit
        )
        self.past_runs: Table[JobId, PastRunsRow] = Table("past-runs", JobId, PastRunsRow, journal)
        self.reasons: Table[GroupKey, GroupReasonRow] = Table(
            "reasons", GroupKey, GroupReasonRow, journal
        )
        self.outboxes: Table[NodeName, OutboxRow] = Table("outboxes", NodeName, OutboxRow, journal)

    def tables(self) -> tuple[Table[Any, Any], ...]:
        """Return every table in order of declaration."""
        return self._tables

    @property
    def checkpoint_index(self) -> int:
        """The entry of the last checkpoint; 0 before the first."""
        return self.cluster[1].checkpoint_index

    @property
    def unsettled(self) -> int:
        """How many rows the running digests do not count as they are now."""
        return sum(table.unsettled for table in self.tables())


def new_state(genesis: bytes, *, cluster_id: bytes, incarnation: int) -> State:
    """Return the state before entry 1 of a cluster born with this genesis record."""
    state = State()
    state.chain = chain_genesis(genesis)
    state.cluster.fill({1: newborn(cluster_id, incarnation)})
    state.accounts.fill(dict(BORN_ACCOUNTS))
    state.users.fill(dict(BORN_USERS))
    state.qos.fill(dict(BORN_QOS))
    return state
