"""What a client raises when no replica gave it an outcome."""

from __future__ import annotations

from spur.values.errors import OperatorFault, SpurError

__all__ = ["OutcomeUnknown", "Unreachable"]


class Unreachable(OperatorFault):
    """No controller took the request: nothing was done."""

    code = "unreachable"


class OutcomeUnknown(SpurError):
    """A request was sent, and nobody could say whether it was carried out.

    Asking again with the same id is safe: it is carried out at most once.
    """

    code = "outcome-unknown"

    def __init__(self, text: str, request_id: bytes, since: int) -> None:
        super().__init__(text)
        self.request_id = request_id
        self.since = since
        """Goes with the id when the request is asked again."""
