"""Showing a result in the form that was chosen; only that form's module is imported."""

from __future__ import annotations

from spur_cli.output.result import Form, Listing, Record

__all__ = ["show"]


def show(result: Listing | Record, form: Form) -> None:
    """Write a result to stdout."""
    if form is Form.JSON:
        from spur_cli.output.json import write_json

        write_json(result)
    elif form is Form.PARSABLE:
        from spur_cli.output.parsable import write_parsable

        write_parsable(result)
    else:
        from spur_cli.output.table import write_table

        write_table(result)
