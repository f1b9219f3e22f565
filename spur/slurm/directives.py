"""Options inside a batch script: the #SBATCH lines above its first command.

    #SBATCH --time=10   # ten minutes      ->  ["--time=10"]
    #SBATCH -J "my job" -N2                ->  ["-J", "my job", "-N2"]

Blank lines and comments do not end the search; the first line that holds anything else does. Quotes
keep blanks together, a backslash outside of them is dropped, and a # outside of them ends the line.

Source: sbatch(1); transcripts of Slurm 22.05.
"""

from __future__ import annotations

from collections.abc import Iterator

__all__ = [
    "DIRECTIVE",
    "OpenQuote",
    "directive_lines",
    "directive_words",
    "numbered_directives",
    "refuse_script",
]

DIRECTIVE = "#SBATCH"

_NO_INTERPRETER = (
    "This does not look like a batch script.  The first",
    "line must start with #! followed by the path to an interpreter.",
    "For instance: #!/bin/sh",
)


class OpenQuote(ValueError):
    """A directive with a quote that does not end in its line."""

    def __init__(self, quote: str, rest: str) -> None:
        super().__init__(f"Unmatched `{quote}` in [{rest}]")
        self.quote = quote


def refuse_script(script: bytes) -> tuple[str, ...]:
    """Return the sentences that say why this is no batch script; none when it is one."""
    if not script:
        return ("Batch script is empty!",)
    if not script.partition(b"\0")[0].strip():
        return ("Batch script contains only whitespace!",)
    if not script.startswith(b"#!"):
        return _NO_INTERPRETER
    if b"\r\n" in script:
        return (
            "Batch script contains DOS line breaks (\\r\\n)",
            "instead of expected UNIX line breaks (\\n).",
        )
    if b"\0" in script:
        return (
            "The Slurm controller does not allow scripts that",
            "contain a NULL character '\\0'.",
        )
    return ()


def directive_lines(script: str, mark: str = DIRECTIVE) -> Iterator[str]:
    """Yield what follows the mark in each line above the first command."""
    return (text for _, text in numbered_directives(script, mark))


def numbered_directives(script: str, mark: str = DIRECTIVE) -> Iterator[tuple[int, str]]:
    """Yield the same with the numbers of the lines, from 1 on."""
    for number, line in enumerate(script.split("\n"), 1):
        if line.startswith(mark):
            yield number, line[len(mark) :]
            continue
        text = line.lstrip()
        if text and not text.startswith("#"):
            return


def directive_words(line: str) -> list[str]:
    """Return the words of one directive; empty quotes are a word. Raises: OpenQuote."""
    words: list[str] = []
    place = after = 0
    while place < len(line):
        if line[place].isspace():
            place += 1
            continue
        if line[place] == "#":
            break
        try:
            word, place, is_quoted = _word(line, place)
        except OpenQuote as error:
            raise OpenQuote(error.quote, line[after:]) from error
        after = place
        if word or is_quoted:
            words.append(word)
    return words


def _word(line: str, place: int) -> tuple[str, int, bool]:
    """Take one word; return it, where it ends, and whether any of it was quoted."""
    letters: list[str] = []
    quote = ""
    is_quoted = False
    while place < len(line):
        letter = line[place]
        if quote:
            if letter == quote:
                quote = ""
            else:
                letters.append(letter)
        elif letter in "\"'":
            quote = letter
            is_quoted = True
        elif letter.isspace() or letter == "#":
            break
        elif letter == "\\":
            after = line[place + 1 : place + 2]
            if after and not after.isspace():
                letters.append(after)
                place += 1
        else:
            letters.append(letter)
        place += 1
    if quote:
        raise OpenQuote(quote, line)
    return "".join(letters), place, is_quoted
