"""The fields of sacct, as one table: name, width, and what jobs and steps show.

Source: sacct(1) Job Accounting Fields; transcripts of Slurm 22.05.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from functools import partial
from typing import NamedTuple

from spur.slurm.columns import recordline as of
from spur.slurm.columns.recordline import RecordLine
from spur.values.steps import STEP_ID_MAX

__all__ = [
    "BRIEF_FORMAT",
    "BY_NAME",
    "DEFAULT_FORMAT",
    "FIELDS",
    "LONG_FORMAT",
    "Cut",
    "Field",
]


class Cut(IntEnum):
    """What becomes of a value that is wider than its column."""

    WITH_PLUS = 0
    """It is cut and ends in a plus."""
    PLAIN = 1
    """It is cut."""
    NEVER = 2


Value = Callable[[RecordLine], str]


class Field(NamedTuple):
    """One field."""

    name: str
    """As the manual page spells it; case does not matter."""
    width: int
    """Negative puts it to the left."""
    job: Value
    step: Value
    cut: Cut = Cut.WITH_PLUS
    is_listed: bool = True
    """Whether --helpformat and ALL know it; fields of later releases than the transcripts' do not
    change what those print."""


def _is(text: str) -> Value:
    return lambda line: text


_NOTHING = _is("")
_ZERO = _is("0")
_NO_TIME = _is("00:00:00")
_UNKNOWN = _is("Unknown")


def _same(name: str, width: int, value: Value, cut: Cut = Cut.WITH_PLUS) -> Field:
    """Return a field that jobs and steps show alike."""
    return Field(name, width, value, value, cut)


def _of_job(name: str, width: int, value: Value, cut: Cut = Cut.WITH_PLUS) -> Field:
    """Return a field that steps do not have."""
    return Field(name, width, value, _NOTHING, cut)


def _unmeasured(name: str, width: int) -> Field:
    """Return a field of what nobody measures so far: it is as empty as Slurm's before the end."""
    return Field(name, width, _NOTHING, _NOTHING)


def _frequency(name: str, width: int) -> Field:
    return Field(name, width, _UNKNOWN, _step_frequency)


def _step_frequency(line: RecordLine) -> str:
    """Return the frequency asked for a step: none for those that nobody asked for."""
    return "0" if line.step is not None and line.step.step > STEP_ID_MAX else "Unknown"


_later = partial(Field, is_listed=False)
_PLAIN, _NEVER = Cut.PLAIN, Cut.NEVER

FIELDS: tuple[Field, ...] = (
    _same("Account", 10, lambda line: line.job.spec.account),
    _unmeasured("AdminComment", 15),
    _same("AllocCPUS", 10, of.alloc_cpus, _NEVER),
    _same("AllocNodes", 10, of.alloc_nodes),
    _same("AllocTRES", 10, of.alloc_tres),
    _same("AssocID", 7, _ZERO, _NEVER),
    _unmeasured("AveCPU", 10),
    Field("AveCPUFreq", 10, _NOTHING, _ZERO),
    _unmeasured("AveDiskRead", 14),
    _unmeasured("AveDiskWrite", 14),
    _unmeasured("AvePages", 10),
    _unmeasured("AveRSS", 10),
    _unmeasured("AveVMSize", 10),
    _unmeasured("BlockID", 16),
    _same("Cluster", 10, lambda line: line.cluster),
    _of_job("Comment", 14, of.comment),
    _of_job("Constraints", 19, lambda line: line.job.spec.ask.features),
    _same("ConsumedEnergy", 14, _ZERO),
    _same("ConsumedEnergyRaw", 17, _ZERO, _NEVER),
    _unmeasured("Container", 19),
    _same("CPUTime", 10, of.cpu_time),
    _same("CPUTimeRAW", 10, of.cpu_time_raw, _NEVER),
    _same("DBIndex", -10, lambda line: str(line.run.index), _NEVER),
    _of_job("DerivedExitCode", 15, of.derived_exit_code),
    _same("Elapsed", 10, of.elapsed, _NEVER),
    _same("ElapsedRaw", 10, of.elapsed_raw, _NEVER),
    _same("Eligible", 19, of.eligible, _PLAIN),
    _same("End", 19, of.end, _PLAIN),
    _later("Exclusive", 10, of.exclusive, _NOTHING),
    _same("ExitCode", 8, of.exit_code),
    _later("Extra", 14, _NOTHING, _NOTHING),
    _later("FailedNode", 14, _NOTHING, _NOTHING),
    _of_job("Flags", 19, of.flags),
    _of_job("GID", 6, lambda line: str(line.job.gid), _NEVER),
    _of_job("Group", 9, lambda line: line.group(line.job.gid)),
    _same("JobID", -12, of.job_id),
    _same("JobIDRaw", -12, of.raw_job_id),
    _same("JobName", 10, of.job_name),
    _same("Layout", 9, of.layout),
    _later("Licenses", 20, lambda line: line.job.spec.ask.licenses, _NOTHING),
    _unmeasured("MaxDiskRead", 12),
    _unmeasured("MaxDiskReadNode", 15),
    _unmeasured("MaxDiskReadTask", 15),
    _unmeasured("MaxDiskWrite", 12),
    _unmeasured("MaxDiskWriteNode", 16),
    _unmeasured("MaxDiskWriteTask", 16),
    _unmeasured("MaxPages", 8),
    _unmeasured("MaxPagesNode", 12),
    _unmeasured("MaxPagesTask", 14),
    _unmeasured("MaxRSS", 10),
    _unmeasured("MaxRSSNode", 10),
    _unmeasured("MaxRSSTask", 10),
    _unmeasured("MaxVMSize", 10),
    _unmeasured("MaxVMSizeNode", 14),
    _unmeasured("MaxVMSizeTask", 14),
    _unmeasured("McsLabel", 12),
    _unmeasured("MinCPU", 10),
    _unmeasured("MinCPUNode", 10),
    _unmeasured("MinCPUTask", 10),
    _same("NCPUS", 10, of.alloc_cpus, _NEVER),
    _same("NNodes", 8, of.nodes),
    _same("NodeList", 15, of.node_list),
    _same("NTasks", 8, of.step_tasks),
    _later("OriginalSLUID", 14, _NOTHING, _NOTHING),
    _later("OverSubscribe", 13, of.over_subscribe, _NOTHING),
    _of_job("Partition", 10, of.partition),
    _later("Planned", 10, of.reserved, _NOTHING),
    _later("PlannedCPU", 10, of.reserved_cpu, _NOTHING),
    _later("PlannedCPURAW", 13, of.reserved_cpu_raw, _NOTHING),
    _of_job("Priority", 10, of.priority),
    _of_job("QOS", 10, lambda line: line.job.spec.qos),
    _of_job("QOSRAW", 6, _ZERO, _NEVER),
    _later("QOSREQ", 10, lambda line: line.job.spec.qos, _NOTHING),
    _of_job("Reason", 22, of.reason),
    _frequency("ReqCPUFreq", 10),
    _frequency("ReqCPUFreqGov", 13),
    _frequency("ReqCPUFreqMax", 13),
    _frequency("ReqCPUFreqMin", 13),
    _same("ReqCPUS", 8, of.requested_cpus, _NEVER),
    _of_job("ReqMem", 10, of.memory_asked),
    _same("ReqNodes", 8, of.requested_nodes),
    _later("ReqReservation", 20, lambda line: line.job.spec.ask.reservation, _NOTHING),
    _of_job("ReqTRES", 10, of.requested_tres),
    _of_job("Reservation", 20, lambda line: line.job.spec.ask.reservation),
    _unmeasured("ReservationId", 8),
    _of_job("Reserved", 10, of.reserved),
    _later("Restarts", 8, of.restarts, _NOTHING),
    _of_job("ResvCPU", 10, of.reserved_cpu),
    _of_job("ResvCPURAW", 10, of.reserved_cpu_raw, _NEVER),
    _later("SegmentSize", 11, _ZERO, _NOTHING),
    _later("SLUID", 14, _NOTHING, _NOTHING),
    _same("Start", 19, of.start, _PLAIN),
    _same("State", 10, of.state),
    _later("StdErr", 20, of.stderr_path, _NOTHING),
    _later("StdIn", 20, of.stdin_path, _NOTHING),
    _later("StdOut", 20, of.stdout_path, _NOTHING),
    _same("Submit", 19, of.submit, _PLAIN),
    _of_job("SubmitLine", 20, of.submit_line),
    _same("Suspended", 10, of.suspended, _NEVER),
    _unmeasured("SystemComment", 15),
    _same("SystemCPU", 10, _NO_TIME),
    _of_job("Timelimit", 10, of.time_limit),
    _of_job("TimelimitRaw", 10, of.time_limit_raw),
    _same("TotalCPU", 10, _NO_TIME),
    _unmeasured("TRESUsageInAve", 14),
    _unmeasured("TRESUsageInMax", 14),
    _unmeasured("TRESUsageInMaxNode", 18),
    _unmeasured("TRESUsageInMaxTask", 18),
    _unmeasured("TRESUsageInMin", 14),
    _unmeasured("TRESUsageInMinNode", 18),
    _unmeasured("TRESUsageInMinTask", 18),
    _unmeasured("TRESUsageInTot", 14),
    _unmeasured("TRESUsageOutAve", 15),
    _unmeasured("TRESUsageOutMax", 15),
    _unmeasured("TRESUsageOutMaxNode", 19),
    _unmeasured("TRESUsageOutMaxTask", 19),
    _unmeasured("TRESUsageOutMin", 15),
    _unmeasured("TRESUsageOutMinNode", 19),
    _unmeasured("TRESUsageOutMinTask", 19),
    _unmeasured("TRESUsageOutTot", 15),
    _of_job("UID", 6, lambda line: str(line.job.uid), _NEVER),
    _of_job("User", 9, lambda line: line.user(line.job.uid)),
    _same("UserCPU", 10, _NO_TIME),
    _unmeasured("WCKey", 10),
    _of_job("WCKeyID", 10, _ZERO, _NEVER),
    _of_job("WorkDir", 20, of.working_directory),
)
"""In the order of --helpformat."""

BY_NAME: dict[str, Field] = {field.name.lower(): field for field in FIELDS}

DEFAULT_FORMAT = "jobid,jobname,partition,account,alloccpus,state,exitcode"
BRIEF_FORMAT = "jobid,state,exitcode"
LONG_FORMAT = (
    "jobid,jobidraw,jobname,partition,maxvmsize,maxvmsizenode,maxvmsizetask,avevmsize,maxrss,"
    "maxrssnode,maxrsstask,averss,maxpages,maxpagesnode,maxpagestask,avepages,mincpu,mincpunode,"
    "mincputask,avecpu,ntasks,alloccpus,elapsed,state,exitcode,avecpufreq,reqcpufreqmin,"
    "reqcpufreqmax,reqcpufreqgov,reqmem,consumedenergy,maxdiskread,maxdiskreadnode,"
    "maxdiskreadtask,avediskread,maxdiskwrite,maxdiskwritenode,maxdiskwritetask,avediskwrite,"
    "reqtres,alloctres,tresusageinave,tresusageinmax,tresusageinmaxnode,tresusageinmaxtask,"
    "tresusageinmin,tresusageinminnode,tresusageinmintask,tresusageintot,tresusageoutmax,"
    "tresusageoutmaxnode,tresusageoutmaxtask,tresusageoutave,tresusageouttot"
)
