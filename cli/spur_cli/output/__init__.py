"""How results are shown: the same rows as a table for people, as JSON, or in a parsable form.

The only place that prints.

Read first: `result.py`, `show.py`, `table.py`.
"""
