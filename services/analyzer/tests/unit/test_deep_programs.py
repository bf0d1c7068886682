"""Programs that nest deeper than in practice."""

from pml_analysis.capability_reading import code_hash_of
from pml_common.contracts.structure import ReferenceArgument, TaskNode
from services.analyzer.tests.support.programs import analysed


def test_what_nests_too_deep_has_no_hash() -> None:
    assert code_hash_of("return [];") is not None
    assert code_hash_of(f"return {'[' * 2000}{']' * 2000};") is None


def test_a_part_of_lists_in_lists_without_end_is_computed() -> None:
    """It may be changed under a name that is not followed so far."""
    deep = 12
    waiting = f"{'Promise.all([' * deep}mcp.fs.read({{}}){'])' * deep}"
    code = (
        f"const x = (await {waiting}){'[0]' * deep}; x.path = 1; mcp.fs.stat({{ path: x.path }});"
    )
    calls = [node for node in analysed(code).structure.nodes if isinstance(node, TaskNode)]
    path = calls[-1].arguments["path"]
    assert isinstance(path, ReferenceArgument)
    assert path.path is None
