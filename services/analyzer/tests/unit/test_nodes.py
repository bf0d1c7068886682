"""The positions and texts of nodes."""

from pml_common.contracts.structure import DecisionNode, StaticStructure
from services.analyzer.tests.support.programs import SOURCES_EXAMPLE, analysed


def test_places_count_lines_and_code_points_from_one() -> None:
    analysis = analysed(
        "const é = '\U0001f600';\n  await mcp.fs.stat({});\r\n/* \U0001f600 */ if (é) {}"
    )
    places = [(node.id, node.line, node.column) for node in analysis.structure.nodes]
    assert places == [("n1", 2, 9), ("d1", 3, 9)]


def test_a_condition_is_shown_on_one_line_and_not_endlessly() -> None:
    (node,) = analysed(f"if (a &&\n   b || '{'x' * 500}') {{}}").structure.nodes
    assert isinstance(node, DecisionNode)
    assert node.condition.startswith("a && b || 'xxx")
    assert len(node.condition) == 201


def test_a_structure_survives_its_json() -> None:
    structure = analysed(SOURCES_EXAMPLE).structure
    again = StaticStructure.model_validate_json(structure.model_dump_json(by_alias=True))
    assert again == structure
