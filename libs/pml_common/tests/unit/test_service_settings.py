"""Settings that all services share."""

from pathlib import Path

import pytest

from pml_common.secret_files import secret_variables
from pml_common.service import ServiceSettings, StorageSettings


@pytest.mark.parametrize(
    ("variable", "folders"),
    [(None, {}), ("", {}), ("/run/pml", {"gateway": Path("/run/pml")})],
)
def test_sockets_are_used_where_their_folder_is_named(
    variable: str | None, folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    if variable is None:
        monkeypatch.delenv("PML_GATEWAY_SOCKETS", raising=False)
    else:
        monkeypatch.setenv("PML_GATEWAY_SOCKETS", variable)
    assert ServiceSettings().sockets == folders


@pytest.mark.parametrize(
    ("value", "endpoint"), [("", None), ("http://collector", "http://collector")]
)
def test_an_empty_endpoint_exports_nothing(
    value: str, endpoint: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", value)
    settings = ServiceSettings()
    assert (settings.otlp_endpoint, settings.metrics_endpoint) == (endpoint, endpoint)


def test_settings_are_read_from_files_of_their_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PML_POSTGRES_DSN", raising=False)
    monkeypatch.setenv("PML_NATS_URL", "nats://from-the-environment")
    monkeypatch.setenv("PML_SECRETS_DIR", str(tmp_path))
    (tmp_path / "PML_POSTGRES_DSN").write_text("postgresql://from-a-file\n")
    (tmp_path / "PML_NATS_URL").write_text("nats://from-a-file")
    (tmp_path / "..data").mkdir()  # as a kubelet mounts them
    settings = StorageSettings()
    assert settings.postgres_dsn == "postgresql://from-a-file"
    assert settings.nats_url == "nats://from-the-environment"
    assert secret_variables()["PML_NATS_URL"] == "nats://from-a-file"


def test_a_folder_of_secrets_that_is_missing_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PML_SECRETS_DIR", str(tmp_path / "none"))
    with pytest.raises(ValueError, match="is no folder: mount the secrets there"):
        ServiceSettings()


def test_without_a_folder_there_are_no_secrets_in_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PML_SECRETS_DIR", raising=False)
    assert secret_variables() == {}
