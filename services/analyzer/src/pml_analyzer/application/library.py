"""The capabilities that a program reaches, looked up level by level."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from pml_analysis.decision.capabilities import (
    MAX_CAPABILITIES,
    MAX_DEPTH,
    Capability,
    Library,
    is_valid_reference,
)
from pml_analysis.text.limits import Limits
from pml_analyzer.ports import Capabilities, Engine
from pml_common.contracts.scope import Scope

_MAX_PROGRAMS: Final = 4
"""Length of all programs read for one caller, as a multiple of the maximum length of a program."""

_TOO_LONG: Final = "its program and those before it are too long to be read for one program."


async def library_for(
    scope: Scope,
    principal: str,
    references: Sequence[str],
    capabilities: Capabilities,
    limits: Limits,
    engine: Engine,
) -> Library:
    """Look up the named capabilities, those named in their programs, and so on down to the maximum
    depth.

    Beyond the maximum number, returns enough to detect the excess; beyond the total length of
    programs, marks the rest with a fault.
    """
    left = _MAX_PROGRAMS * limits.source_bytes
    found: dict[str, Capability] = {}
    near: dict[str, Sequence[str]] = {}
    refused: dict[str, str] = {}
    notices: dict[str, Sequence[str]] = {}
    known: dict[UUID, Capability] = {}
    wanted = references
    for _ in range(MAX_DEPTH):
        fresh = [
            name for name in dict.fromkeys(wanted) if name not in found and is_valid_reference(name)
        ]
        if not fresh:
            break
        below: list[str] = []
        for reference, answer in (
            await capabilities.describe(scope, principal, fresh[: MAX_CAPABILITIES + 1])
        ).items():
            about = answer.capability
            if answer.refused is not None:
                refused[reference] = answer.refused
                continue
            if about is None:
                near[reference] = answer.near
                continue
            notices[reference] = answer.notices
            if about.capability_id not in known:
                left -= len(about.code)
                known[about.capability_id] = (
                    await engine.read_capability(scope, about, limits)
                    if left >= 0
                    else Capability(about, fault=_TOO_LONG)
                )
            found[reference] = known[about.capability_id]
            below += found[reference].references
        wanted = below
    return Library(found, near, refused, notices)
