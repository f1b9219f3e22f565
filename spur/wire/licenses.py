"""A request about licences, and rows of them."""

from __future__ import annotations

import msgspec

from spur.wire.declare import Answer, Request, answer, request

__all__ = ["LicenseInfo", "LicenseList", "ListLicenses"]


@request
class ListLicenses(Request, frozen=True, tag="license.list"):
    """Ask for every licence that is configured."""


class LicenseInfo(
    msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True
):
    """A licence, as people are shown it."""

    name: str
    total: int
    used: int


@answer
class LicenseList(Answer, frozen=True, tag="license.rows"):
    """Licences in the order of their names."""

    licenses: tuple[LicenseInfo, ...]
