"""HTTP client of the gateway's REST API."""

import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Literal, Self, cast

import httpx2

from pml_cli.errors import UNREACHABLE, CommandError

Json = dict[str, object]
Params = Mapping[str, str | list[str]]
DEFAULT_URL = "http://127.0.0.1:8080"
WAIT_S = 3600.0
"""Limit for a response; a program may run long."""

HEALTH_S = 5.0
"""Limit for /healthz; a restarting gateway does not refuse: its supervisor holds the socket."""


def resolve_url(given: str | None, home: Path | None = None) -> str:
    """`--url`, else PML_URL, else the stack running on `home`, else the default port."""
    if given:
        return given.rstrip("/")
    if named := os.environ.get("PML_URL"):
        return named.rstrip("/")
    from pml_local.folder import default_home
    from pml_local.state import read_state

    state = read_state(home or default_home())
    return state.url if state else DEFAULT_URL


class Client:
    """A connection to one gateway. Every method raises CommandError."""

    def __init__(self, url: str, wait_s: float = WAIT_S) -> None:
        self.url = url
        self._http = httpx2.Client(base_url=url, timeout=httpx2.Timeout(wait_s, connect=5.0))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._http.close()

    def authorise(self, headers: Mapping[str, str]) -> None:
        """Send these headers with every request."""
        self._http.headers.update(headers)

    def get(self, path: str, **params: object) -> Json:
        """GET a JSON object; parameters that are None are omitted, those of a list repeated."""
        chosen = {name: _texts(value) for name, value in params.items() if value is not None}
        return self._send("GET", path, params=chosen)

    def post(
        self, path: str, body: Mapping[str, object], headers: Mapping[str, str] | None = None
    ) -> Json:
        """POST a JSON object."""
        return self._send("POST", path, json=dict(body), headers=headers)

    def patch(self, path: str, body: Mapping[str, object]) -> Json:
        """PATCH a JSON object."""
        return self._send("PATCH", path, json=dict(body))

    def delete(self, path: str) -> None:
        """DELETE what a path names."""
        answer = self._request("DELETE", path)
        if not answer.is_success:
            raise _error_of(answer)

    def delete_part(self, path: str, **params: object) -> Json:
        """DELETE a part of what a path names, and return what is said of it."""
        chosen = {name: _texts(value) for name, value in params.items() if value is not None}
        return self._send("DELETE", path, params=chosen)

    def health(self) -> tuple[int, Json]:
        """Status code and body of /healthz, whatever the status."""
        answer = self._request("GET", "/healthz", timeout=HEALTH_S)
        return answer.status_code, _object(answer)

    def _send(
        self,
        method: Literal["GET", "POST", "PATCH", "DELETE"],
        path: str,
        *,
        params: Params | None = None,
        json: Json | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Json:
        answer = self._request(method, path, params=params, json=json, headers=headers)
        if answer.is_success:
            return _object(answer)
        raise _error_of(answer)

    def _request(
        self,
        method: str,
        path: str,
        *,
        params: Params | None = None,
        json: Json | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> httpx2.Response:
        within = self._http.timeout if timeout is None else httpx2.Timeout(timeout)
        try:
            return self._http.request(
                method, path, params=params, json=json, headers=headers, timeout=within
            )
        except httpx2.TransportError as error:
            raise CommandError(
                f"no answer from {self.url} ({error}): run `pml up`, or name a gateway with --url",
                UNREACHABLE,
            ) from error


def _texts(value: object) -> str | list[str]:
    return (
        [str(each) for each in cast(list[object], value)] if isinstance(value, list) else str(value)
    )


def _object(answer: httpx2.Response) -> Json:
    try:
        body = answer.json()
    except ValueError as error:
        raise CommandError(f"{answer.url} did not answer JSON; is this a PML gateway?") from error
    if not isinstance(body, dict):
        raise CommandError(f"{answer.url} did not answer a JSON object; is this a PML gateway?")
    return cast(Json, body)


def _error_of(answer: httpx2.Response) -> CommandError:
    try:
        body = cast(object, answer.json())
    except ValueError:
        body = None
    if isinstance(body, dict) and isinstance(error := cast(Json, body).get("error"), dict):
        found = cast(Json, error)
        message = f"{found.get('message')} (HTTP {answer.status_code})"
        return CommandError(message, kind=str(found.get("kind") or "") or None)
    return CommandError(f"{answer.request.method} {answer.url}: HTTP {answer.status_code}")
