"""One account with a user for each service, against an account for each service with imports and
exports: requests in microseconds, and what becomes of an answer of the server's API whose reply
subject is another's query, or a stream's subject (ADR 0047).

    uv run python bench/nats_accounts.py
"""

import asyncio
import json
import secrets
import statistics
import tempfile
from pathlib import Path
from time import perf_counter

from nats.aio.client import Client
from nats.aio.msg import Msg
from typing_extensions import override

from pml_common.bus.connection import flush, subscribe
from pml_common.bus.server_api import ask
from pml_local.nats import NatsServer
from pml_local.parts import start_on_free_port

ROUNDS, REQUESTS = 3, 1500
GET = "$JS.API.DIRECT.GET.S"
LAST = {"last_by_subj": "evt.x", "no_hdr": True}
SETTLED_S = 0.5
ONE = "accounts { ALL { jetstream: enabled, users: [%(operator)s, %(asker)s, %(owner)s] } }"
SEVERAL = """accounts {
  BUS { jetstream: enabled, users: [%(operator)s],
        exports: [{ service: "$JS.API.>", response_type: stream }, { service: "evt.>" }] }
  ASKER { users: [%(asker)s],
          imports: [{ service: { account: BUS, subject: "$JS.API.DIRECT.GET.S" } },
                    { service: { account: BUS, subject: "evt.>" } },
                    { service: { account: OWNER, subject: "qry.asked" } }] }
  OWNER { users: [%(owner)s], exports: [{ service: "qry.>" }] }
}"""


class _Server(NatsServer):
    def __init__(self, folder: Path, accounts: str) -> None:
        self._words = {name: secrets.token_hex(8) for name in ("operator", "asker", "owner")}
        super().__init__(folder, folder / "log", secrets.token_hex(), passwords=self._words)
        users = {
            name: f'{{ user: "{name}", password: "{word}" }}' for name, word in self._words.items()
        }
        self._accounts = accounts % users

    @override
    def _configuration(self) -> str:
        return f"{super()._configuration()}{self._accounts}\n"


async def compare(accounts: str) -> dict[str, float]:
    """Measure one layout of accounts."""
    with tempfile.TemporaryDirectory() as folder:
        server = _Server(Path(folder), accounts)
        process = await start_on_free_port(server)
        clients = {name: Client() for name in ("operator", "asker", "owner")}
        try:
            for name, client in clients.items():
                await client.connect(server.url_of(name))
            return await _measure(clients["operator"], clients["asker"], clients["owner"])
        finally:
            for client in clients.values():
                await client.close()
            await process.kill()


async def _measure(operator: Client, asker: Client, owner: Client) -> dict[str, float]:
    heard: list[str] = []

    async def answer(message: Msg) -> None:
        heard.append(message.subject)
        if message.reply:
            await message.respond(b"")

    config = {"name": "S", "subjects": ["evt.>"], "allow_direct": True}
    await ask(operator, "STREAM.CREATE.S", config)
    await subscribe(owner, "qry.>", answer)
    await flush(owner)
    get = json.dumps(LAST).encode()
    kinds = {"publish": ("evt.x", bytes(500)), "get": (GET, get), "query": ("qry.asked", b"")}
    found: dict[str, float] = {}
    for kind, (subject, data) in kinds.items():
        found[f"{kind}, us"] = await _request(asker, subject, data)
    for kind in ("asked", "other"):
        heard.clear()
        await asker.publish(GET, get, reply=f"qry.{kind}")
        await flush(asker)
        await asyncio.sleep(SETTLED_S)
        found[f"answers delivered as the query {kind}"] = len(heard)
    before = await _stored(operator)
    await asker.publish(GET, get, reply="evt.forged")
    await flush(asker)
    await asyncio.sleep(SETTLED_S)
    found["answers stored"] = await _stored(operator) - before
    return found


async def _request(asker: Client, subject: str, data: bytes) -> float:
    took: list[float] = []
    for _ in range(REQUESTS):
        began = perf_counter()
        await asker.request(subject, data, timeout=5.0)
        took.append(1e6 * (perf_counter() - began))
    return round(statistics.median(took))


async def _stored(operator: Client) -> int:
    return (await ask(operator, "STREAM.INFO.S"))["state"]["messages"]


async def main() -> None:
    """Print both layouts in turn."""
    for _ in range(ROUNDS):
        for name, accounts in (("one", ONE), ("several", SEVERAL)):
            print(name, await compare(accounts), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
