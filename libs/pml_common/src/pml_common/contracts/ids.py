"""Ids derived from names (uuid5), so that services agree on them without communication."""

from functools import lru_cache
from uuid import UUID, uuid5

from pml_common.contracts.scope import Scope

_NAMESPACE = UUID("6f1d2f0e-7c7b-5c39-9b1a-0d6b3a3f8e51")


def scoped_id(scope: Scope, *parts: str) -> UUID:
    """Return the id of the object that `parts` name inside `scope`."""
    return uuid5(_NAMESPACE, "\x1f".join((scope.org, scope.project, *parts)))


def workflow_id(scope: Scope, principal: str, idempotency_key: str) -> UUID:
    """Return the id of the workflow that a principal requested under `idempotency_key`."""
    return effect_id(scoped_id(scope, "workflows", principal), idempotency_key)


def former_workflow_id(scope: Scope, idempotency_key: str) -> UUID:
    """Return the id of a workflow of before keys were a principal's own."""
    return scoped_id(scope, "workflow", idempotency_key)


def capability_id(scope: Scope, code_hash: str) -> UUID:
    """Return the id of the capability whose code has this normal-form hash."""
    return scoped_id(scope, "capability", code_hash)


def record_id(cause: UUID) -> UUID:
    """Return the id of the record that `cause` makes."""
    return effect_id(cause, "record")


def effect_id(cause: UUID, effect: str) -> UUID:
    """Return the id of an effect of `cause`; a redelivered cause yields the same id."""
    return uuid5(cause, effect)


@lru_cache(maxsize=1024)
def root_trace_id(workflow: UUID) -> UUID:
    """Return the id of the trace of a workflow's outermost capability."""
    return effect_id(workflow, "trace")


@lru_cache(maxsize=1024)
def call_trace_id(workflow: UUID, node_id: str, occurrence: int) -> UUID:
    """Return the id of one call of one node; doubles as the tool call's idempotency key."""
    return effect_id(workflow, f"call/{node_id}/{occurrence}")


def nested_trace_id(workflow: UUID, node_id: str, occurrence: int) -> UUID:
    """Return the id of the trace of one call of a capability."""
    return effect_id(workflow, f"capability/{node_id}/{occurrence}")
