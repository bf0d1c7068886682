"""Short forms of values, durations and times."""

import json

from pml_common.drawing import text


def short(value: object, limit: int = 60) -> str:
    """JSON (or the text itself) on one line, printable, cut at `limit` characters."""
    said = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text.short(said, limit)


def milliseconds(span: float) -> str:
    """A duration given in milliseconds, in the unit it is read best in."""
    if span < 1000:
        return f"{span:.1f} ms"
    return f"{span / 1000:.2f} s"
