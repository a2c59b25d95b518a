"""A gRPC server of bytes. Usage: grpc_server.py PORT. Prints its port when it listens."""

import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import grpc


def echo(request, context):
    sent = dict(context.invocation_metadata())
    context.send_initial_metadata((("x-initial", sent.get("x-said", "none")), ("x-raw-bin", b"\x00\xff\x80")))
    context.set_trailing_metadata((("x-trailing", "t"), ("x-twice", "1"), ("x-twice", "2")))
    return request


def refuse(request, context):
    context.set_trailing_metadata((("x-why", "told"),))
    context.abort(grpc.StatusCode.FAILED_PRECONDITION, "not now: \u00e4 100% \"sure\"")


def sleep(request, context):
    time.sleep(int(request) / 1000)
    return b"awake"


def count(request, context):
    for number in range(int(request)):
        yield b"%d" % number


def breaks(request, context):
    yield b"first"
    context.abort(grpc.StatusCode.DATA_LOSS, "in the middle")


def endless(request, context):
    while context.is_active():
        yield b"x" * 1000
        time.sleep(0.001)


def total(requests, context):
    return b"%d" % sum(len(request) for request in requests)


def chat(requests, context):
    for request in requests:
        yield request[::-1]


def die(request, context):
    os._exit(1)


unary, streamed = grpc.unary_unary_rpc_method_handler, grpc.unary_stream_rpc_method_handler
METHODS = {
    "Echo": unary(echo),
    "Refuse": unary(refuse),
    "Sleep": unary(sleep),
    "Die": unary(die),
    "Count": streamed(count),
    "Breaks": streamed(breaks),
    "Endless": streamed(endless),
    "Total": grpc.stream_unary_rpc_method_handler(total),
    "Chat": grpc.stream_stream_rpc_method_handler(chat),
}

server = grpc.server(
    ThreadPoolExecutor(32),
    options=(("grpc.max_receive_message_length", 64 << 20), ("grpc.so_reuseport", 0)),
)
server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("suite.Echo", METHODS),))
port = server.add_insecure_port(f"127.0.0.1:{sys.argv[1]}")
server.start()
print(port, flush=True)
server.wait_for_termination()
