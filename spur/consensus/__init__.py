"""The replicated log: Raft core, write-ahead log, ledger, blobs, snapshots, driver.

The core is pure: messages and ticks go in, messages and what must become durable come out. The
stores are plain blocking code over a `Disk`. `replica.py` joins them without asyncio, and
`driver.py` runs a replica on a loop.

May import: `spur.events`, `spur.values`; the core and what it imports, nothing that does IO.

Read first: `port.py`, `core.py`, `replica.py`, `disk.py`.

Keeps: nothing is acknowledged before it is durable; an entry once committed is never changed; what
is damaged stops a reader, and is never skipped.
"""
