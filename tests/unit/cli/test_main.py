"""The `spur` command as a person meets it first."""

from __future__ import annotations

import subprocess
import sys

import pytest

from spur import __version__
from spur_cli.execute import execute
from spur_cli.main import main
from spur_cli.registry import COMMANDS, Command


def test_version_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Someone wants to know what is installed."""
    assert main(["spur", "version"]) == 0
    assert capsys.readouterr().out == f"spur {__version__}\n"


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_version_is_an_option_too(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Someone asks as one asks most programs."""
    assert main(["spur", option]) == 0
    assert capsys.readouterr().out == f"spur {__version__}\n"


def test_help_of_keywords_names_them(capsys: pytest.CaptureFixture[str]) -> None:
    """Someone asks scontrol and sacctmgr what they can do: what is not there yet is not named."""
    assert main(["spur", "scontrol", "--help"]) == 0
    assert ", hold, uhold, holdu, listjobs, listpids, liststeps," in capsys.readouterr().out
    assert main(["spur", "sacctmgr", "--help"]) == 0
    keywords = capsys.readouterr().out.splitlines()[-1]
    assert "add, create, delete, list, modify," in keywords
    assert "dump" not in keywords


def test_version_json_is_one_object(capsys: pytest.CaptureFixture[str]) -> None:
    """A script wants to know what is installed."""
    assert main(["/usr/bin/spur", "version", "--json"]) == 0
    python = ".".join(str(part) for part in sys.version_info[:3])
    assert capsys.readouterr().out == (
        f'{{\n  "version": "{__version__}",\n  "python": "{python}"\n}}\n'
    )


def test_version_parsable_is_one_line_a_field(capsys: pytest.CaptureFixture[str]) -> None:
    """A shell script cuts the fields apart at the bar."""
    assert main(["spur", "version", "--parsable"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == f"version|{__version__}"


def test_version_starts_without_what_it_does_not_need() -> None:
    """`spur version` is typed at a prompt: the heavy packages stay unread."""
    code = (
        "import sys; from spur_cli.main import main; main(['spur', 'version']);"
        "print(*sorted({'asyncio', 'msgspec', 'rich', 'dataclasses', 'sqlalchemy'}"
        " & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == f"spur {__version__}\n\n"


@pytest.mark.parametrize(
    ("redirection", "complaint", "status"),
    [
        (">/dev/full", "spur version: error: No space left on device\n", 1),
        (">&-", "", 0),
        ("<&- >&-", "", 0),
        ("2>&-", "", 0),
    ],
)
def test_output_that_goes_nowhere_is_no_crash(
    redirection: str, complaint: str, status: int
) -> None:
    """A disk is full, or a script closed what it does not want to see."""
    code = "from spur_cli.main import main; raise SystemExit(main(['spur', 'version']))"
    run = subprocess.run(
        ["sh", "-c", f'"$@" {redirection}', "sh", sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.stderr, run.returncode) == (complaint, status)


@pytest.mark.parametrize("words", [["sbatch", "/nonexistent"], ["squeue", "--nonesuch"]])
@pytest.mark.parametrize("redirection", ["2>/dev/full", ">/dev/full 2>&1", "2>&-", "2>/dev/null"])
def test_complaint_that_goes_nowhere_changes_no_status(words: list[str], redirection: str) -> None:
    """The disk of the log of a script is full."""
    code = f"from spur_cli.main import main; raise SystemExit(main({words!r}))"
    run = subprocess.run(
        ["sh", "-c", f'"$@" {redirection}', "sh", sys.executable, "-c", code],
        capture_output=True,
        check=False,
    )
    assert (run.stdout, run.stderr, run.returncode) == (b"", b"", 1)


def test_warning_that_goes_nowhere_stops_nothing() -> None:
    """What is complained of before the work is done does not keep it from being done."""
    code = (
        "import sys; from spur_cli import main as module;"
        "module._run = lambda *_: [sys.stderr.write('w' * 9_999), sys.stdout.write('done')] and 0;"
        "raise SystemExit(module.main(['spur', 'version']))"
    )
    run = subprocess.run(
        ["sh", "-c", '"$@" 2>/dev/full', "sh", sys.executable, "-c", code],
        capture_output=True,
        check=False,
    )
    assert (run.stdout, run.returncode) == (b"done", 0)


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    """Someone types `spur --help`."""
    assert main(["spur", "--help"]) == 0
    shown = capsys.readouterr().out
    assert [line for line in shown.splitlines() if line.startswith("  ")] == [
        line for line in shown.splitlines() if line.strip().startswith(_words())
    ]
    assert all(f"  {row.summary}\n" in shown for row in COMMANDS)


def _words() -> tuple[str, ...]:
    return tuple(" ".join(row.words) for row in COMMANDS)


def test_no_command_shows_the_list_as_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    """Someone types `spur` and nothing else: nothing was done, so the status is not 0."""
    assert main(["spur"]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("usage: spur COMMAND ...\n")


def test_misspelt_command_is_answered_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    """Someone types `spur verison`."""
    assert main(["spur", "verison"]) == 2
    assert capsys.readouterr().err == ("spur: no command 'verison'\nhint: did you mean version?\n")


def test_misspelt_second_word_is_answered_with_those_there_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Someone types `spur token crate`, then asks what goes with token."""
    assert main(["spur", "token", "crate"]) == 2
    assert capsys.readouterr().err == (
        "spur: no command 'token crate'\nhint: one of: token create, token list, token revoke\n"
    )
    assert main(["spur", "token", "--help"]) == 0
    shown = capsys.readouterr().out
    assert [line.split()[:2] for line in shown.splitlines() if line.startswith("  ")] == [
        ["token", "create"],
        ["token", "list"],
        ["token", "revoke"],
    ]


def test_unknown_option_is_refused_with_status_2(capsys: pytest.CaptureFixture[str]) -> None:
    """Someone types `spur version --jso`: options are not guessed from their beginnings."""
    assert main(["spur", "version", "--jso"]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "unrecognized arguments: --jso" in shown.err


def test_reader_that_goes_away_ends_the_command_quietly() -> None:
    """Someone pipes into `head` and head leaves: no traceback, the status of SIGPIPE."""
    code = "import sys; from spur_cli.main import main; sys.exit(main(['spur', 'version']))"
    shell = f'set -o pipefail; (sleep 0.05; {sys.executable} -c "{code}"; echo $? >&2) | true'
    run = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=False)
    assert run.stderr == "141\n"


@pytest.mark.parametrize("row", COMMANDS, ids=lambda row: " ".join(row.words))
def test_every_command_explains_itself(row: Command, capsys: pytest.CaptureFixture[str]) -> None:
    """Someone asks a command what it takes."""
    assert main(["spur", *row.words, "--help"]) == 0
    shown = capsys.readouterr().out
    if row.alias:
        assert shown.startswith(f"Usage: {row.alias} [OPTIONS...]")
        return
    assert shown.startswith(f"usage: spur {' '.join(row.words)} ")
    assert row.summary[1:] in " ".join(shown.split())


def test_tool_is_executed_apart_from_what_was_imported() -> None:
    """A tool that something else has imported already is run anew, and leaves that one alone."""
    import spur.controller.logrows as imported

    executed = execute("spur.controller.logrows")
    assert executed["format_time"] is not imported.format_time
    assert sys.modules["spur.controller.logrows"] is imported
    with pytest.raises(ModuleNotFoundError, match="no module named"):
        execute("spur.gone")
