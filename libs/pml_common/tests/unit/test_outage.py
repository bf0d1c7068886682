"""Handlers while Postgres is away."""

from functools import partial

import pytest

from pml_common.bus.errors import QueryFailed
from pml_common.storage.errors import StorageUnavailable
from pml_common.storage.outage import outlasting, reporting


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


async def test_a_handler_outlasts_a_short_outage() -> None:
    postgres = _Postgres(outages=2)
    assert await outlasting(postgres.answer)("yes") == "YES"
    assert postgres.asked == 3


async def test_an_outage_longer_than_the_patience_is_raised() -> None:
    postgres = _Postgres(outages=99)
    with pytest.raises(StorageUnavailable):
        await outlasting(postgres.answer, patience_s=0.15)("yes")
    assert postgres.asked == 2


async def test_an_outage_is_reported_in_the_askers_terms() -> None:
    answer = reporting(_Postgres(outages=1).answer, partial(QueryFailed, "unavailable"))
    with pytest.raises(QueryFailed, match="does not answer") as failure:
        await answer("yes")
    assert failure.value.code == "unavailable"
    assert await answer("yes") == "YES"
