"""What a dry run's calls are answered with (B10)."""

from typing import Final

from pydantic import JsonValue

from pml_common.contracts.decision import Decision, DryRun

MOCK: Final[JsonValue] = {"success": True, "mocked": True}


def mocks_of(decision: Decision, dry_run: DryRun | None) -> dict[str, tuple[JsonValue, ...]]:
    """The tools that are not called, each with its answers, one after another; the last one stays.

    A list of the caller's is such a sequence: a tool that answers a list gets a list of lists.
    """
    if dry_run is None:
        return {}
    given = dry_run.mocks
    return {
        tool.tool: _answers(given.get(tool.tool, MOCK)) for tool in decision.tools if tool.mocked
    }


def _answers(given: JsonValue) -> tuple[JsonValue, ...]:
    return tuple(given) if isinstance(given, list) and given else (given,)
