"""Texts of nodes, and code without edges; the patterns are a table of their own."""

from services.analyzer.tests.support.programs import (
    SOURCES_EXAMPLE,
    analysed,
    flow,
    nodes,
    provided,
)


def test_the_sources_example_comes_out_as_they_print_it() -> None:
    analysis = analysed(SOURCES_EXAMPLE)
    assert nodes(analysis) == "n1 fs:stat, d1 file.exists, n2 fs:read, n3 fs:create, n4 fs:write"
    assert flow(analysis) == "n1>d1 d1>n2:true d1>n3:false n3>n4"


def test_no_reference_means_no_provides_edge_whatever_schemas_would_fit() -> None:
    assert provided(analysed(SOURCES_EXAMPLE)) == ""
