"""Sources of programs, in words."""

import pytest

from pml_cli.render.sources import source_text
from pml_common.contracts.source import CapabilitySource, FromCode, FromDag, FromTool


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (FromCode(), "code"),
        (FromDag(dag={"tasks": [{}, {}, {}]}), "dag of 3 tasks"),
        (FromDag(dag={"tasks": [{}]}), "dag of 1 task"),
        (FromDag(dag={}), "dag"),
        (FromTool(tool_id="fs:read"), "tool fs:read"),
        (
            FromTool(tool_id="fs:read", default_args={"path": "/", "head": 3}),
            "tool fs:read with defaults for path, head",
        ),
    ],
)
def test_a_source_is_described_in_a_line(source: CapabilitySource, text: str) -> None:
    assert source_text(source) == text
