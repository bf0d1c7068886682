"""Which calls may be made again."""

from pml_common.contracts.tool import ToolAnnotations, ToolDefinition
from pml_gateway.domain.repeatable import repeatable, repeatable_among
from services.gateway.tests.examples import READ, TOOLS, WRITE, analyzed, workflow


def test_only_what_says_so_itself_may_be_called_again() -> None:
    idempotent = ToolDefinition(server="a", name="b", annotations=ToolAnnotations(idempotent=True))
    assert repeatable(READ)
    assert repeatable(idempotent)
    assert not repeatable(WRITE)
    assert not repeatable(None)


def test_of_a_program_the_repeatable_tools_are_told() -> None:
    analysis = analyzed(workflow(), tools=(READ, WRITE))
    assert repeatable_among(analysis, TOOLS.get) == ("fs:read",)
    assert repeatable_among(None, TOOLS.get) == ()
