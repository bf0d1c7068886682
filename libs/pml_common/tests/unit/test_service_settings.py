"""Settings that all services share."""

from pathlib import Path

import pytest

from pml_common.service import ServiceSettings


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
