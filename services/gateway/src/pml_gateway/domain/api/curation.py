"""Requests to name and save capabilities, for the tools `learn:*`, and the queries that they
become."""

from typing import Annotated, Literal, Self
from uuid import UUID

from pydantic import Field, model_validator

from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.capability import WholeTag
from pml_common.contracts.curation import (
    MAX_CURATED,
    Curate,
    LiftCapability,
    NameChoice,
    SaveCapability,
)
from pml_common.contracts.scope import Scope
from pml_gateway.domain.api.api import NewName
from pml_gateway.domain.api.records import Named
from pml_gateway.domain.api.request import Request


class CurateNames(Request):
    """Name capabilities that have none."""

    mode: Annotated[
        Literal["suggest", "auto", "apply"],
        Field(
            description="`suggest` names with reasons; `auto`: give those of at least "
            "`min_confidence`; `apply`: give `names`."
        ),
    ] = "suggest"
    names: Annotated[tuple[NameChoice, ...], Field(max_length=MAX_CURATED)] = ()
    min_confidence: Annotated[float, Field(ge=0, le=1)] = 0.8
    min_usage: Annotated[int, Field(ge=0, description="Runs that a capability must have.")] = 0
    limit: Annotated[int, Field(ge=1, le=MAX_CURATED)] = 50

    @model_validator(mode="after")
    def _names_to_apply(self) -> Self:
        if (self.mode == "apply") != bool(self.names):
            raise ValueError("give `names` for the mode `apply`, and for it alone")
        return self

    def query(self, scope: Scope, principal: str) -> Curate:
        """Build the query to the registry."""
        return Curate(
            scope=scope,
            principal=principal,
            mode=self.mode,
            names=self.names,
            min_confidence=self.min_confidence,
            min_usage=self.min_usage,
            limit=self.limit,
        )


class LiftVariants(Request):
    """Make one program of a capability and its variants."""

    name: Named

    def query(self, scope: Scope, principal: str) -> LiftCapability:
        """Build the query to the registry."""
        return LiftCapability(scope=scope, principal=principal, reference=self.name)


class SaveProgram(Request):
    """Name a program that has succeeded."""

    name: NewName
    workflow_id: Annotated[
        UUID | None, Field(description="The workflow whose program is saved.")
    ] = None
    capability: Annotated[Named | None, Field(description="Or the capability that is.")] = None
    update: Annotated[
        bool, Field(description="Make the next version where other code of yours has the name.")
    ] = False
    version_tag: WholeTag | None = None
    change_summary: Annotated[str, Field(max_length=2000)] = ""
    lift: Annotated[
        bool,
        Field(
            description="Save the one program that it makes with those that differ from it by "
            "literals alone: these become parameters."
        ),
    ] = False

    @model_validator(mode="after")
    def _one_program(self) -> Self:
        if (self.workflow_id is None) == (self.capability is None):
            raise ValueError("give either workflow_id or capability")
        return self

    def query(
        self, scope: Scope, principal: str, lifted: ExecutionAnalyzed | None = None
    ) -> SaveCapability:
        """Build the query to the registry; `lifted` is the analysis of the lifted program."""
        return SaveCapability(
            scope=scope,
            principal=principal,
            name=self.name,
            workflow_id=self.workflow_id,
            reference=self.capability,
            lifted=lifted,
            update=self.update,
            version_tag=self.version_tag,
            change_summary=self.change_summary,
        )
