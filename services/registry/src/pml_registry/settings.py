"""The registry's settings."""

from pathlib import Path

from pydantic import Field, SecretStr, field_validator

from pml_common.service import StorageSettings


class RegistrySettings(StorageSettings):
    """Settings common to services with storage, and those of versions and of curation; times in
    seconds.

    Versions are signed with the key of `signing_key`, as messages are.
    """

    registry_owner_dsn: str | None = Field(
        default=None,
        description="The DSN of the schema's owner, for migrations; without it, `postgres_dsn`.",
    )
    registry_verified_runs: int = Field(
        default=5, ge=1, description="last runs of a version that must have succeeded: `verified`"
    )
    registry_signed_mark: Path | None = Field(
        default=None,
        description="File that is made once all versions are signed. Where it is missing, versions "
        "without a signature are signed at the start; else, and without this, they are refused.",
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
        "registry_owner_dsn", "registry_curation_url", "registry_curation_api_key", mode="before"
    )
    @classmethod
    def _empty_is_unset(cls, value: object) -> object:
        return value or None
