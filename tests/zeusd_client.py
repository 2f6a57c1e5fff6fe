#!/usr/bin/env python3
"""A client of zeusd that runs anywhere (another user, a container, another machine of a test): Python's library only.

zeusd_client.py SOCKET ask METHOD TARGET [BODY]     prints the status and the body
zeusd_client.py SOCKET hold METHOD TARGET [BODY]    the same, then lives until its standard input ends
"""

import http.client
import socket
import sys


class UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path, timeout=60):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def main():
    path, what, method, target, *body = sys.argv[1:]
    connection = UnixConnection(path)
    connection.request(method, target, body=body[0] if body else None)
    answer = connection.getresponse()
    print(answer.status, answer.read().decode().replace("\n", " "), flush=True)
    if what == "hold":
        sys.stdin.read()


if __name__ == "__main__":
    main()
