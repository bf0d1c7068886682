"""Provides edges: a tool's result can feed another tool's input, by their schemas."""

from typing import Literal

from pydantic import AliasChoices, Field

from pml_common.contracts.base import Contract
from pml_common.contracts.structure import Coverage, FieldMapping
from pml_common.contracts.tool import JsonObject


class ProvidesEdge(Contract):
    """A relation between two tools of a catalog, by id; both schemas are included for filling in
    the arguments."""

    from_: str = Field(validation_alias=AliasChoices("from", "from_"), serialization_alias="from")
    to: str
    type: Literal["provides"] = "provides"
    coverage: Coverage
    provider_output_schema: JsonObject
    consumer_input_schema: JsonObject
    field_mapping: tuple[FieldMapping, ...]
