"""The commands, one module each: `run(arguments, command)` does the work and returns the status."""
