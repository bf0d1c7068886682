"""An analysis as JSON, for offline readers."""

from collections.abc import Iterable
from typing import Final

from pydantic import JsonValue

from pml_analysis.analysis import Analysis, Rejection
from pml_common.contracts.base import Contract
from pml_common.contracts.tool import JsonObject

_DECISION: Final = {"verdict", "reasons", "tools"}
"""Fields of a decision; run-time questions are the executor's matter."""


def to_json(outcome: Analysis | Rejection) -> JsonObject:
    """Build an object that always has every key; for a rejected program all but `diagnostics` are
    null."""
    if isinstance(outcome, Rejection):
        nothing: JsonObject = dict.fromkeys(
            ("static_structure", "dynamic_calls", "decision", "parameters_schema", "code_hash")
        )
        return {**nothing, "instrumented": None, "diagnostics": _list(outcome.diagnostics)}
    return {
        "static_structure": _object(outcome.structure),
        "dynamic_calls": _list(outcome.dynamic_calls),
        "diagnostics": _list(outcome.diagnostics),
        "decision": outcome.decision.model_dump(mode="json", include=_DECISION),
        "parameters_schema": outcome.parameters_schema,
        "code_hash": outcome.code_hash,
        "instrumented": outcome.instrumented,
    }


def _object(contract: Contract) -> JsonValue:
    return contract.model_dump(mode="json", by_alias=True)


def _list(contracts: Iterable[Contract]) -> JsonValue:
    return [_object(contract) for contract in contracts]
