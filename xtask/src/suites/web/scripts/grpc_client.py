"""One gRPC conversation, printed as lines that two servers can be compared by.

Usage: grpc_client.py HOST:PORT CASE [CA].
"""

import hashlib
import sys
import threading

import grpc

PATIENCE_S = 20
OPTIONS = (
    ("grpc.max_receive_message_length", 64 << 20),
    ("grpc.enable_retries", 0),
)
if len(sys.argv) > 3:
    with open(sys.argv[3], "rb") as file:
        CHANNEL = grpc.secure_channel(sys.argv[1], grpc.ssl_channel_credentials(file.read()), OPTIONS)
else:
    CHANNEL = grpc.insecure_channel(sys.argv[1], OPTIONS)


def path(method):
    return f"/suite.Echo/{method}"


def unary(method):
    return CHANNEL.unary_unary(path(method))


def said(error):
    print("status", error.code().name, repr(error.details()) if error.code().value[0] not in (1, 4, 14) else "")


def metadata(what, pairs):
    for name, value in sorted(pairs):
        if name.startswith("x-"):
            print(what, name, value)


def echo():
    answer, call = unary("Echo").with_call(b"hello", metadata=(("x-said", "a b"),), timeout=PATIENCE_S)
    print("answer", answer, call.code().name, repr(call.details()))
    metadata("initial", call.initial_metadata())
    metadata("trailing", call.trailing_metadata())


def sizes():
    for size in (0, 1, 16384, 65535, 65536, 3 << 20, 20 << 20):
        answer = unary("Echo")(b"s" * size, timeout=PATIENCE_S)
        print("answer", len(answer), hashlib.sha256(answer).hexdigest()[:16])


def compressed():
    answer = unary("Echo")(b"z" * 1_000_000, timeout=PATIENCE_S, compression=grpc.Compression.Gzip)
    print("answer", len(answer))


def refused():
    try:
        unary("Refuse")(b"", timeout=PATIENCE_S)
    except grpc.RpcError as error:
        said(error)
        metadata("trailing", error.trailing_metadata())


def unknown():
    unary("Nothing")(b"", timeout=PATIENCE_S)


def elsewhere():
    """A service that no server has a route for."""
    CHANNEL.unary_unary("/other.Service/Method")(b"", timeout=PATIENCE_S)


def deadline():
    unary("Sleep")(b"5000", timeout=0.5)


def server_stream():
    answers = list(CHANNEL.unary_stream(path("Count"))(b"1000", timeout=PATIENCE_S))
    print("answers", len(answers), answers[-1])


def breaks():
    for answer in CHANNEL.unary_stream(path("Breaks"))(b"", timeout=PATIENCE_S):
        print("answer", answer)


def client_stream():
    print("answer", CHANNEL.stream_unary(path("Total"))((b"t" * 10_000 for _ in range(500)), timeout=PATIENCE_S))


def chat():
    """Each message is sent when the answer to the one before it is there."""
    answered = threading.Semaphore(1)

    def messages():
        for number in range(50):
            answered.acquire()
            yield b"message %d" % number

    last = None
    for last in CHANNEL.stream_stream(path("Chat"))(messages(), timeout=PATIENCE_S):
        answered.release()
    print("last", last)


def cancelled():
    call = CHANNEL.unary_stream(path("Endless"))(b"", timeout=PATIENCE_S)
    print("answer", len(next(call)))
    call.cancel()
    try:
        next(call)
    except grpc.RpcError as error:
        said(error)
    print("after", unary("Echo")(b"on", timeout=PATIENCE_S))


def parallel():
    calls = [unary("Echo").future(b"%d" % number, timeout=PATIENCE_S) for number in range(300)]
    print("right", sum(call.result() == b"%d" % number for number, call in enumerate(calls)))


def dies():
    """The server ends in the middle of a call, and is not there for the next."""
    for method in ("Die", "Echo"):
        try:
            print("answer", unary(method)(b"", timeout=PATIENCE_S))
        except grpc.RpcError as error:
            said(error)


CASES = {
    "echo": echo,
    "sizes": sizes,
    "compressed": compressed,
    "refused": refused,
    "unknown method": unknown,
    "no such service": elsewhere,
    "deadline": deadline,
    "server stream": server_stream,
    "stream that breaks": breaks,
    "client stream": client_stream,
    "chat": chat,
    "cancelled": cancelled,
    "parallel": parallel,
    "backend dies": dies,
}

try:
    CASES[sys.argv[2]]()
except grpc.RpcError as error:
    said(error)
