"""A batch script, judged without running it: each of its directives, then all of them together."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator
from typing import NamedTuple

from spur.migrate.calls import ABSENT, Call, calls_in, unset_variables
from spur.migrate.report import Note, ScriptReport, Severity
from spur.slurm.directives import (
    DIRECTIVE,
    OpenQuote,
    directive_words,
    numbered_directives,
    refuse_script,
)
from spur.slurm.foreign import foreign_words
from spur.slurm.getopt import Given, parse_arguments
from spur.slurm.hetoptions import BETWEEN, inherited, split_components
from spur.slurm.layers import Layer, layer_of
from spur.slurm.optionrows import Effect
from spur.slurm.options import NOT_YET, OPTIONS
from spur.slurm.submission import Settings, Submission, merge, submission_of
from spur.slurm.timespec import Calendar
from spur.slurm.wording import SlurmError

__all__ = ["Judge", "check_script"]

Judge = Callable[[Submission], str]
"""Returns why a cluster would not take a submission; nothing when it would."""

_SHELLS = ("sh", "bash", "dash", "ksh", "zsh", "ash")

_MENDS = {
    "DOS line breaks": "sed -i 's/\\r$//' FILE",
    "interpreter": "#!/bin/bash as its first line",
    "empty": "a script with a command",
    "whitespace": "a script with a command",
    "NULL": "a script without the byte 0",
}
"""What to do about a script that is none, by a word of Slurm's sentence."""


class _Line(NamedTuple):
    """One directive that can be read."""

    number: int
    words: list[str]


def check_script(
    name: str, content: bytes, *, calendar: Calendar, judge: Judge | None = None
) -> ScriptReport:
    """Return what becomes of a script; `judge` speaks for a cluster, where there is one."""
    refused = refuse_script(content)
    if refused:
        sentence = " ".join(refused)
        instead = next((text for word, text in _MENDS.items() if word in sentence), "")
        return ScriptReport(name, (Note(1, Severity.FAILS, sentence, instead),))
    text = content.decode("utf-8", "surrogateescape")
    notes: list[Note] = []
    lines = list(_directives(text, notes))
    if not any(note.severity is Severity.FAILS for note in notes):
        notes += _together(name, text, lines, calendar, judge)
    commands: tuple[str, ...] = ()
    lacking: list[str] = []
    if _is_shell(text):
        calls = list(calls_in(text))
        commands = tuple(sorted({call.command for call in calls}))
        for call in calls:
            notes += _judge_call(call, lacking)
    for variable, line in unset_variables(text).items():
        lacking.append(variable)
        what = f"{variable} is not set for jobs"
        notes.append(Note(line, Severity.DIFFERS, what, "another of the job's variables"))
    notes += _late_directives(text)
    ordered = sorted(dict.fromkeys(notes), key=lambda note: note.line)
    return ScriptReport(name, tuple(ordered), commands, tuple(sorted(set(lacking))))


def _is_shell(text: str) -> bool:
    first = text.split("\n", 1)[0].removeprefix("#!").split()
    names = [word.rpartition("/")[2] for word in first]
    return any(word in _SHELLS for word in names)


# -- directives


def _directives(text: str, notes: list[Note]) -> Iterator[_Line]:
    """Yield the directives that can be read; say what is wrong with the others."""
    try:
        foreign = foreign_words(text)
    except OpenQuote as error:
        notes.append(Note(0, Severity.FAILS, str(error), "the other quote"))
        foreign = []
    if foreign:
        yield _Line(0, foreign)
    for number, line in numbered_directives(text):
        try:
            words = directive_words(line)
        except OpenQuote as error:
            notes.append(Note(number, Severity.FAILS, str(error), "the other quote"))
            continue
        if _options(number, words, notes):
            yield _Line(number, words)


def _options(number: int, words: list[str], notes: list[Note]) -> bool:
    """Judge one directive by itself; return whether it can be read."""
    parts, _ = split_components(words)
    is_right = True
    for part in parts:
        given = _given("sbatch", number, part, notes)
        if given is None:
            return False
        for option in given:
            is_right = _judge_option("sbatch", number, option, notes) and is_right
    return is_right


def _given(
    command: str, number: int, words: list[str], notes: list[Note], *, is_call: bool = False
) -> list[Given] | None:
    try:
        given, others = parse_arguments(
            words, OPTIONS[command], program=command, stops_at_word=is_call
        )
    except SlurmError as error:
        notes.append(Note(number, Severity.FAILS, error.lines[0], _near(command, error.lines[0])))
        return None
    if others and not is_call:
        what = f"Invalid directive found in batch script: {others[0]}"
        notes.append(Note(number, Severity.FAILS, what, f"an option, or quotes round {others[0]}"))
        return None
    return given


def _judge_option(command: str, number: int, option: Given, notes: list[Note]) -> bool:
    row, value = option
    shown = f"--{row.long}" if row.long else f"-{row.short}"
    if row.effect is Effect.ACCEPTED:
        notes.append(Note(number, Severity.DIFFERS, f"{shown} has no effect: {row.why}"))
    if row.effect is Effect.REFUSED:
        what = f"{shown} is refused: {row.why}"
        notes.append(Note(number, Severity.FAILS, what, f"the script without {shown}"))
        return False
    if value is not None and ("$" in value or "`" in value):
        return True
    try:
        layer_of([option], command)
    except SlurmError as error:
        notes.append(Note(number, Severity.FAILS, error.lines[0]))
        return False
    return True


def _near(command: str, sentence: str) -> str:
    """Return the option that was probably meant."""
    if "unrecognized option" not in sentence:
        return ""
    word = sentence.partition("'--")[2].rstrip("'").partition("=")[0]
    names = [row.long for row in OPTIONS[command] if row.long]
    near = difflib.get_close_matches(word, names, n=1)
    return f"--{near[0]}" if near else "the script without it"


def _late_directives(text: str) -> Iterator[Note]:
    """Yield the directives below the first command, which nobody reads."""
    read = {number for number, _ in numbered_directives(text)}
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith(DIRECTIVE) and number not in read:
            what = "a directive below the first command is not read, here or in Slurm"
            yield Note(number, Severity.REMARK, what, "it above the first command")


def _together(
    name: str, text: str, lines: list[_Line], calendar: Calendar, judge: Judge | None
) -> Iterator[Note]:
    """Judge all directives as one submission, or as the components of one."""
    words = [word for line in lines for word in line.words]
    parts, _ = split_components(words)
    nothing = Layer({}, {})
    settings: list[Settings] = []
    try:
        for part in parts:
            given, _ = parse_arguments(part, OPTIONS["sbatch"], program="sbatch")
            own = merge(layer_of(given, "sbatch"), nothing, nothing, "sbatch")
            settings.append(inherited(settings[-1], own, OPTIONS["sbatch"]) if settings else own)
        submissions = [
            submission_of(
                each,
                program="sbatch",
                default_name=name,
                argv=(name.encode("utf-8", "surrogateescape"),),
                working_directory=b"/",
                calendar=calendar,
            )
            for each in settings
        ]
    except SlurmError as error:
        yield Note(0, Severity.FAILS, error.lines[0])
        return
    for submission in submissions:
        for warning in submission.warnings:
            yield Note(0, Severity.REMARK, warning)
        refused = judge(submission) if judge is not None else ""
        if refused:
            yield Note(_line_of(lines, submission, refused), Severity.FAILS, refused)


_SAID_BY = {
    "partition": ("partition",),
    "time limit": ("time", "deadline"),
    "feature": ("constraint", "prefer"),
    "account": ("account",),
    "qos": ("qos",),
    "license": ("licenses",),
    "array": ("array",),
    "node": ("nodes", "nodelist", "gres", "mem", "ntasks", "gpus"),
    "processors": ("ntasks", "cpus-per-task"),
    "emory": ("mem", "mem-per-cpu", "mem-per-gpu"),
}
"""By a word of a refusal: the options that it is probably about."""


def _line_of(lines: list[_Line], submission: Submission, sentence: str) -> int:
    """Return the directive that a refusal is about; 0 where none can be named."""
    for word, names in _SAID_BY.items():
        if word not in sentence:
            continue
        for line in lines:
            given, _ = parse_arguments(
                [word for word in line.words if word != BETWEEN],
                OPTIONS["sbatch"],
                program="sbatch",
            )
            if any(row.long in names for row, _ in given):
                return line.number
    return 0


# -- the body


def _judge_call(call: Call, lacking: list[str]) -> Iterator[Note]:
    notes: list[Note] = []
    if call.command in ABSENT:
        lacking.append(call.command)
        yield Note(call.line, Severity.FAILS, f"{call.command} is not there", ABSENT[call.command])
        return
    if call.command in NOT_YET:
        lacking.append(call.command)
        yield Note(call.line, Severity.FAILS, f"{call.command} is not there yet")
        return
    words = [word for word in call.words if not word.startswith("$")]
    given = _given(call.command, call.line, words, notes, is_call=True)
    for option in given or ():
        _judge_option(call.command, call.line, option, notes)
    yield from notes
