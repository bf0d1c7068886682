"""The client's way to a gateway: addresses, logins and proxies."""

import pytest

from libs.pml_cli.tests.support.fakes import Gateway
from pml_cli.client import Client
from pml_cli.errors import UNREACHABLE, CommandError


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def test_paths_and_parameters_are_encoded_and_follow_the_urls_own_path(gateway: Gateway) -> None:
    gateway.answers["GET /deep/api/capabilities/f%20s:%C3%A9"] = (200, {})
    Client(f"{gateway.url}/deep/").get("/api/capabilities/f s:é", tags=["a b", "c"], cursor=None)
    assert gateway.asked == [("GET /deep/api/capabilities/f%20s:%C3%A9?tags=a+b&tags=c", None)]


def test_a_login_in_the_url_is_sent(gateway: Gateway) -> None:
    gateway.answers["GET /api/tools"] = (200, {})
    Client(gateway.url.replace("//", "//mira:p%40ss@")).get("/api/tools")
    assert gateway.keys == ["GET /api/tools Basic bWlyYTpwQHNz"]


def test_a_proxy_of_the_environment_is_used_except_where_it_is_not_wanted(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway.answers["GET http://pml.example/api/tools"] = (200, {"by": "proxy"})
    gateway.answers["GET /api/tools"] = (200, {"by": "itself"})
    monkeypatch.setenv("HTTP_PROXY", gateway.url)
    assert Client("http://pml.example").get("/api/tools") == {"by": "proxy"}
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    assert Client(gateway.url).get("/api/tools") == {"by": "itself"}


def test_https_goes_through_a_tunnel_of_the_proxy(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", gateway.url)
    with pytest.raises(CommandError, match="Tunnel connection failed: 501"):
        Client("https://pml.example").get("/api/tools")


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("127.0.0.1:8080", "must begin with http:// or https://"),
        ("http://", "must begin with http:// or https://"),
        ("http://127.0.0.1:none", "Port could not be cast"),
        ("http://127.0.0.1:1", "refused"),
    ],
)
def test_an_address_that_leads_nowhere_is_an_error(url: str, why: str) -> None:
    with pytest.raises(CommandError, match=why) as raised:
        Client(url).get("/api/tools")
    assert raised.value.exit_code == UNREACHABLE


def test_a_gateway_that_speaks_no_tls_is_an_error(gateway: Gateway) -> None:
    with pytest.raises(CommandError, match="SSL"):
        Client(gateway.url.replace("http:", "https:")).get("/api/tools")
