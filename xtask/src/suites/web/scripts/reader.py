"""A backend that reads each request to its end and answers so many bytes. Prints its port."""

import http.server
import sys

BODY = bytes(int(sys.argv[1]))


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def read_body(self):
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            while length := int(self.rfile.readline().split(b";")[0] or b"0", 16):
                self.rfile.read(length + 2)
            while self.rfile.readline() not in (b"\r\n", b""):
                pass
        else:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def answer(self):
        self.read_body()
        self.send_response(200)
        self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(BODY)

    do_GET = do_HEAD = do_POST = do_PUT = do_OPTIONS = answer


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1024


server = Server(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
