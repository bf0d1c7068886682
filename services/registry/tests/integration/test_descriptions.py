"""Which capabilities programs mean, on every kind of store."""

import logging

import pytest
from pydantic import ValidationError

from pml_common.contracts import ids
from pml_common.contracts.callable_names import callable_name, suffixed
from pml_common.contracts.registry import DescribeCapabilities
from services.registry.tests.samples import (
    ELSEWHERE,
    HASH,
    OTHER_HASH,
    SCOPE,
    UNNAMED,
    analysed,
)
from services.registry.tests.store_driver import Registry

ID = ids.capability_id(SCOPE, HASH)
OTHER_ID = ids.capability_id(SCOPE, OTHER_HASH)


async def test_a_capability_is_told_as_its_callers_need_it(registry: Registry) -> None:
    analysis = analysed(name="fs:ensure_file", intent="make sure")
    await registry.analysed(analysis)
    (answer,) = await registry.describe("fs_ensure_file")
    found = answer.capability
    assert found is not None
    assert (answer.reference, answer.near) == ("fs_ensure_file", ())
    assert (found.capability_id, found.name, found.aliases) == (ID, "fs:ensure_file", ())
    assert (found.code, found.code_hash) == (analysis.code, HASH)
    assert (found.description, found.parameters_schema) == (
        "make sure",
        analysis.parameters_schema,
    )


WAYS = ["fs:ensure", "fs_ensure", UNNAMED, str(ID), str(ID).upper(), f"fs_ensure_{ID.hex[-4:]}"]


@pytest.mark.parametrize("reference", WAYS)
async def test_every_way_to_name_it_leads_to_it(registry: Registry, reference: str) -> None:
    await registry.analysed(analysed())
    await registry.analysed(analysed(name="fs:ensure"))
    assert await registry.meant(reference) == "fs:ensure"


@pytest.mark.parametrize(
    "reference", ["fs:ensur", "Fs_ensure", "fs_ensure_0000", "_ensure", "fs_ensure_", str(OTHER_ID)]
)
async def test_nothing_else_does(registry: Registry, reference: str) -> None:
    await registry.analysed(analysed(name="fs:ensure"))
    assert await registry.meant(reference) is None


async def test_several_are_told_at_once_each_once_in_the_order_asked(registry: Registry) -> None:
    await registry.analysed(analysed(name="fs:ensure"))
    await registry.analysed(analysed(OTHER_HASH, name="fs:tidy"))
    answers = await registry.describe("fs_tidy", "fs:gone", "fs:ensure", "fs_tidy")
    assert [(one.reference, one.capability and one.capability.name) for one in answers] == [
        ("fs_tidy", "fs:tidy"),
        ("fs:gone", None),
        ("fs:ensure", "fs:ensure"),
    ]
    assert await registry.describe() == ()


async def test_of_two_with_one_callable_name_the_one_named_first_has_it(registry: Registry) -> None:
    await registry.analysed(analysed())  # the older one, but it gets its name later
    await registry.analysed(analysed(OTHER_HASH, name="a:b_c"))
    await registry.analysed(analysed(name="a-b:c"))
    assert await registry.meant("a_b_c") == "a:b_c"
    assert await registry.meant(suffixed("a:b_c", OTHER_ID)) == "a:b_c"
    assert await registry.meant(suffixed("a-b:c", ID)) == "a-b:c"
    assert await registry.meant(suffixed("a-b:c", ID, 9)) == "a-b:c"
    assert await registry.meant("a-b:c") == "a-b:c"


async def test_a_name_is_meant_as_it_stands_before_it_is_meant_by_digits(
    registry: Registry,
) -> None:
    await registry.analysed(analysed(name="a:b"))
    await registry.analysed(analysed(OTHER_HASH, name=f"a:b_{ID.hex[-4:]}"))
    assert await registry.meant(f"a_b_{ID.hex[-4:]}") == f"a:b_{ID.hex[-4:]}"
    assert await registry.meant(f"a_b_{ID.hex[-5:]}") == "a:b"


async def test_a_former_name_leads_to_it_and_is_warned_about(
    registry: Registry, caplog: pytest.LogCaptureFixture
) -> None:
    await registry.analysed(analysed())
    await registry.analysed(analysed(name="fs:ensure"))
    with caplog.at_level(logging.WARNING):
        (answer,) = await registry.describe(UNNAMED)
    assert answer.capability is not None
    assert answer.capability.aliases == (UNNAMED,)
    assert "is now fs:ensure" in caplog.text
    assert (await registry.resolve("fs:ensure")).aliases == (UNNAMED,)


async def test_near_names_are_told_in_the_form_that_was_asked(registry: Registry) -> None:
    await registry.analysed(analysed(name="fs:ensure_file"))
    by_name, callable_, neither = await registry.describe("fs:ensure_fil", "fs_ensure_fil", "zzz")
    assert (by_name.near, callable_.near) == (("fs:ensure_file",), ("fs_ensure_file",))
    assert neither.near == ()


async def test_another_scope_is_told_what_it_is_told_of_names_that_nobody_has(
    registry: Registry,
) -> None:
    await registry.analysed(analysed(name="fs:ensure"))
    hidden = await registry.describe("fs_ensure", "fs:ensure", str(ID), scope=ELSEWHERE)
    nobodys = await registry.describe("no_body", "no:body", str(OTHER_ID), scope=ELSEWHERE)
    assert [(one.capability, one.near) for one in hidden] == [(None, ())] * 3
    assert [(one.capability, one.near) for one in nobodys] == [(None, ())] * 3


@pytest.mark.parametrize("name", ["a:b", "a-b-c:d_e", "x9:y_0"])
async def test_both_kinds_of_store_keep_the_shared_rule(registry: Registry, name: str) -> None:
    await registry.analysed(analysed(name=name))
    assert await registry.meant(callable_name(name)) == name


@pytest.mark.parametrize("reference", ["", "a b", "a\x00b", "x" * 257, "\u00e9"])
def test_what_can_name_nothing_is_not_even_asked(reference: str) -> None:
    with pytest.raises(ValidationError):
        DescribeCapabilities(scope=SCOPE, references=(reference,))
