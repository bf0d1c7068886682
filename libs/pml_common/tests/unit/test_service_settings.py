"""Settings that all services share."""

from pathlib import Path

import pytest

from pml_common.secret_files import secret_variables
from pml_common.service import ServiceSettings, StorageSettings
from pml_common.settings_at_start import read_settings


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


def _as_it_is(*_: object) -> None:
    """Leave logging as the test has it."""


def test_settings_that_cannot_be_used_end_the_start_with_a_line_that_names_each(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("pml_common.settings_at_start.set_up_logging", _as_it_is)
    monkeypatch.setenv("PML_STREAM_REPLICAS", "many")
    monkeypatch.setenv("PML_METRICS", "perhaps")
    with pytest.raises(SystemExit) as ended:
        read_settings("learner", ServiceSettings)
    assert ended.value.code == 1
    assert caplog.messages == [
        "cannot start: PML_STREAM_REPLICAS: must be a whole number; PML_METRICS: must be 'on' or "
        "'off'"
    ]
    monkeypatch.delenv("PML_STREAM_REPLICAS")
    monkeypatch.setenv("PML_METRICS", "off")
    assert read_settings("learner", ServiceSettings).metrics == "off"


def test_a_folder_of_secrets_that_is_missing_ends_the_start_with_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("pml_common.settings_at_start.set_up_logging", _as_it_is)
    monkeypatch.setenv("PML_SECRETS_DIR", str(tmp_path / "none"))
    with pytest.raises(SystemExit):
        read_settings("learner", ServiceSettings)
    assert "is no folder: mount the secrets there" in caplog.text


def test_without_a_folder_there_are_no_secrets_in_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PML_SECRETS_DIR", raising=False)
    assert secret_variables() == {}
