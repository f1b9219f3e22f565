"""The `spur` command: one entry point, a table of commands, and their output."""
