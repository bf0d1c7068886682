"""Methods that values of JSON have: the caller's arguments are such values."""

from typing import Final

OF_TEXTS: Final = (
    "charAt charCodeAt codePointAt endsWith localeCompare match matchAll normalize padEnd padStart"
    " repeat replace replaceAll search split startsWith substr substring toLocaleLowerCase"
    " toLocaleUpperCase toLowerCase toUpperCase trim trimEnd trimStart"
)
OF_LISTS: Final = (
    "copyWithin every fill filter find findIndex findLast findLastIndex flat flatMap forEach join"
    " map pop push reduce reduceRight reverse shift some sort splice toReversed toSorted toSpliced"
    " unshift with"
)
OF_NUMBERS: Final = "toExponential toFixed toPrecision"
_OF_SEVERAL: Final = (
    "anchor at big blink bold concat entries fixed fontcolor fontsize hasOwnProperty includes"
    " indexOf isPrototypeOf isWellFormed italics keys lastIndexOf link propertyIsEnumerable slice"
    " small strike sub sup toLocaleString toString toWellFormed trimLeft trimRight valueOf values"
)
_CALLING: Final = (
    "every filter find findIndex findLast findLastIndex flatMap forEach map reduce reduceRight some"
    " sort toSorted"
)
DATA_METHODS: Final = frozenset(f"{OF_TEXTS} {OF_LISTS} {OF_NUMBERS} {_OF_SEVERAL}".split())
TAKING_NO_OBJECT: Final = frozenset(f"{OF_TEXTS} {_CALLING}".split())
"""Those that no program gives an object as the only argument."""
