"""Stores of logins: in the process and in files."""

from pathlib import Path

import pytest

from pml_gateway.adapters.login_files import LoginFiles
from pml_gateway.adapters.process_logins import ProcessLogins
from pml_gateway.ports import Login, Logins

LOGIN = Login(
    url="https://mcp.example/mcp",
    tokens={"access_token": "hush", "token_type": "Bearer", "expires_in": 3600},
    client={"client_id": "c", "redirect_uris": ["http://127.0.0.1:1/callback"]},
    expires_at=1795000000.5,
    authorization_server={"issuer": "https://as.example"},
)


@pytest.fixture(params=["process", "files"])
def logins(request: pytest.FixtureRequest, tmp_path: Path) -> Logins:
    """Each store, empty."""
    return ProcessLogins() if request.param == "process" else LoginFiles(tmp_path / "logins")


async def test_a_login_is_kept_replaced_and_forgotten(logins: Logins) -> None:
    assert await logins.find("box") is None
    await logins.forget("box")
    await logins.keep("box", LOGIN)
    await logins.keep("other", LOGIN)
    assert await logins.find("box") == LOGIN
    later = Login(url="https://mcp.example/other", tokens={}, client={})
    await logins.keep("box", later)
    assert await logins.find("box") == later
    await logins.forget("box")
    assert await logins.find("box") is None
    assert await logins.find("other") == LOGIN


async def test_a_file_that_cannot_be_read_is_no_login(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "box.json").write_text('{"url": "hush"}')
    assert await LoginFiles(tmp_path).find("box") is None
    assert "the login at box cannot be read" in caplog.text
    assert "hush" not in caplog.text


def test_secrets_stay_out_of_what_is_printed() -> None:
    assert "hush" not in repr(LOGIN)
    assert "client_id" not in repr(LOGIN)
