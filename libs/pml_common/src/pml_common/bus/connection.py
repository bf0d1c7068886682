"""The connection to the server, and the mapping of its errors to ours."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from urllib.parse import urlsplit

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error as NatsError
from nats.js.errors import APIError, ServerError, ServiceUnavailableError

from pml_common.bus import names
from pml_common.bus.client import DirectClient
from pml_common.bus.codec import Envelope
from pml_common.bus.errors import BusError, BusUnavailable

log = logging.getLogger(__name__)

PATIENCE_S = 10.0
REPLY_TIMEOUT_S = 5.0
_RECONNECT_WAIT_S = 0.2
_PING_INTERVAL_S = 3
"""After three unanswered pings the client reconnects to another server."""
_NOT_NOW = (10009, 10010, 10118, 10119, 10158, 10164)
"""Error codes of a cluster that is electing a leader, or is already storing this message or another
one on its subject."""


async def connect(
    url: str,
    name: str,
    on_reconnect: Callable[[], Awaitable[None]],
    patience_s: float,
    *,
    inbox: str,
) -> DirectClient:
    """Connect, retrying for `patience_s`, and stay connected; `url` may name several servers of a
    cluster, separated by commas; `on_reconnect` runs after each reconnect; reply subjects begin
    with `inbox`. Raises BusUnavailable."""
    client = DirectClient()
    urls = url.split(",")
    server = ",".join(each.rpartition("@")[2] for each in urls)  # without the credentials
    user = urlsplit(urls[0])

    async def disconnected() -> None:
        if not client.is_closed:
            log.warning("lost NATS at %s; reconnecting", server)

    async def reconnected() -> None:
        log.info("NATS at %s is back", server)
        await on_reconnect()

    async def failed(error: Exception) -> None:
        log.log(logging.WARNING if client.is_connected else logging.DEBUG, "NATS: %r", error)

    try:
        async with asyncio.timeout(patience_s):
            await client.connect(
                urls,
                name=name,
                # Given explicitly: discovered servers of a cluster come without credentials.
                user=user.username if user.password else None,
                password=user.password,
                token=user.username if not user.password else None,
                inbox_prefix=inbox,
                error_cb=failed,
                disconnected_cb=disconnected,
                reconnected_cb=reconnected,
                max_reconnect_attempts=-1,
                reconnect_time_wait=_RECONNECT_WAIT_S,  # pyright: ignore[reportArgumentType] - passed to sleep, which takes floats
                ping_interval=_PING_INTERVAL_S,
                skip_subject_validation=True,  # all subjects are built in `names`
            )
    except (TimeoutError, NatsError, OSError) as error:
        await client.close()
        raise BusUnavailable(f"no NATS at {server} within {patience_s:g} s: {error!r}") from error
    return client


async def subscribe(
    client: Client, subject: str, receive: Callable[[Msg], Awaitable[None]]
) -> Subscription:
    """Subscribe; `receive` gets one message at a time, in order."""
    return await client.subscribe(subject, cb=receive)  # pyright: ignore[reportUnknownMemberType] - a parameter we do not use


async def drain(subscription: Subscription, timeout: float) -> None:
    """Stop receiving and finish what was received; logs a warning without a server."""
    try:
        async with asyncio.timeout(timeout):
            await subscription.drain()
    except (TimeoutError, NatsError) as error:
        log.warning("%s: not drained: %r", subscription.subject, error)


async def flush(client: Client) -> None:
    """Return once the server has processed what was sent; without the pause, the ping could
    overtake a subscription."""
    await asyncio.sleep(0)
    await client.flush(int(REPLY_TIMEOUT_S))


@contextmanager
def server_errors(client: Client, what: str) -> Generator[None]:
    """Wrap an operation on the server: fail immediately while disconnected, and map its errors to
    BusError with the operation `what`."""
    if not client.is_connected:
        raise BusUnavailable(f"{what}: not connected to NATS")
    try:
        yield
    except (ServiceUnavailableError, ServerError) as error:  # such as no room to store anything
        raise BusUnavailable(f"{what}: {error}") from error
    except APIError as error:
        kind = BusUnavailable if error.err_code in _NOT_NOW else BusError
        raise kind(f"{what}: {error}") from error
    except (NatsError, TimeoutError) as error:
        raise BusUnavailable(f"{what}: {error}") from error


def envelope_of(message: Msg) -> Envelope:
    """Build the envelope of a delivered message, as it was published."""
    return Envelope(names.published_subject(message.subject), message.data, message.headers or {})
