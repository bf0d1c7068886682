"""Lines of the log, as text and as JSON."""

import json
import logging
from collections.abc import Generator

import pytest
from opentelemetry import trace
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, use_span

from pml_common.telemetry.logs import set_up_logging

SPAN = NonRecordingSpan(
    SpanContext(0xABC, 0xDEF, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))
)


@pytest.fixture(autouse=True)
def own_handlers() -> Generator[None]:
    """Put the handlers back that the process had."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def test_a_line_of_text_has_the_trace(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logging("learner", "INFO")
    with use_span(SPAN):
        logging.getLogger("room").info("two\tparts")
    logging.getLogger("room").info("outside")
    inside, outside = capsys.readouterr().err.splitlines()
    assert f" INFO learner room trace={0xABC:032x} two\tparts" in inside
    assert " INFO learner room trace=- outside" in outside


def test_a_line_of_json_has_the_span_and_the_exception(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logging("learner", "INFO", "json")
    log = logging.getLogger("room")
    with use_span(SPAN):
        log.warning('a "quoted" %s\nline', "größe")
    try:
        raise ValueError("broken")
    except ValueError:
        log.exception("outside")
    inside, outside = (json.loads(line) for line in capsys.readouterr().err.splitlines())
    time = inside.pop("time")
    assert time.endswith("+00:00")
    assert inside == {
        "level": "WARNING",
        "service": "learner",
        "logger": "room",
        "message": 'a "quoted" größe\nline',
        "trace_id": f"{0xABC:032x}",
        "span_id": f"{0xDEF:016x}",
    }
    assert (outside["trace_id"], outside["span_id"]) == (None, None)
    assert outside["exception"].startswith("Traceback")
    assert "ValueError: broken" in outside["exception"]


def test_no_span_is_left() -> None:
    assert not trace.get_current_span().get_span_context().is_valid
