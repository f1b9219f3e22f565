"""The projector: the process that feeds the read model and answers questions about history.

    python -m spur.controller.projector DIRECTORY --channel FD

It follows the log from where its model is, by the front's channel. Queries wait until the model
has the entry that they must not be older than, and run in threads, so that nothing keeps it from
following. Source: LOG-CONTRACT 8.1.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path

from spur.consensus.disk import OsDisk
from spur.consensus.faults import LedgerDamaged
from spur.consensus.genesis import Genesis, genesis_chain, load_genesis
from spur.consensus.ledger import Ledger
from spur.controller.follower import LOG, FrontLink, run_child
from spur.events.envelope import Entry
from spur.store.engine import remove_database
from spur.store.model import Cursor, Model
from spur.store.records import record_page
from spur.store.story import story_lines, story_places
from spur.values.errors import SpurError
from spur.wire.calls import Answered, Refused
from spur.wire.declare import Answer, Request
from spur.wire.followers import HistoryAnswer, HistoryAsk
from spur.wire.history import QueryRecords, ReadStory, StoryLine, StoryPage
from spur.wire.registry import decode_request, encode_answer

__all__ = ["MODEL_FILE", "History", "LedgerBehind", "Projector", "main", "open_model"]

MODEL_FILE = "history.db"
"""The read model, in the controller's directory; it may be removed while no controller runs."""

WAIT_S = 2.0
"""How long a query waits for the model; then it is told how far that is."""

LEDGER_WAIT_S = 1.0
"""How long a story waits for the ledger to hold what is committed already."""

LEDGER_PAUSE_S = 0.05

ENTRY_BYTES = 1
"""Enough for `Ledger.read` to return one entry."""


class LedgerBehind(SpurError):
    """The ledger's files do not hold yet what was committed a moment ago."""


class History:
    """Answers to requests for history, from a model and the ledger beside it; blocks."""

    def __init__(self, disk: OsDisk, genesis: Genesis, model: Model) -> None:
        self._disk = disk
        self._genesis = genesis
        self._model = model
        self._answers: dict[type[Request], Callable[..., Answer]] = {
            QueryRecords: self._records,
            ReadStory: self._story,
        }

    def answer(self, request: Request) -> Answer:
        """Return the answer. Raises: LedgerBehind, LedgerDamaged for what can't be read."""
        return self._answers[type(request)](request)

    def _records(self, query: QueryRecords) -> Answer:
        with self._model.engine.connect() as connection:
            return record_page(connection, query)

    def _story(self, query: ReadStory) -> Answer:
        with self._model.engine.connect() as connection:
            places = story_places(connection, query)
        lines: list[StoryLine] = []
        told = places[: query.limit]
        if told:
            ledger = Ledger.view(self._disk, self._genesis)
            try:
                for index, group in groupby(told, key=lambda place: place[0]):
                    if index > ledger.last:
                        raise LedgerBehind(f"entry {index} is not in the ledger yet")
                    [entry] = ledger.read(index, index, ENTRY_BYTES)
                    positions = [position for _, position in group]
                    lines += story_lines(query.job_id, entry, positions)
            finally:
                ledger.close()
        return StoryPage(tuple(lines), len(places) > query.limit)


def open_model(directory: Path, disk: OsDisk, genesis: Genesis) -> Model:
    """Open the model of a controller's directory; one of another history is made anew.

    A model may be ahead of the ledger after a crash: what it has was committed all the same.
    """
    beginning = Cursor(genesis.incarnation, 0, genesis_chain(genesis), 0)
    path = directory / MODEL_FILE
    model = Model.open(path, beginning)
    at = model.cursor
    ledger = Ledger.view(disk, genesis)
    try:
        if not at.index or ledger.first > at.index or at.index > ledger.last:
            return model
        if ledger.chain_at(at.index) == at.chain:
            return model
    except LedgerDamaged as damage:
        LOG.warning("the read model can't be compared with the log: %s", damage)
        return model
    finally:
        ledger.close()
    LOG.warning("the read model is of another history; it is made anew from the log")
    model.close()
    return Model.open(path, beginning, anew=True)


class Projector:
    """Feeds a model from the front's channel and answers queries."""

    def __init__(self, directory: Path, channel: int) -> None:
        """Open the model; blocks."""
        disk = OsDisk(str(directory))
        genesis = load_genesis(disk)
        self.model = open_model(directory, disk, genesis)
        self._path = directory / MODEL_FILE
        self._history = History(disk, genesis, self.model)
        self._link = FrontLink(channel, on_entries=self._fold, on_history=self._ask)
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> str:
        """Follow until the front ends; return nothing, or why to begin anew: without a model."""
        at = self.model.cursor
        await self._link.open(at.incarnation, at.index)
        why = ""
        try:
            why = await self._link.ended
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            self.model.close()
            if why:
                remove_database(self._path)
        return why

    def _fold(self, entries: Sequence[Entry], commit: int) -> None:
        self.model.fold(entries)
        index = self.model.cursor.index
        self._link.reached(index)
        still = []
        for wanted, future in self._waiting:
            if wanted > index:
                still.append((wanted, future))
            elif not future.done():
                future.set_result(None)
        self._waiting = still

    def _ask(self, ask: HistoryAsk) -> None:
        task = asyncio.get_running_loop().create_task(self._answer(ask))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, ask: HistoryAsk) -> None:
        warning = await self._wait_for(ask.at_least)
        outcome: Answered | Refused
        try:
            request = decode_request(ask.request)
            answer = await self._answer_once_there(request)
            outcome = Answered(encode_answer(answer))
        except LedgerBehind as error:
            outcome = Refused("history-behind", str(error))
        except SpurError as error:
            outcome = Refused("fault", str(error))
        except Exception as error:
            LOG.exception("a question about history ran into a fault of ours")
            outcome = Refused("fault", f"{type(error).__name__}: {error}")
        self._link.answer_history(HistoryAnswer(ask.number, outcome, warning))

    async def _answer_once_there(self, request: Request) -> Answer:
        """Answer in a thread; what the ledger has not got yet is waited for."""
        deadline = asyncio.get_running_loop().time() + LEDGER_WAIT_S
        while True:
            try:
                return await asyncio.to_thread(self._history.answer, request)
            except LedgerBehind:
                if asyncio.get_running_loop().time() > deadline:
                    raise
            await asyncio.sleep(LEDGER_PAUSE_S)

    async def _wait_for(self, index: int) -> str:
        """Wait until the model holds an entry; after a while return how far it is."""
        if index <= self.model.cursor.index:
            return ""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((index, future))
        done, _ = await asyncio.wait((future,), timeout=WAIT_S)
        if done:
            return ""
        at = self.model.cursor.index
        return f"the records are those at entry {at}; the log is at {index} already"


async def _run(directory: Path, channel: int) -> str:
    return await Projector(directory, channel).run()


def main(arguments: Sequence[str]) -> int:
    """Run as a child of the front; return the exit status."""
    logging.getLogger("alembic").setLevel(logging.WARNING)
    return run_child(_run, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
