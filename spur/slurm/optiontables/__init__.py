"""The options of each command: one module for each, with its `ROWS`."""
