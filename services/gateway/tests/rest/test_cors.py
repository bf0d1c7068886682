"""Pages of configured origins may call the gateway, no others."""

import pytest
from pydantic import ValidationError

from services.gateway.tests.support.harness import Worlds, settings

pytestmark = pytest.mark.integration

APP = "https://app.example"
PREFLIGHT = {
    "access-control-request-method": "POST",
    "access-control-request-headers": "authorization,content-type",
}


async def test_a_page_of_a_configured_origin_may_call_and_read_every_answer(world: Worlds) -> None:
    async with world(peers_there=False, gateway_cors_origins=f"{APP}, http://localhost:3000") as w:
        asked = await w.http.options("/api/execute", headers={"origin": APP, **PREFLIGHT})
        assert asked.status_code == 200
        assert asked.headers["access-control-allow-origin"] == APP
        assert "POST" in asked.headers["access-control-allow-methods"]
        assert asked.headers["access-control-allow-headers"] == "authorization,content-type"
        for path, status in (("/api/tools", 200), ("/api/nowhere", 404)):
            answer = await w.http.get(path, headers={"origin": APP})
            assert answer.status_code == status
            assert answer.headers["access-control-allow-origin"] == APP
            assert "Retry-After" in answer.headers["access-control-expose-headers"]
        other = await w.http.get("/api/tools", headers={"origin": "http://localhost:3000"})
        assert other.headers["access-control-allow-origin"] == "http://localhost:3000"


@pytest.mark.parametrize("origin", ["https://evil.example", "http://app.example", f"{APP}:8443"])
async def test_any_other_page_is_refused(origin: str, world: Worlds) -> None:
    async with world(peers_there=False, gateway_cors_origins=APP) as w:
        for method in ("GET", "OPTIONS"):
            answer = await w.http.request(
                method, "/api/tools", headers={"origin": origin, **PREFLIGHT}
            )
            assert answer.status_code == 403
            assert answer.json()["error"]["kind"] == "forbidden"
            assert "access-control-allow-origin" not in answer.headers


async def test_without_configured_origins_there_is_no_cors(world: Worlds) -> None:
    async with world(peers_there=False) as w:
        answer = await w.http.options("/api/tools", headers={"origin": APP, **PREFLIGHT})
        assert answer.status_code == 403


def test_an_origin_is_written_as_browsers_send_it() -> None:
    written = "HTTPS://App.example:443, http://[::1]:3000"
    assert settings(gateway_cors_origins=written).gateway_cors_origins == (
        "https://app.example",
        "http://[::1]:3000",
    )


@pytest.mark.parametrize("text", ["*", "app.example", "https://app.example/x", "ftp://a.example"])
def test_what_is_no_origin_is_refused(text: str) -> None:
    with pytest.raises(ValidationError, match="is not an origin: write https"):
        settings(gateway_cors_origins=text)
