"""Types that JavaScript's own methods and functions require of values."""

from collections.abc import Mapping
from typing import Final

_OF_TEXTS: Final = (
    "charAt charCodeAt codePointAt endsWith localeCompare match matchAll normalize padEnd padStart"
    " repeat replace replaceAll search split startsWith substr substring toLocaleLowerCase"
    " toLocaleUpperCase toLowerCase toUpperCase trim trimEnd trimStart"
)
_OF_LISTS: Final = (
    "copyWithin every fill filter find findIndex findLast findLastIndex flat flatMap forEach join"
    " map pop push reduce reduceRight reverse shift some sort splice toReversed toSorted toSpliced"
    " unshift with"
)
_OF_NUMBERS: Final = "toExponential toFixed toPrecision"

METHODS: Final[Mapping[str, str]] = {
    **dict.fromkeys(_OF_TEXTS.split(), "string"),
    **dict.fromkeys(_OF_LISTS.split(), "array"),
    **dict.fromkeys(_OF_NUMBERS.split(), "number"),
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
