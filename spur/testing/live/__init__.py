"""Real controllers on hosts of their own, and what goes wrong between them.

Where the simulator is thorough, this is real: processes, TCP, TLS, files, the kernel's own network
and signals. It takes root, for the network namespaces.

    hosts.py        hosts, cables, cuts
    load.py         clients and what they saw
    nemesis.py      what strikes
    verdict.py      what must hold at the end
    run.py          the command `ops/nemesis`
"""
