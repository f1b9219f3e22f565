"""How requests become bytes."""

from __future__ import annotations

import pytest

from spur.values.errors import OperatorFault
from spur.values.ids import TokenId
from spur.wire.declare import encode_request
from spur.wire.joining import RevokeToken


@pytest.mark.parametrize("number", [1 << 64, -(1 << 63) - 1, 10**30])
def test_number_that_no_request_holds_is_said(number: int) -> None:
    """Somebody types a number of thirty digits."""
    with pytest.raises(OperatorFault, match=r"a number beyond 64 bits stands in 'token\.revoke'"):
        encode_request(RevokeToken(TokenId(number)))
