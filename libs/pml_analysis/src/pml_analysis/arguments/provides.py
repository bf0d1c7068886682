"""Provides pass: edges from each call to the calls that use its result, and their coverage of
the required inputs."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from pml_analysis.arguments.data_flow import DataFlow
from pml_analysis.arguments.data_flow_edges import Use, edges_of_uses, uses_in
from pml_analysis.decision.toolbox import Toolbox
from pml_analysis.names.origins import Origins
from pml_analysis.structure.calls import CallSite
from pml_analysis.structure.expansion import Instance
from pml_common.contracts.structure import Edge


def provides_edges(
    sites: Mapping[str, tuple[CallSite, Instance]],
    origins: Origins,
    flow: DataFlow,
    toolbox: Toolbox,
    *,
    limit: int,
) -> list[Edge]:
    """Build an edge for every call whose result is used in the arguments of another, in source
    order.

    `sites` is by node id. Raises TooManyEdges beyond `limit`.
    """

    def uses() -> Iterator[tuple[str, Sequence[Use]]]:
        for node_id, (site, at) in sites.items():
            exact, producers = partial(flow.exact, at=at), partial(flow.producers, at=at)
            yield node_id, uses_in(site.argument, origins, exact, producers)

    tools = {node_id: toolbox.signature(site) for node_id, (site, _) in sites.items()}
    return edges_of_uses(uses(), tools, limit=limit)
