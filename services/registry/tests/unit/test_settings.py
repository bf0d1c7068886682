"""The registry's settings."""

import pytest

from pml_registry.adapters.minilm import MiniLmEmbedder
from pml_registry.application.searching import EMBED_WITHIN_S
from pml_registry.settings import LOCAL_MODEL, RegistrySettings


def test_curation_is_by_rules_unless_an_endpoint_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PML_POSTGRES_DSN", "postgresql://localhost/pml")
    monkeypatch.setenv("PML_REGISTRY_CURATION_URL", "")
    settings = RegistrySettings()
    assert (settings.registry_curation_url, settings.registry_curation_after) == (None, 20)
    monkeypatch.setenv("PML_REGISTRY_CURATION_URL", "http://localhost:9/v1")
    monkeypatch.setenv("PML_REGISTRY_CURATION_API_KEY", "secret")
    chosen = RegistrySettings()
    assert chosen.registry_curation_url == "http://localhost:9/v1"
    assert "secret" not in repr(chosen)


def test_the_defaults_need_neither_qdrant_nor_an_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PML_POSTGRES_DSN", "postgresql://localhost/pml")
    settings = RegistrySettings()
    assert settings.registry_vector_index == "postgres"
    assert settings.registry_embedding_model == LOCAL_MODEL == MiniLmEmbedder.model_name


@pytest.mark.parametrize(
    ("name", "value", "missing"),
    [
        ("PML_REGISTRY_VECTOR_INDEX", "qdrant", "PML_REGISTRY_QDRANT_URL"),
        ("PML_REGISTRY_EMBEDDING_MODEL", "small", "PML_REGISTRY_EMBEDDING_URL"),
    ],
)
def test_what_needs_a_server_names_the_setting_of_its_address(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, missing: str
) -> None:
    monkeypatch.setenv("PML_POSTGRES_DSN", "postgresql://localhost/pml")
    monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match=missing):
        RegistrySettings()
    monkeypatch.setenv(missing, "http://localhost:9")
    assert RegistrySettings().model_dump()[name.removeprefix("PML_").lower()] == value


def test_the_wait_for_an_endpoint_ends_before_that_of_a_search(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PML_POSTGRES_DSN", "postgresql://localhost/pml")
    monkeypatch.setenv("PML_REGISTRY_EMBEDDING_WAIT_S", str(EMBED_WITHIN_S))
    with pytest.raises(ValueError, match="less than 4"):
        RegistrySettings()
