"""Values of literals under JavaScript's rules."""

import re
from functools import lru_cache
from typing import Final

_ESCAPE = re.compile(
    r"\\(?:u\{([0-9a-fA-F]+)\}|u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(\r\n|.))", re.DOTALL
)
_SINGLE: Final = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "b": "\b",
    "f": "\f",
    "v": "\v",
    "0": "\0",
    "\n": "",
    "\r": "",
    "\r\n": "",
    "\u2028": "",
    "\u2029": "",
}
_SURROGATES = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_PREFIXED = re.compile(r"0[xX][0-9a-fA-F]+|0[oO][0-7]+|0[bB][01]+")
_DECIMAL = re.compile(r"(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_INTEGER = re.compile(r"0|[1-9][0-9]*")
_LAST_CODE_POINT = 0x10FFFF
_MAX_PREFIXED = 128  # digits; more than any finite number has
_EXACT_UP_TO = 2**53


def unescape(body: str) -> str:
    """Return the value of the inside of a string or template; lone surrogates are unchanged."""
    if "\\" not in body:
        return body
    return _SURROGATES.sub(_join, _ESCAPE.sub(_character, body))


def _character(match: re.Match[str]) -> str:
    code = match[1] or match[2] or match[3]
    if code is None:
        return _SINGLE.get(match[4], match[4])
    value = int(code, 16)
    return chr(value) if value <= _LAST_CODE_POINT else match[0]


def _join(match: re.Match[str]) -> str:
    return match[0].encode("utf-16-le", "surrogatepass").decode("utf-16-le")


def string_value(text: str) -> str:
    """Return the value of a quoted string, from its source text."""
    return unescape(text[1:-1])


def number_value(text: str) -> int | float | None:
    """Return the value of a numeric literal; None for big integers and values outside JSON."""
    digits = text.replace("_", "")
    if len(digits) <= _MAX_PREFIXED and _PREFIXED.fullmatch(digits):
        value = float(int(digits, 0))
    elif _DECIMAL.fullmatch(digits):
        value = float(digits)
    else:
        return None
    if value == float("inf"):
        return None
    return int(value) if value.is_integer() and value < _EXACT_UP_TO else value


def integer_text(text: str) -> str | None:
    """Return the decimal digits of a big integer's literal; None for a very long or malformed
    one."""
    digits = text.replace("_", "").removesuffix("n")
    is_known = _INTEGER.fullmatch(digits) or _PREFIXED.fullmatch(digits)
    return str(int(digits, 0)) if is_known and len(digits) <= _MAX_PREFIXED else None


@lru_cache(maxsize=1024)
def identifier_name(text: str) -> str:
    r"""Return the name of an identifier without escapes: `\u0061b` is `ab`."""
    return unescape(text)


def is_unicode(text: str) -> bool:
    """Whether a text can be written as UTF-8, that is, holds no lone surrogate."""
    return text.isascii() or not any("\ud800" <= char <= "\udfff" for char in text)
