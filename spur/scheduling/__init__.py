"""Placement: which waiting jobs start now, where and on what, and why the others wait. Pure.

May import: projections, slurm, events, wire, values. A plan is only proposed:
`commands/placement.py` judges it again, by rules of its own, on the state that it then meets.

Read first: `plan.py` (one cycle), `need.py` (what a job asks, made ready), `fit.py` (one node).

Keeps:
1. A plan is a function of the state, the time and nothing else.
2. Each placement of a plan is accepted on the state that it was made on, in its order.
3. Jobs start in the order of `priority.py`, except that a later one may start where that keeps no
   earlier one waiting longer (ADR on the order of starts).
"""
