"""The replicated log: Raft core (pure), write-ahead log, ledger, blobs, snapshots, driver."""
