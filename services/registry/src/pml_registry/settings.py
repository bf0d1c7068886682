"""The registry's settings."""

from pathlib import Path
from typing import Final, Literal, Self

from pydantic import Field, SecretStr, field_validator, model_validator

from pml_common.service import StorageSettings

LOCAL_MODEL: Final = "all-MiniLM-L6-v2"
"""The embedding model that needs no network."""


class RegistrySettings(StorageSettings):
    """Settings common to services with storage, and those of versions and of curation; times in
    seconds.

    Versions are signed with the key of `signing_key`, as messages are.
    """

    registry_verified_runs: int = Field(
        default=5, ge=1, description="last runs of a version that must have succeeded: `verified`"
    )
    registry_signed_mark: Path | None = Field(
        default=None,
        description="File that is made once all versions are signed. Where it is missing, versions "
        "without a signature are signed at the start; else, and without this, they are refused.",
    )
    registry_vector_index: Literal["postgres", "qdrant"] = Field(
        default="postgres",
        description="Where vectors are searched; Postgres holds them either way.",
    )
    registry_qdrant_url: str | None = Field(
        default=None, description="The Qdrant server, as http://host:6333."
    )
    registry_qdrant_api_key: SecretStr | None = None
    registry_index_timeout_s: float = Field(
        default=1.0,
        gt=0,
        description="Bound of one search in Qdrant; updates may take ten times it.",
    )
    registry_embedding_url: str | None = Field(
        default=None,
        description="An OpenAI-compatible endpoint that computes embeddings, as http://host/v1.",
    )
    registry_embedding_model: str = Field(
        default=LOCAL_MODEL,
        min_length=1,
        description="The embedding model: the local one, or one at the endpoint.",
    )
    registry_embedding_api_key: SecretStr | None = None
    registry_embedding_batch: int = Field(
        default=32, ge=1, le=2048, description="Texts in one request to the endpoint."
    )
    registry_embedding_timeout_s: float = Field(
        default=10.0, gt=0, description="Bound of one request to the endpoint."
    )
    registry_embedding_retries: int = Field(
        default=2, ge=0, le=10, description="Repetitions of a request where the endpoint is busy."
    )
    registry_embedding_wait_s: float = Field(
        default=2.0,
        gt=0,
        lt=4.0,
        description="Bound of what a search, or what is stored, waits for the endpoint; a search "
        "waits at most 4 s for any embedder.",
    )
    registry_curation_after: int = Field(
        default=20,
        ge=0,
        description="Suggest names once so many capabilities of a scope have none. 0: never.",
    )
    registry_curation_url: str | None = Field(
        default=None,
        description="An OpenAI-compatible endpoint that proposes names, as http://host/v1.",
    )
    registry_curation_model: str = Field(default="", description="The model's name there.")
    registry_curation_api_key: SecretStr | None = None
    registry_curation_timeout_s: float = Field(default=20.0, gt=0)

    @field_validator(
        "registry_curation_url",
        "registry_curation_api_key",
        "registry_qdrant_url",
        "registry_qdrant_api_key",
        "registry_embedding_url",
        "registry_embedding_api_key",
        mode="before",
    )
    @classmethod
    def _empty_is_unset(cls, value: object) -> object:
        return value or None

    @model_validator(mode="after")
    def _has_addresses(self) -> Self:
        if self.registry_vector_index == "qdrant" and self.registry_qdrant_url is None:
            raise ValueError("PML_REGISTRY_VECTOR_INDEX=qdrant needs PML_REGISTRY_QDRANT_URL")
        if self.registry_embedding_model != LOCAL_MODEL and self.registry_embedding_url is None:
            raise ValueError(
                f"the embedding model {self.registry_embedding_model} needs "
                f"PML_REGISTRY_EMBEDDING_URL; without an endpoint there is {LOCAL_MODEL} alone"
            )
        return self
