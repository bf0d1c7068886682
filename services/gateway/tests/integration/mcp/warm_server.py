"""The test server, imported once and forked for each start: a program with a socket's path as its
argument. Its imports take 0.7 s of processor time, which a fork does not repeat.

`warm_start.py` is the process that the gateway sees: it passes its arguments, environment, folder
and pipes, and exits as the fork does; when it is killed, the fork is. It ends with its input.
"""

import ast
import gc
import os
import select
import signal
import socket
import sys
from typing import Final

from services.gateway.tests.integration.mcp import server_program

_PIPES: Final = 3


def main() -> None:
    """Fork a server for each connection until the input ends."""
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(sys.argv[1])
        listener.listen()
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while listener in select.select([listener, sys.stdin], [], [])[0]:
            with listener.accept()[0] as start:
                if os.fork() == 0:
                    os._exit(_serve(start))


def _serve(start: socket.socket) -> int:
    """Run one server, tied to the process that asked for it; tell that its exit code."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    head, pipes, _, _ = socket.recv_fds(start, 8, _PIPES)
    with start.makefile("rb") as body:
        arguments, environment, folder = ast.literal_eval(body.read(int(head)).decode())
    server = os.fork()
    if server == 0:
        for number, pipe in enumerate(pipes):
            os.dup2(pipe, number)
        os.environ.clear()
        os.environ.update(environment)
        os.chdir(folder)
        sys.argv[1:] = arguments
        start.close()
        server_program.main()
        return 0
    for pipe in pipes:
        os.close(pipe)
    ended = os.pidfd_open(server)
    if ended not in select.select([ended, start], [], [])[0]:
        os.kill(server, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(server, 0)[1])
    start.sendall(b"%d" % (code & 0xFF))
    return 0


if __name__ == "__main__":
    main()
