"""Typed tools: their declarations, and a program checked against them."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import cast

from deno import find_deno_bin

from pml_analysis.analysis import Analysis, Rejection
from pml_analysis.capability_types import typed_capability
from pml_analysis.typing.declarations import NONE, declarations
from pml_checker.checker_process import CheckerCommand
from pml_checker.deno_checker import CheckerLimits, deno_checker
from pml_checker.type_check import TypeCheck
from pml_cli.client import Client, Json
from pml_cli.documents import read_tools
from pml_cli.output import Output
from pml_common.contracts.callable_names import callable_names
from pml_common.contracts.capability import CapabilityRecord
from pml_common.contracts.registry import CapabilityPage
from pml_common.contracts.tool import ToolDefinition

_PAGE = 200
_MOST_CAPABILITIES = 1_000
_PATIENCE_S = 30.0
"""The checker starts for this one program."""


def types(client: Client, out: Output, catalog: str | None) -> None:
    """Print the declarations of a catalogue's tools, else of those connected to the gateway, for
    an editor or an agent."""
    text = _of_stack(client) if catalog is None else declarations(read_tools(catalog))
    if out.as_json:
        out.show({"declarations": text})
    else:
        out.document(text)


def _of_stack(client: Client) -> str:
    """Return the declarations of the connected tools and the listed capabilities."""
    tools = _connected(client)
    records = _listed(client)
    names = callable_names([(one.record_id, one.name) for one in records])
    by_id = {
        one.record_id: typed_capability(
            one.name, one.code, one.parameters_schema, tools, one.description
        )
        for one in records
    }
    typed = {name: by_id[record_id] for name, record_id in names.items()}
    return declarations(tools, {**typed, **{one.name: one for one in typed.values()}})


def _listed(client: Client) -> Sequence[CapabilityRecord]:
    """Return the most used capabilities."""
    records: list[CapabilityRecord] = []
    cursor: str | None = None
    while len(records) < _MOST_CAPABILITIES:
        answer = client.get("/api/capabilities", limit=_PAGE, cursor=cursor)
        page = CapabilityPage.model_validate(answer)
        records += page.capabilities
        cursor = page.next_cursor
        if cursor is None:
            break
    return records


def _connected(client: Client) -> Sequence[ToolDefinition]:
    listed = cast(list[Json], client.get("/api/tools")["tools"])
    return [ToolDefinition.model_validate(one) for one in listed]


def checked(
    found: Analysis | Rejection,
    tools: Sequence[ToolDefinition],
    capabilities: Mapping[str, ToolDefinition] = NONE,
) -> Analysis | Rejection:
    """Return the analysis of a program, or a rejection if it has type errors."""
    return asyncio.run(_checked(found, tools, capabilities))


async def _checked(
    found: Analysis | Rejection,
    tools: Sequence[ToolDefinition],
    capabilities: Mapping[str, ToolDefinition],
) -> Analysis | Rejection:
    limits = CheckerLimits(patience_s=_PATIENCE_S)
    async with deno_checker(CheckerCommand(find_deno_bin()), limits) as checker:
        return await TypeCheck(checker, reject=True).of(found, tools, capabilities)
