"""Contract of every record of deletions of principals' data."""

from uuid import UUID

import pytest

from pml_gateway.adapters.stores import Stores
from pml_gateway.domain.api.principals import PrincipalDeletion
from services.gateway.tests.support.builders import ELSEWHERE, SCOPE, later

pytestmark = pytest.mark.integration


def _deletion(number: int) -> PrincipalDeletion:
    return PrincipalDeletion(
        deletion_id=UUID(int=number), principal="mira", deleted_by="ada", deleted_at=later(number)
    )


async def test_deletions_are_recorded_once_and_listed_newest_first(stores: Stores) -> None:
    for number in (1, 3, 2, 3):
        await stores.deletions.add(SCOPE, _deletion(number))
    await stores.deletions.add(ELSEWHERE, _deletion(4))
    assert await stores.deletions.newest(SCOPE, 2) == [_deletion(3), _deletion(2)]
    assert await stores.deletions.newest(ELSEWHERE, 9) == [_deletion(4)]
