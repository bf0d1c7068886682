"""Log messages of servers: which there are, and to whom they go."""

from typing import Any, cast

import pytest
from mcp_types import LoggingMessageNotificationParams
from pydantic import JsonValue

from pml_common.contracts.tool import JsonObject
from pml_gateway.adapters.mcp_client.server_calls import ServerCalls, ignore_log
from pml_gateway.domain.api.log_levels import (
    LONGEST_DATA,
    LogLevel,
    is_level,
    log_params,
    reaches,
)
from pml_gateway.entrypoints.mcp import logs
from pml_gateway.entrypoints.mcp.logs import CallLogs
from pml_gateway.ports import Caller, CallerSide, LogMessage
from services.gateway.tests.support.builders import SCOPE

ADA, EVE = Caller(SCOPE, "ada"), Caller(SCOPE, "eve")


def _message(level: LogLevel = "info", data: JsonValue = "a") -> LogMessage:
    return LogMessage(level, log_params("fs", level, None, data))


@pytest.mark.parametrize(
    ("level", "wanted", "sent"),
    [
        ("info", "info", True),
        ("debug", "info", False),
        ("emergency", "info", True),
        ("emergency", None, False),
    ],
)
def test_messages_below_the_wanted_level_are_not_sent(
    level: LogLevel, wanted: LogLevel | None, sent: bool
) -> None:
    assert reaches(level, wanted) is sent


def test_a_level_is_one_of_eight_words() -> None:
    assert is_level("notice")
    assert not is_level("loud")
    assert not is_level(None)


def test_a_message_names_its_server_and_is_bounded() -> None:
    assert log_params("fs", "info", "watcher", {"a": 1}) == {
        "level": "info",
        "logger": "fs/watcher",
        "data": {"a": 1},
    }
    assert log_params("fs", "info", None, None) == {"level": "info", "logger": "fs", "data": "null"}
    cut = log_params("fs", "info", None, "x" * 20_000)["data"]
    assert isinstance(cut, str)
    assert cut.endswith("… (20002 characters)")
    assert len(cut) < LONGEST_DATA + 40


async def test_a_call_sends_what_its_client_wants_in_order_and_counts_what_is_too_much(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(logs, "MOST_PENDING", 2)
    sent: list[JsonObject] = []

    async def send(params: JsonObject) -> None:
        sent.append(params)

    taker = CallLogs("info", send)
    assert taker.level == "info"
    async with taker.sending():
        for level, data in (("debug", "no"), ("info", "1"), ("error", "2"), ("info", "3")):
            taker.take(_message(cast("LogLevel", level), data))
    assert [each["data"] for each in sent[:2]] == ["1", "2"]
    assert sent[2:] == [
        {
            "level": "warning",
            "logger": "pml",
            "data": "1 messages came too fast, and are left out",
        }
    ]


class Box:
    """The calls on a connection, and where its messages went."""

    def __init__(self) -> None:
        self.listened: list[object] = []
        self.calls = ServerCalls("fs", 1.0, lambda m, who: self.listened.append((m, {*who})))
        self.taken: list[LogMessage] = []

    @property
    def level(self) -> LogLevel:
        return "debug"

    def take(self, message: LogMessage) -> None:
        self.taken.append(message)

    async def say(self) -> None:
        said: Any = LoggingMessageNotificationParams(level="info", data="a")
        await self.calls.on_log(said)


async def test_a_message_goes_to_the_call_that_is_alone_and_else_to_who_listens() -> None:
    box = Box()
    await box.say()
    assert box.listened == [(_message(), set[Caller]())]
    side = CallerSide(logs=box)
    with box.calls.entered(side, Caller(SCOPE, "ada", is_admin=True)):
        await box.say()
        assert box.taken == [_message()]
        with box.calls.entered(side, ADA):
            await box.say()
    assert box.listened[1:] == [(_message(), {ADA})]
    with box.calls.entered(CallerSide(), ADA), box.calls.entered(None, ADA):
        pass
    with box.calls.entered(None, ADA):
        await box.say()
    assert (len(box.taken), len(box.listened)) == (1, 2)


@pytest.mark.parametrize("other", [EVE, None])
async def test_a_connection_that_several_callers_use_tells_nobody(other: Caller | None) -> None:
    box = Box()
    with box.calls.entered(None, other):
        pass
    with box.calls.entered(CallerSide(logs=box), ADA):
        await box.say()
    await box.say()
    assert (box.taken, box.listened) == ([], [])


def test_messages_can_be_ignored() -> None:
    ignore_log(_message(), set())
