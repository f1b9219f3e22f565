"""A whole cluster on hosts of its own: jobs run, everything breaks, and in the end it all adds up.

The ordeal of `spur.testing.live` is the log's; this one is the cluster's: controllers as spurctld
runs them, agents with their supervisors, a login agent through which users ask, jobs that write
down what became of them. It takes root, for network namespaces and a small file system.

    plan.py         what is drawn from a seed: strikes and jobs, each with its time
    scripts.py      what the jobs do, and reading what they wrote down
    stage.py        hosts, controllers, agents
    strikes.py      carrying out what the plan says, and undoing it
    users.py        those who submit the jobs
    clients.py      those who write and read a few jobs all the while, for a history
    verdict.py      what must hold at the end
    records.py      what must hold of the records, beside the log and the jobs' own notes
    report.py       one line, a table, a file
    main.py         the command `ops/chaos`
"""
