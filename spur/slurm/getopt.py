"""Command lines as getopt_long(3) reads them, since scripts use all that it takes.

Long options may be cut short while they stay unmistakable; values are glued or follow; short flags
may be joined. Options and other words may be mixed unless `stops_at_word`.

Source: getopt_long(3) of glibc, its sentences included.
"""

from __future__ import annotations

from collections.abc import Sequence

from spur.slurm.options import Option, Takes
from spur.slurm.wording import SlurmError

__all__ = ["Given", "parse_arguments"]

Given = tuple[Option, str | None]
"""An option and its value; None for one without."""


def parse_arguments(
    arguments: Sequence[str],
    options: Sequence[Option],
    *,
    program: str,
    status: int = 1,
    stops_at_word: bool = False,
) -> tuple[list[Given], list[str]]:
    """Return the options in their order, and the other words.

    Raises: SlurmError with `status` for what is no option, or lacks or has a value it should not.
    """
    reader = _Reader(arguments, options, program, status)
    while reader.place < len(arguments):
        argument = arguments[reader.place]
        reader.place += 1
        if argument == "--" or (stops_at_word and not _is_option(argument)):
            reader.place -= argument != "--"
            reader.words.extend(arguments[reader.place :])
            break
        if not _is_option(argument):
            reader.words.append(argument)
        elif argument.startswith("--"):
            reader.long_option(argument[2:])
        else:
            reader.short_options(argument[1:])
    return reader.given, reader.words


def _is_option(argument: str) -> bool:
    return argument.startswith("-") and argument != "-"


class _Reader:
    """One pass over the words of a command line."""

    def __init__(
        self, arguments: Sequence[str], options: Sequence[Option], program: str, status: int
    ) -> None:
        self.arguments = arguments
        self.short = {option.short: option for option in options if option.short}
        self.long = {
            name: option for option in options for name in (option.long, *option.aliases) if name
        }
        self.program = program
        self.status = status
        self.place = 0
        """Index of the word that comes next."""
        self.given: list[Given] = []
        self.words: list[str] = []

    def long_option(self, text: str) -> None:
        """Take one option behind two dashes."""
        name, equals, value = text.partition("=")
        option = self.long.get(name) or self._completed(name, text)
        if option.takes is Takes.NOTHING:
            if equals:
                raise self._error(f"option '--{option.long}' doesn't allow an argument")
            self.given.append((option, None))
        elif equals:
            self.given.append((option, value))
        elif option.takes is Takes.VALUE:
            self.given.append(
                (option, self._next(f"option '--{option.long}' requires an argument"))
            )
        else:
            self.given.append((option, self._maybe_next(option)))

    def _completed(self, name: str, text: str) -> Option:
        fitting = sorted(known for known in self.long if known.startswith(name))
        if not fitting:
            raise self._error(f"unrecognized option '--{text}'")
        if len({self.long[known] for known in fitting}) > 1:
            named = " ".join(f"'--{known}'" for known in fitting)
            raise self._error(f"option '--{text}' is ambiguous; possibilities: {named}")
        return self.long[fitting[0]]

    def short_options(self, letters: str) -> None:
        """Take the options joined behind one dash; the first that has a value takes the rest."""
        while letters:
            letter, letters = letters[0], letters[1:]
            option = self.short.get(letter)
            if option is None:
                raise self._error(f"invalid option -- '{letter}'")
            if option.takes is Takes.NOTHING:
                self.given.append((option, None))
                continue
            if letters:
                self.given.append((option, letters))
            elif option.takes is Takes.VALUE:
                sentence = f"option requires an argument -- '{letter}'"
                self.given.append((option, self._next(sentence)))
            else:
                self.given.append((option, self._maybe_next(option)))
            return

    def _next(self, sentence: str) -> str:
        if self.place >= len(self.arguments):
            raise self._error(sentence)
        self.place += 1
        return self.arguments[self.place - 1]

    def _maybe_next(self, option: Option) -> str | None:
        """Return the next word as the value, for the options that look at it."""
        if option.takes is not Takes.MAYBE_NEXT or self.place >= len(self.arguments):
            return None
        if _is_option(self.arguments[self.place]):
            return None
        self.place += 1
        return self.arguments[self.place - 1]

    def _error(self, sentence: str) -> SlurmError:
        return SlurmError(
            f"{self.program}: {sentence}",
            f'Try "{self.program} --help" for more information',
            status=self.status,
        )
