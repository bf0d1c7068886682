"""Characters of other scripts that look like ASCII.

A selection from Unicode's confusables (Technical Standard 39): letters that whole words can be
written with; styled and full-width forms are covered by compatibility decomposition (NFKC).
"""

import unicodedata
from typing import Final

_READ_AS: Final = {
    "a": "\u0430\u03b1\u0251",
    "b": "\u042c\u044c\u0185",
    "c": "\u0441\u03f2\u1d04",
    "d": "\u0501",
    "e": "\u0435\u04bd\u212e",
    "f": "\u017f\ua799\u1e9d",
    "g": "\u0261\u0581\u1d83\u018d",
    "h": "\u04bb\u0570",
    "i": "\u0456\u03b9\u0131\u0269\u13a5\u026a",
    "j": "\u0458\u03f3\u0575",
    "k": "\u043a\u03ba\u1d0b",
    "l": "\u04cf\u04c0\u01c0",
    "m": "\u043c",
    "n": "\u0578\u043f",
    "o": "\u043e\u03bf\u0585\u03c3\u1d0f",
    "p": "\u0440\u03c1\u03f1",
    "q": "\u051b\u0566\u0563",
    "r": "\u0433\u1d26",
    "s": "\u0455\ua731\u01bd",
    "t": "\u0442\u03c4",
    "u": "\u03c5\u057d\u028b\u1d1c",
    "v": "\u03bd\u0475\u1d20",
    "w": "\u051d\u0561\u0461\u1d21",
    "x": "\u0445\u03c7",
    "y": "\u0443\u03b3\u04af\u028f",
    "z": "\u1d22",
    "A": "\u0410\u0391\u13aa\ua4ee",
    "B": "\u0412\u0392\u13f4\ua4d0",
    "C": "\u0421\u03f9\u13df\ua4da",
    "D": "\u13a0\ua4d3",
    "E": "\u0415\u0395\u13ac\ua4f0",
    "F": "\u03dc\ua4dd",
    "G": "\u050c\u13c0\ua4d6",
    "H": "\u041d\u0397\u13bb\ua4e7",
    "I": "\u0406\u0399\ua4f2",
    "J": "\u0408\u037f\u13ab\ua4d9",
    "K": "\u041a\u039a\u13e6\ua4d7",
    "L": "\u13de\ua4e1",
    "M": "\u041c\u039c\u13b7\ua4df",
    "N": "\u039d\ua4e0",
    "O": "\u041e\u039f\u0555\ua4f3",
    "P": "\u0420\u03a1\u13e2\ua4d1",
    "Q": "\u051a",
    "R": "\u13a1\ua4e3",
    "S": "\u0405\u054f\u13da\ua4e2",
    "T": "\u0422\u03a4\u13a2\ua4d4",
    "U": "\u054d\ua4f4",
    "V": "\u0474\u13d9\ua4e6",
    "W": "\u051c\u13b3\ua4ea",
    "X": "\u0425\u03a7\ua4eb",
    "Y": "\u03a5\u04ae\ua4ec",
    "Z": "\u0396\u13c3\ua4dc",
    "'": "\u2018\u2019\u201a\u201b\u02bc\u2032\u00b4",
    '"': "\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb",
    "-": "\u2010\u2011\u2012\u2013\u2014\u2212",
    "/": "\u2215\u2044",
    "*": "\u2217\u00d7",
    ",": "\u3001",
    ".": "\u3002",
}
_ASCII_OF: Final = {char: letter for letter, chars in _READ_AS.items() for char in chars}


def read_as(char: str) -> str:
    """Return the ASCII that a character looks like; the character itself if none."""
    found = _ASCII_OF.get(char) or unicodedata.normalize("NFKC", char)
    found = "".join(_ASCII_OF.get(part, part) for part in found)
    return found if found.isascii() else char
