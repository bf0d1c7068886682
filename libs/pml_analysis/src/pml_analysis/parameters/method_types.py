"""Types that JavaScript's own methods and functions require of values."""

from collections.abc import Mapping
from typing import Final

from pml_analysis.names.method_names import OF_LISTS, OF_NUMBERS, OF_TEXTS

METHODS: Final[Mapping[str, str]] = {
    **dict.fromkeys(OF_TEXTS.split(), "string"),
    **dict.fromkeys(OF_LISTS.split(), "array"),
    **dict.fromkeys(OF_NUMBERS.split(), "number"),
}
"""The type that has each method; methods of several types are left out."""

DEMANDING: Final[Mapping[str, str]] = {"JSON.parse": "string", "Math": "number", "URL": "string"}
"""By function, owner of functions or class: the required type of its argument."""

SUGGESTING: Final[Mapping[str, str]] = {
    **dict.fromkeys(("Object.entries", "Object.keys", "Object.values"), "object"),
    **dict.fromkeys(("Map", "Set", "Array.from"), "array"),
    **dict.fromkeys(("Number.isFinite", "Number.isInteger", "Number.isNaN"), "number"),
    **dict.fromkeys(("isFinite", "isNaN"), "number"),
    **dict.fromkeys(("RegExp", "atob", "btoa"), "string"),
    **dict.fromkeys(("decodeURI", "decodeURIComponent"), "string"),
    **dict.fromkeys(("encodeURI", "encodeURIComponent"), "string"),
}
"""The same, where other types work too."""

ASKING: Final = frozenset({"Array.isArray"})
"""Functions that test the type of their argument."""

ARITHMETIC: Final = frozenset(["-", "*", "/", "%", "**", "&", "|", "^", "<<", ">>", ">>>"])
COMPARING: Final = frozenset(["==", "===", "!=", "!==", "<", "<=", ">", ">="])
