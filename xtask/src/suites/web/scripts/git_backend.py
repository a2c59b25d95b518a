"""Runs `git http-backend` for each request, as a web server's CGI does.

Usage: git_backend.py FOLDER. Prints its port. Serves the repositories below FOLDER, to push to as well.
"""

import http.server
import os
import subprocess
import sys

FOLDER = os.path.abspath(sys.argv[1])


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def body(self):
        """Pieces of the request's body, with their framing undone."""
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            while True:
                length = int(self.rfile.readline().split(b";")[0], 16)
                piece = self.rfile.read(length)
                if length == 0:
                    while self.rfile.readline() not in (b"\r\n", b""):
                        pass
                    return
                self.rfile.readline()
                yield piece
        left = int(self.headers.get("Content-Length", 0))
        while left > 0:
            piece = self.rfile.read(min(left, 65536))
            if not piece:
                return
            left -= len(piece)
            yield piece

    def answer(self):
        path, _, query = self.path.partition("?")
        environment = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": FOLDER,
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_CONFIG_NOSYSTEM": "1",
            "HOME": FOLDER,
            "REMOTE_USER": "suite",
            "REMOTE_ADDR": self.client_address[0],
            "REQUEST_METHOD": self.command,
            "PATH_INFO": path.removeprefix("/smart"),
            "QUERY_STRING": query,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
        }
        git = subprocess.Popen(
            ["git", "http-backend"],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        try:
            for piece in self.body():
                git.stdin.write(piece)
            git.stdin.close()
        except BrokenPipeError:
            pass
        status, headers = "200 OK", []
        while (line := git.stdout.readline()) not in (b"\r\n", b"\n", b""):
            name, _, value = line.decode().strip().partition(": ")
            if name == "Status":
                status = value
            else:
                headers.append((name, value))
        code, _, reason = status.partition(" ")
        self.send_response(int(code), reason)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        while piece := git.stdout.read1(65536):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.wfile.write(b"0\r\n\r\n")
        git.wait()

    do_GET = do_POST = answer


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
print(server.server_address[1], flush=True)
server.serve_forever()
