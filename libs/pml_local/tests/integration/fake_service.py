"""A fake service: `fake_service.py [MODE]`, one of `unready`, `failing`, `fails-with <file>`,
`port-lost <file>`, `deaf`, `family <pid file>`, `servers <file>`.

It answers /healthz on the port given by its environment: 200, or always 503 (`unready`); or it
exits at once with code 3 (`failing`, or `fails-with` an existing file), or the first time as if its
port were taken (`port-lost`: the file is created). `deaf` ignores SIGTERM.
`family` first starts a child in another session. `servers` answers every GET with the MCP servers
listed in the file.
"""

import errno
import os
import signal
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

MODE = sys.argv[1] if len(sys.argv) > 1 else "fine"


class Health(BaseHTTPRequestHandler):
    """Answers every GET."""

    def do_GET(self) -> None:
        """Answer 200, or 503 with a reason."""
        self.send_response(503 if MODE == "unready" else 200)
        self.end_headers()
        if self.path == "/api/servers" and MODE == "servers":
            self.wfile.write(Path(sys.argv[2]).read_bytes())
            return
        self.wfile.write(
            b"the cellar is flooded" if MODE == "unready" else b'{"pid": %d}' % os.getpid()
        )


def main() -> int:
    """Serve until killed."""
    if MODE == "failing" or (MODE == "fails-with" and Path(sys.argv[2]).exists()):
        sys.stderr.write("no luck today\n")
        return 3
    if MODE == "port-lost" and not Path(sys.argv[2]).exists():
        Path(sys.argv[2]).write_text(os.environ["PML_HEALTH_PORT"])
        raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
    if MODE == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if MODE == "family":
        child = subprocess.Popen(["sleep", "600"], start_new_session=True)
        Path(sys.argv[2]).write_text(str(child.pid))
    port = os.environ.get("PML_GATEWAY_PORT") or os.environ["PML_HEALTH_PORT"]
    HTTPServer(("127.0.0.1", int(port)), Health).serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main())
