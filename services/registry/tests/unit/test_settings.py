"""The registry's settings."""

import pytest

from pml_registry.settings import RegistrySettings


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
