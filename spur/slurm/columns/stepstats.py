"""The fields of sstat: what the steps that run use.

Nobody measures them so far: they show what Slurm shows of a step that used nothing yet.
Source: sstat(1) --format; transcripts of Slurm 22.05.
"""

from __future__ import annotations

from spur.slurm.columns.steps import StepLine, full_name
from spur.slurm.sheets import SheetField
from spur.values.hostlist import format_hostlist

__all__ = ["DEFAULT_FORMAT", "LISTED", "PIDS_FORMAT", "STAT_FIELDS"]

_TIMES = "cpu=00:00:00,energy=0,fs/disk=0,mem=0,pages=0,vmem=0"
_OUTS = "energy=0,fs/disk=0"


def _first(line: StepLine) -> str:
    return line.shares[0].node if line.shares else ""


def _nodes_of(names: str) -> SheetField[StepLine]:
    kinds = ("cpu", "energy", "fs/disk", "mem", "pages", "vmem") if "In" in names else (
        "energy",
        "fs/disk",
    )  # fmt: skip
    return SheetField(
        names,
        len(names),
        lambda line: ",".join(f"{kind}={_first(line)}" for kind in kinds),
    )


def _is(name: str, width: int, text: str) -> SheetField[StepLine]:
    return SheetField(name, width, lambda line: text)


def _node(name: str, width: int) -> SheetField[StepLine]:
    return SheetField(name, width, _first)


def _asked_frequency(name: str) -> SheetField[StepLine]:
    width = 13 if name != "ReqCPUFreq" else 10
    return SheetField(
        name, width, lambda line: "Unknown" if line.step_id >= 0 and line.cpus else "0"
    )


_IN_TASKS = "cpu=0,fs/disk=0,mem=0,pages=0,vmem=0"

STAT_FIELDS: tuple[SheetField[StepLine], ...] = (
    _is("AllocTRES", 10, ""),
    _is("AveCPU", 10, "00:00:00"),
    _is("AveCPUFreq", 10, "0"),
    _is("AveDiskRead", 12, "0"),
    _is("AveDiskWrite", 12, "0"),
    _is("AvePages", 10, "0"),
    _is("AveRSS", 10, "0"),
    _is("AveVMSize", 10, "0"),
    _is("ConsumedEnergy", 14, "0"),
    _is("ConsumedEnergyRaw", 17, "0"),
    SheetField("JobID", -12, full_name),
    _is("MaxDiskRead", 12, "0"),
    _node("MaxDiskReadNode", 15),
    _is("MaxDiskReadTask", 15, "0"),
    _is("MaxDiskWrite", 12, "0"),
    _node("MaxDiskWriteNode", 16),
    _is("MaxDiskWriteTask", 16, "0"),
    _is("MaxPages", 8, "0"),
    _node("MaxPagesNode", 12),
    _is("MaxPagesTask", 14, "0"),
    _is("MaxRSS", 10, "0"),
    _node("MaxRSSNode", 10),
    _is("MaxRSSTask", 10, "0"),
    _is("MaxVMSize", 10, "0"),
    _node("MaxVMSizeNode", 14),
    _is("MaxVMSizeTask", 14, "0"),
    _is("MinCPU", 10, "00:00:00"),
    _node("MinCPUNode", 10),
    _is("MinCPUTask", 10, "0"),
    SheetField("Nodelist", 20, lambda line: format_hostlist(s.node for s in line.shares)),
    SheetField("NTasks", 8, lambda line: str(line.tasks)),
    _is("Pids", 20, ""),
    _asked_frequency("ReqCPUFreq"),
    _asked_frequency("ReqCPUFreqMin"),
    _asked_frequency("ReqCPUFreqMax"),
    _asked_frequency("ReqCPUFreqGov"),
    _is("SLUID", 14, ""),
    _is("TRESUsageInAve", 14, _TIMES),
    _is("TRESUsageInMax", 14, _TIMES),
    _nodes_of("TRESUsageInMaxNode"),
    _is("TRESUsageInMaxTask", 18, _IN_TASKS),
    _is("TRESUsageInMin", 14, _TIMES),
    _nodes_of("TRESUsageInMinNode"),
    _is("TRESUsageInMinTask", 18, _IN_TASKS),
    _is("TRESUsageInTot", 14, _TIMES),
    _is("TRESUsageOutAve", 15, _OUTS),
    _is("TRESUsageOutMax", 15, _OUTS),
    _nodes_of("TRESUsageOutMaxNode"),
    _is("TRESUsageOutMaxTask", 19, "fs/disk=0"),
    _is("TRESUsageOutMin", 15, _OUTS),
    _nodes_of("TRESUsageOutMinNode"),
    _is("TRESUsageOutMinTask", 19, "fs/disk=0"),
    _is("TRESUsageOutTot", 15, _OUTS),
)

LISTED = tuple(field.name for field in STAT_FIELDS if field.name not in ("AllocTRES", "SLUID"))
"""What --helpformat prints; fields of later releases than the transcripts' are left out."""

PIDS_FORMAT = "JobID,Nodelist,Pids"

DEFAULT_FORMAT = (
    "JobID,MaxVMSize,MaxVMSizeNode,MaxVMSizeTask,AveVMSize,MaxRSS,MaxRSSNode,MaxRSSTask,AveRSS,"
    "MaxPages,MaxPagesNode,MaxPagesTask,AvePages,MinCPU,MinCPUNode,MinCPUTask,AveCPU,NTasks,"
    "AveCPUFreq,ReqCPUFreqMin,ReqCPUFreqMax,ReqCPUFreqGov,ConsumedEnergy,MaxDiskRead,"
    "MaxDiskReadNode,MaxDiskReadTask,AveDiskRead,MaxDiskWrite,MaxDiskWriteNode,MaxDiskWriteTask,"
    "AveDiskWrite,TRESUsageInAve,TRESUsageInMax,TRESUsageInMaxNode,TRESUsageInMaxTask,"
    "TRESUsageInMin,TRESUsageInMinNode,TRESUsageInMinTask,TRESUsageInTot,TRESUsageOutAve,"
    "TRESUsageOutMax,TRESUsageOutMaxNode,TRESUsageOutMaxTask,TRESUsageOutMin,TRESUsageOutMinNode,"
    "TRESUsageOutMinTask,TRESUsageOutTot"
)
