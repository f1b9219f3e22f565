"""Directives in batch scripts, and what is no batch script."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spur.slurm.directives import (
    OpenQuote,
    directive_lines,
    directive_words,
    refuse_script,
)


def words(script: str) -> list[str]:
    return [word for line in directive_lines(script) for word in directive_words(line)]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("#SBATCH --time=10   # ten minutes", ["--time=10"]),
        ("#SBATCH -c 4 # cores", ["-c", "4"]),
        (
            "#SBATCH -N2 -n8 -t30 -pgpu --gres=gpu:1",
            ["-N2", "-n8", "-t30", "-pgpu", "--gres=gpu:1"],
        ),
        ('#SBATCH -J "my job" --comment="a b"', ["-J", "my job", "--comment=a b"]),
        ("#SBATCH --job-name='my job'", ["--job-name=my job"]),
        ("#SBATCH -J my\\ job", ["-J", "my", "job"]),
        ("#SBATCH -J a\\#b", ["-J", "a#b"]),
        ('#SBATCH -J "#1"', ["-J", "#1"]),
        ("#SBATCH -J cont \\", ["-J", "cont"]),
        ("#SBATCH-J nospace", ["-J", "nospace"]),
        ("#SBATCH --job-name= x", ["--job-name=", "x"]),
        ('#SBATCH -a ""', ["-a", ""]),
        ("#SBATCH\t-H\t", ["-H"]),
        ("#SBATCH", []),
        ("# SBATCH -H", []),
        ("#sbatch -H", []),
        (" #SBATCH -H", []),
    ],
)
def test_directive_is_cut_into_words(line: str, expected: list[str]) -> None:
    """Someone writes options into a script, with quotes, comments and tabs."""
    assert words(f"#!/bin/sh\n{line}\ntrue\n") == expected


def test_search_ends_at_the_first_command() -> None:
    """A script has comments and blank lines above, and a directive below its first command."""
    script = "#!/bin/sh\n\n   \n# note\n  # note\n#SBATCH -n2\nmodule load x\n#SBATCH --mem=60G\n"
    assert words(script) == ["-n2"]


def test_last_line_needs_no_end() -> None:
    """An editor left out the last line break."""
    assert words("#!/bin/sh\n#SBATCH -J x") == ["-J", "x"]


@pytest.mark.parametrize(
    ("script", "beginning"),
    [
        (b"", "Batch script is empty!"),
        (b"\n", "Batch script contains only whitespace!"),
        (b" \n\t\n", "Batch script contains only whitespace!"),
        (b"#SBATCH -J x\ntrue\n", "This does not look like a batch script.  The first"),
        (b"\x7fELF\0\0", "This does not look like a batch script.  The first"),
        (b"#!/bin/sh\r\ntrue\r\n", "Batch script contains DOS line breaks (\\r\\n)"),
        (b"#!/bin/sh\ntrue\0x\n", "The Slurm controller does not allow scripts that"),
    ],
)
def test_what_is_no_script_is_refused(script: bytes, beginning: str) -> None:
    """Someone hands in a file that is no script."""
    assert refuse_script(script)[0] == beginning


def test_shebang_alone_is_a_script() -> None:
    """The least that can be handed in."""
    assert refuse_script(b"#!/bin/bash\n") == ()


@given(st.text(max_size=60))
def test_any_line_is_cut(line: str) -> None:
    """A script was made by a program with a fault."""
    with suppress(OpenQuote):
        assert all(isinstance(word, str) for word in directive_words(line))


def test_quote_that_stays_open_is_shown() -> None:
    """Somebody forgets the second quote: what is left of the line is told."""
    with pytest.raises(OpenQuote, match=r"^Unmatched `'` in \[ 'my job\]$"):
        directive_words(" -J 'my job")


@given(st.lists(st.text(st.characters(exclude_characters="'\n"), max_size=8), max_size=6))
def test_quoted_words_stay_what_they_are(originals: list[str]) -> None:
    """A tool puts every word of a directive into quotes."""
    assert directive_words(" ".join(f"'{word}'" for word in originals)) == originals
