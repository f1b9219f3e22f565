"""What Spur-Cloud is told by its environment: one row a setting, checked before anything starts.

A setting is read once, at start; a change needs a restart. Every fault in the environment is said
at once, so that one look mends all of them.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from spur.values.errors import OperatorFault

__all__ = ["SETTINGS", "Setting", "Settings", "load_settings"]

_PREFIX = "SPUR_CLOUD_"
"""Variables that begin so are ours; one that no row knows is a mistake, not a leftover."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """The checked settings of one Spur-Cloud process."""

    database_url: str
    """Where its PostgreSQL is; may hold a password, so it is never shown."""
    listen_address: str
    """HOST:PORT to serve on."""
    controller_addresses: tuple[str, ...]
    """HOST:PORT of the controllers to ask first; the client finds the others."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """One row: a field of `Settings`, the variable it is read from, and what is right for it."""

    field: str
    variable: str
    default: str | None
    """The text used when the variable is unset; None when it must be set."""
    parse: Callable[[str], object]
    """Returns the value; raises ValueError with what was wrong and what would be right."""
    unit: str
    doc: str


def _parse_database_url(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("postgresql", "postgres"):
        # The text may hold a password: only the scheme is repeated.
        raise ValueError(f"scheme {parts.scheme!r} is not PostgreSQL's; write postgresql://...")
    if not parts.path.strip("/"):
        raise ValueError("it names no database; write postgresql://USER@HOST/DATABASE")
    return text


def _parse_address(text: str) -> str:
    host, colon, port = text.rpartition(":")
    if not colon or not host:
        raise ValueError(f"{text!r} is not an address; write HOST:PORT")
    if not port.isascii() or not port.isdigit() or not 1 <= int(port) <= 65535:
        raise ValueError(f"port {port!r} is not a number from 1 to 65535")
    return text


def _parse_addresses(text: str) -> tuple[str, ...]:
    addresses = tuple(_parse_address(part.strip()) for part in text.split(","))
    if len(set(addresses)) != len(addresses):
        raise ValueError(f"{text!r} names an address twice; name each controller once")
    return addresses


SETTINGS: tuple[Setting, ...] = (
    Setting(
        field="database_url",
        variable="SPUR_DATABASE_URL",
        default=None,
        parse=_parse_database_url,
        unit="URL",
        doc="The PostgreSQL database that holds tenants, sessions and bills.",
    ),
    Setting(
        field="listen_address",
        variable="SPUR_CLOUD_LISTEN",
        default="127.0.0.1:8080",
        parse=_parse_address,
        unit="HOST:PORT",
        doc="Where Spur-Cloud serves its portal and its API.",
    ),
    Setting(
        field="controller_addresses",
        variable="SPUR_CLOUD_CONTROLLERS",
        default="127.0.0.1:6816",
        parse=_parse_addresses,
        unit="HOST:PORT, parted by commas",
        doc="The controllers to ask first; the others are found from them.",
    ),
)


def load_settings(environment: Mapping[str, str]) -> Settings:
    """Return the settings that this environment gives.

    Raises: OperatorFault with one line for each fault found.
    """
    faults: list[str] = []
    values: dict[str, object] = {}
    for row in SETTINGS:
        text = environment.get(row.variable, row.default)
        if text is None:
            faults.append(f"{row.variable} is not set; it must be the {row.unit}: {row.doc}")
            continue
        try:
            values[row.field] = row.parse(text)
        except ValueError as error:
            faults.append(f"{row.variable}: {error}")
    faults.extend(_unknown(environment))
    if faults:
        raise OperatorFault("spur-cloud was not started\n" + "\n".join(faults))
    return Settings(**values)  # type: ignore[arg-type]  # each row's parser gives its field's type


def _unknown(environment: Mapping[str, str]) -> list[str]:
    known = [row.variable for row in SETTINGS]
    faults = []
    for name in sorted(environment):
        if not name.startswith(_PREFIX) or name in known:
            continue
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"
        faults.append(f"{name} is no setting; {hint}")
    return faults
