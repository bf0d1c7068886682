"""The tools that `tools/list` has."""

import pytest

from pml_common.contracts.tool import ToolDefinition
from pml_gateway.domain.api.errors import InvalidRequest
from pml_gateway.domain.api.listed_tools import (
    AUTO_CHARACTERS,
    ListMode,
    has_upstream_tools,
    list_mode,
)

SMALL = ToolDefinition(server="fs", name="read")
LARGE = SMALL.model_copy(update={"description": "x" * AUTO_CHARACTERS})


@pytest.mark.parametrize(
    ("parameter", "header", "mode"),
    [
        (None, None, "auto"),
        ("meta", None, "meta"),
        (None, "all", "all"),
        ("all", "meta", "all"),
    ],
)
def test_the_url_counts_before_the_header_before_the_setting(
    parameter: str | None, header: str | None, mode: ListMode
) -> None:
    assert list_mode(parameter, header, "auto") == mode


def test_another_mode_is_refused_with_those_that_exist() -> None:
    with pytest.raises(InvalidRequest, match="tools is 'few': it is one of all, meta and auto"):
        list_mode("few", None, "all")


def test_auto_lists_the_servers_tools_while_they_are_few() -> None:
    assert has_upstream_tools("auto", [SMALL])
    assert not has_upstream_tools("auto", [SMALL, LARGE])
    assert has_upstream_tools("all", [LARGE])
    assert not has_upstream_tools("meta", [SMALL])
