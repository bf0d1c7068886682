"""The supervisor process behind `pml up`: runs a stack until a signal ends it."""

import asyncio
import signal
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from typing import TypeVar

from pml_local.composition import StackOptions
from pml_local.events import OnEvent, ignore
from pml_local.stack import Stack

T = TypeVar("T")
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


async def run_until_stopped(options: StackOptions, on_event: OnEvent = ignore) -> None:
    """Start a stack, keep it running, and stop it at SIGINT, SIGTERM or SIGHUP.

    A second signal kills what has not ended yet. Raises StackError when the stack fails to start or
    its fork server ends; a part that fails later is restarted until it runs. Call it in the main
    thread.
    """
    stack = Stack(options, on_event)
    asked = asyncio.Event()

    def on_signal() -> None:
        if asked.is_set():
            stack.kill()
        asked.set()

    with _signals_call(on_signal):
        try:
            await _run_unless_set(asked, stack.start())
            await _run_unless_set(asked, stack.fails())
        finally:
            await stack.stop()


async def _run_unless_set(event: asyncio.Event, work: Coroutine[None, None, T]) -> T | None:
    """Run the work until it ends or the event is set, which cancels it; None in that case."""
    working = asyncio.create_task(work)
    waiting = asyncio.create_task(event.wait())
    try:
        await asyncio.wait({working, waiting}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
        working.cancel()
        await asyncio.wait({working, waiting})
    return None if working.cancelled() else working.result()


@contextmanager
def _signals_call(handler: Callable[[], None]) -> Generator[None]:
    loop = asyncio.get_running_loop()
    for number in SIGNALS:
        loop.add_signal_handler(number, handler)
    try:
        yield
    finally:
        for number in SIGNALS:
            loop.remove_signal_handler(number)
