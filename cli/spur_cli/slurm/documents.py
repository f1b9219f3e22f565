"""--json and --yaml: a document instead of lines."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from spur.slurm.dataparser.parts import PLUGIN, Document, document
from spur.slurm.dataparser.text import to_json, to_yaml
from spur.slurm.wording import SlurmError, error_line
from spur_cli.slurm.people import group_name, user_name
from spur_cli.slurm.session import Session

__all__ = ["document_form", "write_document"]

_FORMS = {"json": to_json, "yaml": to_yaml}

_KNOWN = ("", "list", PLUGIN, PLUGIN.partition("/")[2])


def document_form(program: str, values: Mapping[str, Any]) -> str:
    """Return json or yaml when a document is asked for; else nothing.

    Raises: SlurmError for a version that there is not; and for the list of them, which is told.
    """
    for form in _FORMS:
        if form not in values:
            continue
        version = values[form].partition("+")[0]
        if version == "list":
            raise SlurmError("Possible data_parser plugins:", PLUGIN, status=0)
        if version not in _KNOWN:
            raise SlurmError(error_line(program, f"Unable to find data_parser plugin: {version}"))
        return form
    return ""


def write_document(
    session: Session, form: str, body: Document, command: Sequence[str], cluster: str = ""
) -> int:
    """Write a document; return the exit status."""
    whole = document(
        body,
        command=command,
        user=user_name(os.geteuid()),
        group=group_name(os.getegid()),
        cluster=cluster,
    )
    sys.stdout.write(_FORMS[form](whole))
    return 0
