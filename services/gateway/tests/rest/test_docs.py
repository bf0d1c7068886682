"""The page that describes the REST interface loads nothing from other hosts."""

import re

import pytest

from services.gateway.tests.support.harness import Worlds

pytestmark = pytest.mark.integration

_LOADED = re.compile(r'(?:src|href)="([^"]*)"')


async def test_the_page_loads_everything_from_its_own_host(world: Worlds) -> None:
    async with world(peers_there=False) as w:
        page = await w.http.get("/docs")
        assert page.status_code == 200
        assert "//" not in page.text
        loaded = [one for one in _LOADED.findall(page.text) if not one.startswith("data:")]
        assert len(loaded) == 3
        for one in loaded:
            answer = await w.http.get(page.url.join(one))
            assert answer.status_code == 200
            kind = "text/css" if one.endswith(".css") else "text/javascript"
            assert answer.headers["content-type"].startswith(kind)
            assert answer.content
        start = (await w.http.get("/docs/start.js")).text
        (described,) = re.findall(r'url: "([^"]*)"', start)
        answer = await w.http.get(page.url.join(described))
        assert "/api/execute" in answer.json()["paths"]


async def test_every_operation_describes_the_errors_that_any_may_have(world: Worlds) -> None:
    async with world(peers_there=False) as w:
        described = (await w.http.get("/openapi.json")).json()["paths"]
    for path, operations in described.items():
        for operation in operations.values():
            common = {"405", "500"}
            if path.startswith("/api/"):
                common |= {"403", "413", "422", "503"}
            assert common <= set(operation["responses"]), path
    changes = ("rename", "describe", "tag", "yank", "unyank", "visibility", "transfer")
    for change in ("fork", "merge", *changes):
        assert "409" in described[f"/api/dns/{change}"]["post"]["responses"]


async def test_other_hosts_and_scripts_in_the_page_are_forbidden(world: Worlds) -> None:
    async with world(peers_there=False) as w:
        page = await w.http.get("/docs")
    policy = dict(
        directive.strip().split(" ", 1)
        for directive in page.headers["content-security-policy"].split(";")
    )
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == "'none'"
    assert set(" ".join(policy.values()).split()) <= {
        "'none'",
        "'self'",
        "'unsafe-inline'",
        "data:",
    }
    assert re.findall(r"<script(?! src=)", page.text) == []


@pytest.mark.parametrize("path", ["/redoc", "/docs/oauth2-redirect", "/docs/core.py", "/docs/../x"])
async def test_nothing_else_is_served_there(path: str, world: Worlds) -> None:
    async with world(peers_there=False) as w:
        assert (await w.http.get(path)).status_code == 404
