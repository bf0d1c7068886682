"""Resolution of references in programs."""

import logging

import pytest
from pydantic import ValidationError

from pml_common.contracts import ids
from pml_common.contracts.callable_names import callable_name
from pml_common.contracts.registry import DescribeCapabilities
from services.registry.tests.support.builders import (
    ELSEWHERE,
    HASH,
    OTHER_HASH,
    SCOPE,
    UNNAMED,
    analysed,
)
from services.registry.tests.support.store_driver import StoreDriver

pytestmark = pytest.mark.integration

ID = ids.capability_id(SCOPE, HASH)
OTHER_ID = ids.capability_id(SCOPE, OTHER_HASH)


async def test_a_description_has_what_callers_need(registry: StoreDriver) -> None:
    analysis = analysed(intent="make sure")
    await registry.named("fs:ensure_file", analysis)
    (answer,) = await registry.describe("fs_ensure_file")
    found = answer.capability
    assert found is not None
    assert (answer.reference, answer.near) == ("fs_ensure_file", ())
    assert (found.capability_id, found.name, found.aliases) == (ID, "fs:ensure_file", (UNNAMED,))
    assert (found.code, found.code_hash) == (analysis.code, HASH)
    assert (found.description, found.parameters_schema) == (
        "make sure",
        analysis.parameters_schema,
    )


REFERENCES = [
    "fs:ensure",
    "fs_ensure",
    UNNAMED,
    str(ID),
    str(ID).upper(),
    f"fs_ensure_{ID.hex[-4:]}",
]


@pytest.mark.parametrize("reference", REFERENCES)
async def test_every_reference_resolves_to_it(registry: StoreDriver, reference: str) -> None:
    await registry.analysed(analysed())
    await registry.named("fs:ensure", analysed())
    assert await registry.resolved_name(reference) == "fs:ensure"


@pytest.mark.parametrize(
    "reference", ["fs:ensur", "Fs_ensure", "fs_ensure_0000", "_ensure", "fs_ensure_", str(OTHER_ID)]
)
async def test_no_other_reference_resolves_to_it(registry: StoreDriver, reference: str) -> None:
    await registry.named("fs:ensure", analysed())
    assert await registry.resolved_name(reference) is None


async def test_several_are_described_once_each_in_the_requested_order(
    registry: StoreDriver,
) -> None:
    await registry.named("fs:ensure", analysed())
    await registry.named("fs:tidy", analysed(OTHER_HASH))
    answers = await registry.describe("fs_tidy", "fs:gone", "fs:ensure", "fs_tidy")
    assert [(one.reference, one.capability and one.capability.name) for one in answers] == [
        ("fs_tidy", "fs:tidy"),
        ("fs:gone", None),
        ("fs:ensure", "fs:ensure"),
    ]
    assert await registry.describe() == ()


async def test_an_exact_name_is_preferred_to_one_with_digits(
    registry: StoreDriver,
) -> None:
    await registry.named("a:b", analysed())
    await registry.named(f"a:b_{ID.hex[-4:]}", analysed(OTHER_HASH))
    assert await registry.resolved_name(f"a_b_{ID.hex[-4:]}") == f"a:b_{ID.hex[-4:]}"
    assert await registry.resolved_name(f"a_b_{ID.hex[-5:]}") == "a:b"


async def test_how_a_former_name_is_called_resolves_with_a_warning(
    registry: StoreDriver, caplog: pytest.LogCaptureFixture
) -> None:
    await registry.named("fs:ensure", analysed())
    await registry.named("fs:make", analysed())
    with caplog.at_level(logging.WARNING):
        assert await registry.resolved_name("fs_ensure") == "fs:ensure"
        assert caplog.text == ""
        assert await registry.resolved_name("fs_make") == "fs:ensure"
    assert "fs_make was renamed to fs:ensure; use the new name" in caplog.text


async def test_a_former_name_resolves_with_a_warning(
    registry: StoreDriver, caplog: pytest.LogCaptureFixture
) -> None:
    await registry.analysed(analysed())
    await registry.named("fs:ensure", analysed())
    with caplog.at_level(logging.WARNING):
        (answer,) = await registry.describe(UNNAMED)
    assert answer.notices == (f"{UNNAMED} was renamed to fs:ensure; use the new name",)
    assert answer.capability is not None
    assert answer.capability.aliases == (UNNAMED,)
    assert "was renamed to fs:ensure" in caplog.text
    assert (await registry.resolve("fs:ensure")).aliases == (UNNAMED,)


async def test_similar_names_are_returned_in_the_requested_form(registry: StoreDriver) -> None:
    await registry.named("fs:ensure_file", analysed())
    by_name, callable_, neither = await registry.describe("fs:ensure_fil", "fs_ensure_fil", "zzz")
    assert (by_name.near, callable_.near) == (("fs:ensure_file",), ("fs_ensure_file",))
    assert neither.near == ()


async def test_another_scope_gets_the_same_answer_as_for_unknown_names(
    registry: StoreDriver,
) -> None:
    await registry.named("fs:ensure", analysed())
    hidden = await registry.describe("fs_ensure", "fs:ensure", str(ID), scope=ELSEWHERE)
    nobodys = await registry.describe("no_body", "no:body", str(OTHER_ID), scope=ELSEWHERE)
    assert [(one.capability, one.near) for one in hidden] == [(None, ())] * 3
    assert [(one.capability, one.near) for one in nobodys] == [(None, ())] * 3


@pytest.mark.parametrize("name", ["a:b", "a-b-c:d_e", "x9:y_0"])
async def test_the_store_follows_the_shared_rule(registry: StoreDriver, name: str) -> None:
    await registry.named(name, analysed())
    assert await registry.resolved_name(callable_name(name)) == name


@pytest.mark.parametrize("reference", ["", "a b", "a\x00b", "x" * 257, "\u00e9"])
def test_an_invalid_reference_is_rejected_by_the_query(reference: str) -> None:
    with pytest.raises(ValidationError):
        DescribeCapabilities(scope=SCOPE, references=(reference,))
