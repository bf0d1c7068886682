"""What askers hear while Postgres is away."""

from functools import partial

import pytest

from pml_common.bus.errors import QueryFailed
from pml_common.storage.errors import StorageUnavailable
from pml_common.storage.outage import reporting


class _Postgres:
    """Away for the first `outages` questions."""

    def __init__(self, outages: int) -> None:
        self.outages = outages
        self.asked = 0

    async def answer(self, question: str) -> str:
        self.asked += 1
        if self.asked <= self.outages:
            raise StorageUnavailable("Postgres does not answer")
        return question.upper()


async def test_an_outage_is_reported_in_the_askers_terms() -> None:
    answer = reporting(_Postgres(outages=1).answer, partial(QueryFailed, "unavailable"))
    with pytest.raises(QueryFailed, match="does not answer") as failure:
        await answer("yes")
    assert failure.value.code == "unavailable"
    assert await answer("yes") == "YES"
