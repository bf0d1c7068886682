"""Short forms of values and durations."""

import json

from pml_common.text import short as one_line


def short(value: object, limit: int = 60) -> str:
    """JSON (or the text itself) on one line, printable, cut at `limit` characters."""
    said = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return one_line.short(said, limit)


def milliseconds(span: float) -> str:
    """Format a duration given in milliseconds in a readable unit."""
    if span < 1000:
        return f"{span:.1f} ms"
    return f"{span / 1000:.2f} s"
