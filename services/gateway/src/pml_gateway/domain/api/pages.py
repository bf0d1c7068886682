"""Pages of listings, each item with a key of its own, in the order of the keys."""

import base64
import binascii
from collections.abc import Sequence

from pml_common.contracts.tool import JsonObject
from pml_gateway.domain.api.errors import InvalidRequest

PAGE = 200


def page_of(
    listed: Sequence[JsonObject], key: str, cursor: str | None
) -> tuple[list[JsonObject], str | None]:
    """Return the items behind the cursor, `PAGE` at most, and the cursor of the next page. Raises
    InvalidRequest for a cursor that is none."""
    after = _key_of(cursor)
    rest = [each for each in listed if str(each[key]) > after]
    page = rest[:PAGE]
    more = len(rest) > PAGE
    return page, base64.urlsafe_b64encode(str(page[-1][key]).encode()).decode() if more else None


def _key_of(cursor: str | None) -> str:
    try:
        return base64.b64decode(cursor or "", altchars="-_", validate=True).decode()
    except (binascii.Error, ValueError) as error:
        raise InvalidRequest("cursor", "is none of this list; ask without one") from error
