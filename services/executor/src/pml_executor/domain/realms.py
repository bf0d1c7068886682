"""Rules of realms: which runs may have one, and the modules that only their Worker can load.

A realm is a fresh context of `node:vm` in a standing Worker (runtime/realm/outer.ts). It separates
the runs of one scope less than a Worker of their own would, and costs a tenth.
"""

import json
import re
from dataclasses import dataclass
from urllib.parse import quote

from pml_common.contracts.executor import RunWorkflow

_MODULES = ("node:vm", "node:module")
_BLOBS = "blob:null/"
"""The start of the URL of every module from a blob."""
NOT_IN_REALMS = frozenset(
    {
        *("AbortController", "AbortSignal", "DOMException", "Event", "EventTarget"),
        *("TextDecoder", "TextEncoder", "URL", "URLSearchParams", "atob", "btoa"),
        "structuredClone",
    }
)
"""The web APIs that a Worker leaves to a program and a realm does not have."""
_NEEDS_WORKER = re.compile(rf"\b(?:{'|'.join(sorted(NOT_IN_REALMS))}|globalThis)\b")
"""Their names, and that of the object by which a program could reach them by a computed name."""


def suits_realm(command: RunWorkflow) -> bool:
    """Whether a run may have a realm: policy allows it without asking, nobody has granted it more,
    and its texts name nothing that realms lack."""
    grant = command.grant
    if grant.approved_by is not None or grant.calls or grant.rest:
        return False
    texts = (command.instrumented, *(one.instrumented for one in command.injected))
    return not any(map(_NEEDS_WORKER.search, texts))


@dataclass
class Realms:
    """The use of realms by the processes of one executor; `refused` says why there is none any
    more."""

    refused: str | None = None

    @property
    def usable(self) -> bool:
        """Whether runs may have realms."""
        return self.refused is None

    def refuse(self, reason: str) -> None:
        """Use no realm any more."""
        self.refused = reason


@dataclass(frozen=True)
class HiddenModules:
    """The names under which the standing Worker of one process loads its modules: under their own
    they are out of every program's reach. They contain the process's `secret`, and stand only for
    modules from a blob, as our own code is and a program's never: in any other module they are no
    names of modules, whoever knows them."""

    secret: str

    def hide(self, code: str) -> str:
        """Return the standing Worker's code with the hidden names of its modules."""
        for name in _MODULES:
            code = code.replace(f'"{name}"', f'"{self._name(name)}"')
        return code

    def import_map(self, shown: str) -> str:
        """Return an import map, as a URL: `shown`, the text of another one, with the hidden names
        in modules from blobs."""
        names = json.loads(shown)
        names["scopes"] = {_BLOBS: {self._name(name): name for name in _MODULES}}
        return f"data:application/json,{quote(json.dumps(names))}"

    def _name(self, module: str) -> str:
        return f"pml-{self.secret}:{module.removeprefix('node:')}"
