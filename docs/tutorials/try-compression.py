"""Bytes on the wire and processor time of a response, for try-compression.sh.

Usage: try-compression.py NAME:PORT:PID[,...] TURNS. Each kind of response is fetched over one
connection; processor time is that of the server's process and its children.
"""

import os
import socket
import statistics
import sys

KINDS = [("/page.html", 300), ("/large.json", 10), ("/api/page.html", 300), ("/api/large.json", 10)]


def processes(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as children:
        return [pid, *map(int, children.read().split())]


def processor_seconds(pids):
    ticks = 0
    for pid in pids:
        with open(f"/proc/{pid}/stat") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


class Client:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self.buffer = b""

    def more(self):
        data = self.socket.recv(1 << 16)
        if not data:
            sys.exit("a server closed its connection")
        self.buffer += data

    def until(self, end):
        while end not in self.buffer:
            self.more()
        head, self.buffer = self.buffer.split(end, 1)
        return head

    def take(self, length):
        while len(self.buffer) < length:
            self.more()
        self.buffer = self.buffer[length:]
        return length

    def fetch(self, path, coding):
        """The bytes of the body, as they are sent."""
        accept = f"Accept-Encoding: {coding}\r\n" if coding else ""
        self.socket.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{accept}\r\n".encode())
        head = self.until(b"\r\n\r\n").lower()
        if b" 200 " not in head.split(b"\r\n", 1)[0]:
            sys.exit(f"{path}: {head[:80]!r}")
        if b"content-length:" in head:
            return self.take(int(head.split(b"content-length:")[1].split(b"\r\n")[0]))
        total = 0
        while True:
            length = int(self.until(b"\r\n"), 16)
            total += self.take(length + 2) - 2
            if length == 0:
                return total


def measure(port, pid, path, coding, count):
    client, pids = Client(port), processes(pid)
    before = processor_seconds(pids)
    for _ in range(count):
        length = client.fetch(path, coding)
    return length, 1000 * (processor_seconds(pids) - before) / count


def main():
    servers = [server.split(":") for server in sys.argv[1].split(",")]
    found = {}
    for _ in range(int(sys.argv[2])):
        for path, count in KINDS:
            for name, port, pid in servers:
                codings = ["", "gzip"] + (["br", "zstd"] if name == "sooner" else [])
                for coding in codings:
                    one = measure(int(port), int(pid), path, coding, count)
                    found.setdefault((path, name, coding), []).append(one)
    print(f"{'response':16} {'server':7} {'coding':9} {'bytes':>8} {'processor ms':>12}  all turns")
    for (path, name, coding), all_turns in found.items():
        times = [ms for _, ms in all_turns]
        every = " ".join(f"{ms:.2f}" for ms in times)
        median = statistics.median(times)
        coding = coding or "identity"
        print(f"{path:16} {name:7} {coding:9} {all_turns[0][0]:8} {median:12.2f}  {every}")


main()
