"""Short forms of values, durations and times."""

import json


def short(value: object, limit: int = 60) -> str:
    """JSON (or the text itself) on one line, cut at `limit` characters."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def milliseconds(span: float) -> str:
    """A duration given in milliseconds, in the unit it is read best in."""
    if span < 1000:
        return f"{span:.1f} ms"
    return f"{span / 1000:.2f} s"
