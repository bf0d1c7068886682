"""The health check of an image: ends with 0 if the service says that it is ready."""

import os
import socket
import sys

TIMEOUT_S = 2.0


def main() -> int:
    """Ask `/readyz` at the health port; without imports that take longer than the question."""
    address = ("127.0.0.1", int(os.environ["PML_HEALTH_PORT"]))
    try:
        with socket.create_connection(address, timeout=TIMEOUT_S) as connection:
            connection.sendall(b"GET /readyz HTTP/1.0\r\nHost: localhost\r\n\r\n")
            status = connection.recv(64)
    except OSError as error:
        print(f"no answer at port {address[1]}: {error}")
        return 1
    print(status.split(b"\r\n", 1)[0].decode(errors="replace"))
    return 0 if b" 200 " in status else 1


if __name__ == "__main__":
    sys.exit(main())
