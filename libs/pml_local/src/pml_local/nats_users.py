"""The server's users: one per service, with its permissions, and the operator.

`python -m pml_local.nats_users` prints them for a separately run server; each password is then a
variable of the server's environment (`PML_NATS_PASSWORD_GATEWAY`, …).
"""

import json
import sys
from collections.abc import Iterable, Mapping

from pml_common.bus.permissions import permissions_of
from pml_common.contracts.catalog import SERVICES

OPERATOR = "pml"
"""May do everything; used by no service."""
_REPLY_WITHIN = "10m"


def authorization(passwords: Mapping[str, str]) -> str:
    """Build the authorization block of the server's configuration. Each password is written as that
    configuration's language expects it: a quoted string or a variable."""
    return f"authorization {{ {users(passwords)} }}\n"


def users(passwords: Mapping[str, str], suffix: str = "") -> str:
    """Build the list of users of a server or of one of its accounts; the suffix of their names
    tells accounts apart."""
    name = f"{OPERATOR}{suffix}"
    listed = [f'{{ user: "{name}", password: {passwords[name]} }}']
    for service in SERVICES:
        allowed, name = permissions_of(service), f"{service}{suffix}"
        listed.append(
            f'{{ user: "{name}", password: {passwords[name]}, permissions: {{\n'
            f"  publish: {{ allow: {_subjects(allowed.publish)} }}\n"
            f"  subscribe: {{ allow: {_subjects(allowed.subscribe)} }}\n"
            f'  allow_responses: {{ max: 1, expires: "{_REPLY_WITHIN}" }}\n'
            "} }"
        )
    return "users: [\n" + "\n".join(listed) + "\n]"


def _subjects(allowed: Iterable[str]) -> str:
    return json.dumps(list(allowed), indent=4)


if __name__ == "__main__":
    variables = {name: f"$PML_NATS_PASSWORD_{name.upper()}" for name in (*SERVICES, OPERATOR)}
    sys.stdout.write(authorization(variables))
