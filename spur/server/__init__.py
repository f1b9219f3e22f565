"""What daemons serve with: the RPC server, and what each does with its process and settings.

May import: `spur.client`, `spur.events`, `spur.wire`, `spur.values`.

Read first: `rpc.py`, `sessions.py`, `process.py`.

Keeps: who calls is what the kernel or a certificate says; whoever takes too much is slowed or cut,
and nobody else is.
"""
