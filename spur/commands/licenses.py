"""Commands about licences, and what keeps jobs and configurations from having too many."""

from __future__ import annotations

from spur.commands.decide import Context, Decision, command
from spur.commands.permissions import Permission
from spur.projections.licenses import licenses_configured, licenses_free, licenses_held
from spur.projections.state import State
from spur.values.config import SlurmParameter
from spur.values.errors import Rejection
from spur.values.licenses import parse_licenses
from spur.wire.licenses import LicenseInfo, LicenseList, ListLicenses

__all__ = ["decide_list_licenses", "licenses_beyond", "refuse_licenses"]


@command(ListLicenses, permission=Permission.USER, reads=True)
def decide_list_licenses(state: State, request: ListLicenses, context: Context) -> Decision:
    """Show every licence."""
    free = licenses_free(state)
    had = licenses_configured(state.config[1].parameters) if free else {}
    rows = (LicenseInfo(name, had[name], had[name] - free[name]) for name in sorted(free))
    return Decision((), LicenseList(tuple(rows)))


def refuse_licenses(state: State, text: str) -> Rejection | None:
    """Return why no job may ask for these licences, or None."""
    if not text:
        return None
    try:
        asked = parse_licenses(text)
    except ValueError as error:
        return Rejection("invalid-license", f"{error}; nothing was changed")
    had = licenses_configured(state.config[1].parameters)
    for name, count in asked.items():
        if name not in had:
            return Rejection(
                "invalid-license", f"there is no licence {name!r}; nothing was changed"
            )
        if count > had[name]:
            return Rejection(
                "invalid-license",
                f"there are {had[name]} of licence {name!r}, not {count}; nothing was changed",
            )
    return None


def licenses_beyond(state: State, parameters: tuple[SlurmParameter, ...]) -> Rejection | None:
    """Return why there can't be as many licences as this from now on: more are held. Or None."""
    will = licenses_configured(parameters)
    for name, held in licenses_held(state).items():
        if held > will.get(name, 0):
            return Rejection(
                "wrong-state",
                f"running jobs hold {held} of licence {name!r} and there would be "
                f"{will.get(name, 0)}; nothing was changed",
                "wait until enough of them have ended",
            )
    return None
