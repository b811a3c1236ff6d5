"""A warm server: it imports the SDK's everything server once and forks for each host.

`python warm.py SOCKET FOLDER`: FOLDER holds the package. `THIN` is what a host starts instead of
the server: it hands its own streams over and ends with the fork. Importing the SDK costs two
seconds, and the suite starts a server for every session.
"""

from __future__ import annotations

import importlib
import os
import signal
import socket
import sys

THIN = (
    "import os, socket, sys\n"
    "way = socket.socket(socket.AF_UNIX)\n"
    "way.connect(sys.argv[1])\n"
    "socket.send_fds(way, [b'x'], [0, 1, 2])\n"
    "os.close(0), os.close(1)\n"
    "way.recv(1)\n"
)


def main() -> None:
    """Serve until killed."""
    sys.path.insert(0, sys.argv[2])
    mcp = importlib.import_module("mcp_everything_server.server").mcp

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    door = socket.socket(socket.AF_UNIX)
    door.bind(sys.argv[1])
    door.listen(64)
    print("warm", flush=True)
    while True:
        way, _ = door.accept()
        _, streams, _, _ = socket.recv_fds(way, 1, 3)
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            door.close()
            for number, stream in enumerate(streams):
                os.dup2(stream, number)
                os.close(stream)
            try:
                mcp.run(transport="stdio")
            finally:
                os._exit(0)
        for stream in streams:
            os.close(stream)
        way.close()


if __name__ == "__main__":
    main()
