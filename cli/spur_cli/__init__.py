"""The `spur` command: one entry point, a table of commands, and their output.

May import: `spur.client`, `spur.wire`, `spur.slurm`, `spur.events`, `spur.values`. A tool that
needs more (the log's own, say) is a row of the registry that names a module to execute, never to
import.

Read first: `main.py`, `registry.py`, `output/result.py`.

Keeps: stdout is data and stderr is for people; every list comes as a table, as JSON and in a
parsable form, all from the same rows; a command imports only what it needs.
"""
