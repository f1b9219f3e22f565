"""Why a peer breaks a rule: read in its source, beside the evidence that a run gives."""

from __future__ import annotations

__all__ = ["CAUSES"]

_VOTE = "a follower's start wipes its vote (`Follower.init_storage`), restart or not"
_NO_NOOP = (
    "a new leader appends nothing of its own term and stops counting at the first entry of an "
    "older one (`Leader.update_commit_index`), so an entry left over blocks every later one"
)
_ONE_FUTURE = "one `apply_future` serves all callers; the next call overwrites it"
_UDP = "an entry travels in one datagram, encrypted to four thirds: above about 48 KiB, EMSGSIZE"
_NO_SYNC = "storage.py writes and never syncs"

CAUSES = {
    ("raftos", "test_single_node_commits"): "a candidate leads only when a vote of another arrives",
    ("raftos", "test_concurrent_appends_get_their_own_answers"): _ONE_FUTURE,
    ("raftos", "test_large_entry_commits"): _UDP,
    ("raftos", "test_killed_leader_is_replaced"): _NO_NOOP,
    ("raftos", "test_leader_killed_under_load_loses_nothing"): (
        f"before the kill, {_ONE_FUTURE}; after it, {_NO_NOOP}; what strikes first varies"
    ),
    ("raftos", "test_whole_cluster_restarts"): _NO_NOOP,
    ("raftos", "test_frozen_majority_acknowledges_nothing"): _NO_NOOP,
    (
        "raftos",
        "test_half_is_no_majority",
    ): "`is_majority` halves the count of peers, without itself",
    ("raftos", "test_frozen_leader_is_not_believed_afterwards"): _NO_NOOP,
    ("raftos", "test_acknowledged_data_is_on_disk"): _NO_SYNC,
    ("raftos", "test_flipped_bit_is_noticed"): "the log is lines of JSON without a checksum",
    ("raftos", "test_torn_last_write_is_survived"): "`Log.read` decodes every line or raises",
    ("raftos", "test_restarted_voter_keeps_its_vote"): _VOTE,
    ("raftos", "test_late_append_takes_nothing_back"): (
        "a follower cuts its log whenever the append does not end where the log does, conflict or "
        "not (`Follower.on_receive_append_entries`)"
    ),
    ("pysyncobj", "test_acknowledged_data_is_on_disk"): (
        "the journal is a memory map that is flushed only when the node is closed (journal.py)"
    ),
    ("pysyncobj", "test_flipped_bit_is_noticed"): "journal records carry no checksum",
    ("pysyncobj", "test_torn_last_write_is_survived"): (
        "the torn record is taken for an entry; it fails to decode, and is tried again for ever"
    ),
    ("pysyncobj", "test_late_append_takes_nothing_back"): (
        "a follower deletes all behind `prevLogIdx` of any append, conflict or not, and a late "
        "refusal makes the leader send old batches again (`__onMessageReceived`)"
    ),
}
"""(engine, test function) -> cause; a failure without one is published with its evidence alone."""
