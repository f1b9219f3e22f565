"""Commands that start warm: a process of the same user that has everything imported runs them.

    launcher (knock.py)            worker (worker.py)              its child (child.py)
    connects, checks who listens
                                   accepts, forks             -->  is the launcher in all like me?
                             <--   "ready" or "not by me"     <--
    command, environment,    -->                                   takes on limits, files, directory
    directory, 0 1 2                                               runs the command as if cold
    exits or dies as it did  <--   status

Nothing is handed over before "ready", so a launcher that does not hear it in time runs the command
itself, and no file of it lies with a process that sleeps.
No process acts for another user, and none for a session that differs in anything the kernel tells:
see `likeness.py`. docs/adr/0020-warm-commands.md has the reasons.

Read first: `knock.py`, `child.py`, `likeness.py`.
"""
