"""The read model's file when two processes have it for a moment."""

from __future__ import annotations

import sqlite3
import threading
import time
from pathlib import Path

from spur.store.engine import open_engine, writing


def test_a_writer_waits_for_a_predecessor_that_still_writes(tmp_path: Path) -> None:
    """A projector was killed and is not quite gone; the next one opens the file meanwhile."""
    path = tmp_path / "history.db"
    old = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    old.execute("PRAGMA journal_mode = WAL")
    old.execute("BEGIN IMMEDIATE")
    old.execute("CREATE TABLE half_done (x)")

    def end() -> None:
        time.sleep(0.3)
        old.execute("ROLLBACK")
        old.close()

    ending = threading.Thread(target=end)
    ending.start()
    engine = open_engine(path)
    ending.join()
    with writing(engine) as connection:
        tables = connection.exec_driver_sql("SELECT name FROM sqlite_master").scalars().all()
    engine.dispose()
    assert "jobs" in tables
    assert "half_done" not in tables
