"""The scope's tools, and what to say of one that is not there."""

from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from typing import Final

from pml_analyzer.domain.calls import CallSite
from pml_analyzer.domain.problems import Problem
from pml_common.contracts.tool import ToolDefinition

NO_TOOLS: Final = (
    "no tools are connected. Name MCP servers in the mcpServers file that the gateway reads, "
    "in the form that MCP clients use, and start it again."
)
_LONGEST_NAME: Final = 100
_MOST_NAMES: Final = 8


class Toolbox:
    """Tools by server and name."""

    def __init__(self, tools: Sequence[ToolDefinition]) -> None:
        self._servers: dict[str, dict[str, ToolDefinition]] = {}
        for tool in tools:
            self._servers.setdefault(tool.server, {})[tool.name] = tool

    @property
    def tools(self) -> Sequence[ToolDefinition]:
        """All of them, by server."""
        return [tool for known in self._servers.values() for tool in known.values()]

    def __contains__(self, site: CallSite) -> bool:
        return site.tool in self._servers.get(site.server, {})

    def __getitem__(self, site: CallSite) -> ToolDefinition:
        """The tool that a site calls, of a site that is not missing."""
        return self._servers[site.server][site.tool]

    def missing(self, sites: Sequence[CallSite]) -> Iterator[Problem]:
        """A problem for every site whose tool is not there; each name is explained once."""
        explained: dict[tuple[str, str], str] = {}
        for site in sites:
            if site not in self:
                name = (site.server, site.tool)
                if name not in explained:
                    explained[name] = self._explain(*name)
                yield Problem(site.callee.start, explained[name])

    def _explain(self, server: str, tool: str) -> str:
        shown = f"{server}:{tool}"[:_LONGEST_NAME]
        if not self._servers:
            return f"{shown} cannot be called: {NO_TOOLS}"
        known = self._servers.get(server)
        if known is None:
            near = self._same_tool_elsewhere(tool) + self._alike(server, tool)
            hint = _did_you_mean(near) or f"Connected: {_listed(self._servers)}."
            return f"There is no server {_quoted(server)}. {hint}"
        near = [f"{server}:{name}" for name in _close(tool, known)]
        hint = _did_you_mean(near + self._same_tool_elsewhere(tool)) or (
            f"It has: {_listed(known)}."
        )
        return f"{_quoted(server)} has no tool {_quoted(tool)}. {hint}"

    def _same_tool_elsewhere(self, tool: str) -> list[str]:
        return [f"{server}:{tool}" for server, known in self._servers.items() if tool in known]

    def _alike(self, server: str, tool: str) -> list[str]:
        """Tools of servers with a similar name, and those servers themselves."""
        found: list[str] = []
        for near in _close(server, self._servers):
            tools = _close(tool, self._servers[near])
            found += [f"{near}:{name}" for name in tools[:1]] or [near]
        return found


def _close(name: str, known: Iterable[str]) -> list[str]:
    return get_close_matches(name[:_LONGEST_NAME], known, n=3)


def _quoted(name: str) -> str:
    return f'"{name[:_LONGEST_NAME]}"'


def _did_you_mean(near: Sequence[str]) -> str:
    names = list(dict.fromkeys(near))[:3]
    return f"Did you mean {' or '.join(names)}?" if names else ""


def _listed(names: Iterable[str]) -> str:
    found = sorted(names)
    more = f" and {len(found) - _MOST_NAMES} more" if len(found) > _MOST_NAMES else ""
    return ", ".join(found[:_MOST_NAMES]) + more
