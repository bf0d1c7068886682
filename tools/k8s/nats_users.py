"""Prints the NATS users of deploy/k8s; their passwords are in a file beside them."""

import sys

from pml_common.contracts.catalog import SERVICES
from pml_local.nats_users import OPERATOR, authorization

HEAD = "# Written by `make k8s-users` from the message catalog.\ninclude passwords.conf\n"


def users() -> str:
    """Build the file `users.conf`."""
    return HEAD + authorization({name: password_of(name) for name in (*SERVICES, OPERATOR)})


def password_of(name: str) -> str:
    """Return the variable of a user's password, which `passwords.conf` sets."""
    return f"$PML_NATS_PASSWORD_{name.upper()}"


if __name__ == "__main__":
    sys.stdout.write(users())
