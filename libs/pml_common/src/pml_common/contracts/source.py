"""Sources of programs: how the request that brought one gave it."""

from typing import Annotated, Literal

from pydantic import Field

from pml_common.contracts.base import Contract
from pml_common.contracts.tool import JsonObject

SourceType = Literal["code", "dag", "tool"]


class FromCode(Contract):
    """The program was sent as it is."""

    type: Literal["code"] = "code"


class FromDag(Contract):
    """The program was compiled from this DAG, in the JSON of the request: `{"tasks": [...]}`."""

    type: Literal["dag"] = "dag"
    dag: JsonObject


class FromTool(Contract):
    """The program calls this tool (`server:tool`) with these arguments, overridden by its own."""

    type: Literal["tool"] = "tool"
    tool_id: str
    default_args: JsonObject = Field(default_factory=dict)


CapabilitySource = Annotated[FromCode | FromDag | FromTool, Field(discriminator="type")]
"""Tells about a program; neither its identity nor what it may do follows from it."""
