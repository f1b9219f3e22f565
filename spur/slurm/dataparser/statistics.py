"""What sdiag tells as a document. Source: OpenAPI schema v0.0.41, stats_msg."""

from __future__ import annotations

from collections.abc import Callable

from spur.slurm.dataparser.parts import Document, seconds
from spur.slurm.diagnostics import calls_of
from spur.wire.statistics import Statistics

__all__ = ["statistics_document"]


def statistics_document(told: Statistics, user: Callable[[int], str]) -> Document:
    """Return the counts; one planner stands for both of Slurm's."""
    cycles = told.cycles
    count = max(cycles.count, 1)
    minutes = max((told.now_ns - told.since_ns) // 60_000_000_000, 1)
    return {
        "parts_packed": 1,
        "req_time": seconds(told.now_ns),
        "req_time_start": seconds(told.since_ns),
        "server_thread_count": 1,
        "agent_queue_size": 0,
        "agent_count": told.agents,
        "agent_thread_count": 0,
        "dbd_agent_queue_size": 0,
        "gettimeofday_latency": 0,
        "schedule_cycle_max": cycles.longest_us,
        "schedule_cycle_last": cycles.last_us,
        "schedule_cycle_sum": cycles.total_us,
        "schedule_cycle_total": cycles.count,
        "schedule_cycle_mean": cycles.total_us // count,
        "schedule_cycle_mean_depth": cycles.depth_total // count,
        "schedule_cycle_per_minute": cycles.count // minutes,
        "schedule_cycle_depth": cycles.depth_total,
        "schedule_queue_length": cycles.last_queue,
        "jobs_submitted": told.submitted,
        "jobs_started": told.started,
        "jobs_completed": told.completed,
        "jobs_canceled": told.canceled,
        "jobs_failed": told.failed,
        "jobs_pending": told.pending,
        "jobs_running": told.running,
        "job_states_ts": seconds(told.now_ns),
        **_planner(told),
        **_calls(told, user),
        "pending_rpcs": [],
        "pending_rpcs_by_hostlist": [],
    }


def _calls(told: Statistics, user: Callable[[int], str]) -> Document:
    return {
        "rpcs_by_message_type": [
            {
                "message_type": row.name,
                "type_id": row.number,
                "count": row.calls,
                "average_time": {
                    "set": True,
                    "infinite": False,
                    "number": row.mean_us,
                },
                "total_time": row.time_us,
            }
            for row in calls_of(told.requests)
        ],
        "rpcs_by_user": [
            {
                "user_id": row.uid,
                "user": user(row.uid),
                "count": row.count,
                "average_time": {
                    "set": True,
                    "infinite": False,
                    "number": row.time_us // max(row.count, 1),
                },
                "total_time": row.time_us,
            }
            for row in told.users
        ],
    }


def _planner(told: Statistics) -> Document:
    cycles = told.cycles
    count = max(cycles.count, 1)
    return {
        "bf_backfilled_jobs": cycles.passed_over,
        "bf_last_backfilled_jobs": cycles.passed_over,
        "bf_backfilled_het_jobs": 0,
        "bf_cycle_counter": cycles.count,
        "bf_cycle_mean": cycles.total_us // count,
        "bf_depth_mean": cycles.depth_total // count,
        "bf_depth_mean_try": cycles.depth_total // count,
        "bf_cycle_sum": cycles.total_us,
        "bf_cycle_last": cycles.last_us,
        "bf_cycle_max": cycles.longest_us,
        "bf_last_depth": cycles.last_depth,
        "bf_last_depth_try": cycles.last_depth,
        "bf_depth_sum": cycles.depth_total,
        "bf_depth_try_sum": cycles.depth_total,
        "bf_queue_len": cycles.last_queue,
        "bf_queue_len_mean": cycles.queue_total // count,
        "bf_queue_len_sum": cycles.queue_total,
        "bf_when_last_cycle": seconds(cycles.last_ns),
        "bf_active": False,
    }
