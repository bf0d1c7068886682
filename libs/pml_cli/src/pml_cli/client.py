"""HTTP client of the gateway's REST API."""

import json
import os
from collections.abc import Mapping
from http.client import HTTPException
from pathlib import Path
from typing import NamedTuple, cast
from urllib.parse import quote, urlencode

from pml_cli.connecting import connect
from pml_cli.errors import UNREACHABLE, CommandError

Json = dict[str, object]
DEFAULT_URL = "http://127.0.0.1:8080"
WAIT_S = 3600.0
"""Limit for a response; a program may run long."""

HEALTH_S = 5.0
"""Limit for /healthz; a restarting gateway does not refuse: its supervisor holds the socket."""

_IN_A_PATH = "/:@!$&'()*+,;=~%"


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


class _Answer(NamedTuple):
    request: str
    status: int
    body: bytes

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300


class Client:
    """Requests to one gateway, each on a connection of its own. Every method raises
    CommandError."""

    def __init__(self, url: str, wait_s: float = WAIT_S) -> None:
        self.url = url
        self._wait_s = wait_s
        self._headers = {"Accept": "application/json", "User-Agent": "pml"}

    def authorise(self, headers: Mapping[str, str]) -> None:
        """Send these headers with every request."""
        self._headers.update(headers)

    def get(self, path: str, **params: object) -> Json:
        """GET a JSON object; parameters that are None are omitted, those of a list repeated."""
        return self._send("GET", _with(path, params))

    def post(
        self, path: str, body: Mapping[str, object], headers: Mapping[str, str] | None = None
    ) -> Json:
        """POST a JSON object."""
        return self._send("POST", path, body, headers)

    def patch(self, path: str, body: Mapping[str, object]) -> Json:
        """PATCH a JSON object."""
        return self._send("PATCH", path, body)

    def delete(self, path: str) -> None:
        """DELETE what a path names."""
        answer = self._request("DELETE", path)
        if not answer.is_success:
            raise _error_of(answer)

    def delete_part(self, path: str, **params: object) -> Json:
        """DELETE a part of what a path names, and return what is said of it."""
        return self._send("DELETE", _with(path, params))

    def health(self) -> tuple[int, Json]:
        """Status code and body of /healthz, whatever the status."""
        answer = self._request("GET", "/healthz", wait_s=HEALTH_S)
        return answer.status, _object(answer)

    def _send(
        self,
        method: str,
        path: str,
        body: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Json:
        answer = self._request(method, path, body, headers)
        if answer.is_success:
            return _object(answer)
        raise _error_of(answer)

    def _request(
        self,
        method: str,
        path: str,
        body: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
        wait_s: float | None = None,
    ) -> _Answer:
        sent = {**self._headers, **(headers or {})}
        content = None
        if body is not None:
            sent["Content-Type"] = "application/json"
            content = json.dumps(dict(body)).encode()
        try:
            with connect(self.url, wait_s or self._wait_s) as (connection, prefix, more):
                connection.request(method, f"{prefix}{path}", content, {**more, **sent})
                response = connection.getresponse()
                return _Answer(f"{method} {self.url}{path}", response.status, response.read())
        except (OSError, HTTPException, ValueError) as error:
            raise CommandError(
                f"no answer from {self.url} ({error}): run `pml up`, or name a gateway with --url",
                UNREACHABLE,
            ) from error


def _with(path: str, params: Mapping[str, object]) -> str:
    """The path, percent-encoded, with its parameters."""
    given = {name: value for name, value in params.items() if value is not None}
    query = urlencode(given, doseq=True)
    return quote(path, safe=_IN_A_PATH) + (f"?{query}" if query else "")


def _object(answer: _Answer) -> Json:
    url = answer.request.partition(" ")[2]
    try:
        body: object = json.loads(answer.body)
    except ValueError as error:
        raise CommandError(f"{url} did not answer JSON; is this a PML gateway?") from error
    if not isinstance(body, dict):
        raise CommandError(f"{url} did not answer a JSON object; is this a PML gateway?")
    return cast(Json, body)


def _error_of(answer: _Answer) -> CommandError:
    try:
        body: object = json.loads(answer.body)
    except ValueError:
        body = None
    if isinstance(body, dict) and isinstance(error := cast(Json, body).get("error"), dict):
        found = cast(Json, error)
        message = f"{found.get('message')} (HTTP {answer.status})"
        return CommandError(message, kind=str(found.get("kind") or "") or None)
    return CommandError(f"{answer.request}: HTTP {answer.status}")
