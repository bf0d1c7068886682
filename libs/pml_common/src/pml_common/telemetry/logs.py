"""Logs on stderr, as text or JSON, with the ids of the current span."""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Literal

from opentelemetry import trace
from typing_extensions import override

LogFormat = Literal["text", "json"]


class _TraceContext(logging.Filter):
    """Adds the ids of the current trace and span to every log record."""

    @override
    def filter(self, record: logging.LogRecord) -> bool:
        context = trace.get_current_span().get_span_context()
        record.trace_id = f"{context.trace_id:032x}" if context.is_valid else "-"
        record.span_id = f"{context.span_id:016x}" if context.is_valid else "-"
        return True


class _JsonFormatter(logging.Formatter):
    """Formats a record as one JSON object on one line."""

    def __init__(self, service: str) -> None:
        super().__init__()
        self._service = service

    @override
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "service": self._service,
            "logger": record.name,
            "message": record.getMessage(),
            "trace_id": _known(record, "trace_id"),
            "span_id": _known(record, "span_id"),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def _known(record: logging.LogRecord, name: str) -> str | None:
    found: str = getattr(record, name, "-")
    return None if found == "-" else found


def set_up_logging(service: str, level: str, form: LogFormat = "text") -> None:
    """Log one line per record to stderr: time, level, service, logger, ids of the trace and, in
    JSON, of the span, message; in JSON, an exception is part of the line."""
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(_TraceContext())
    text = f"%(asctime)s %(levelname)s {service} %(name)s trace=%(trace_id)s %(message)s"
    handler.setFormatter(_JsonFormatter(service) if form == "json" else logging.Formatter(text))
    logging.basicConfig(level=level, handlers=[handler], force=True)
