"""Capabilities as typed functions."""

from uuid import UUID

from pml_analysis.capability_types import typed_capabilities, typed_capability
from pml_analysis.typing.declarations import declarations
from pml_common.contracts.capability import CapabilityDescription
from pml_common.contracts.tool import JsonObject

TAKES: JsonObject = {"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]}


def test_a_capability_takes_its_parameters_and_gives_what_its_program_returns() -> None:
    about = CapabilityDescription(
        capability_id=UUID(int=1),
        name="a:b",
        code="return { total: 1 - args.n };",
        code_hash="c0de",
        parameters_schema=TAKES,
    )
    text = declarations((), typed_capabilities({"a_b": about}, ()))
    assert "readonly a_b: (args: { n: number }) => Promise<{ total: number }>;" in text


def test_the_result_of_what_is_unknown_or_too_long_is_anything() -> None:
    for code in ("return args.n.x;", f"return 1;{' ' * 5_000}"):
        assert typed_capability("a:b", code, {}, ()).output_schema is None
