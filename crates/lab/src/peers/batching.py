#!/usr/bin/python3
"""A stand-in of a server of language models that batches continuously.

It stands for vLLM, SGLang, TGI or the server of llama.cpp where none can be had: the same
interface, and the same shape of throughput for the same reason. One engine makes one step after
the other, and a step brings every request of the batch one token further. A step multiplies
matrices of weights by one vector a token, with real numbers on one processor. The weights come
from memory for few vectors as for many, so throughput grows with the batch until computing, not
memory, bounds it. Requests join and leave between steps. Those beyond the batch wait in a queue
of the engine's own, first come, first served.

What it is not: the weights are random numbers and the layers look at one token at a time
(attention is left out), so a token of a long context costs what one of a short context costs,
and the text says nothing. There is one model, whatever name is asked for.

    batching.py --listen ADDRESS:PORT [--batch N] [--prefill N] [--memory N] [--stop P]
                [--width N] [--layers N]

  --batch N     requests in a step at most; the others wait in the engine's queue (32)
  --prefill N   tokens of prompts in a step at most, beside one token of each request that is
                past its prompt; a prompt has a token for every four bytes of its messages.
                0: prompts cost nothing (64)
  --memory N    tokens (prompts and answers) that the batch can hold. Where they are more, the
                request that joined last gives its place up, waits as the first in the queue
                and computes all of its tokens anew. 0: no bound (0)
  --stop P      the chance, after each token, that an answer ends there and not at max_tokens (0)
  --width N     length of a vector (512); a layer has 8 * N * N weights of four bytes
  --layers N    layers (8): 64 MiB of weights with a width of 512

`POST /v1/chat/completions` takes `messages`, `model`, `max_tokens` (or `max_completion_tokens`;
16 if there is none) and `stream`: then every token is an event as soon as its step ends.
`GET /v1/models` and `GET /health` are answered beside the engine. A client that closes its
connection gives its place up. Needs numpy with a BLAS (Debian: python3-numpy, libopenblas0).
"""

import argparse
import asyncio
import collections
import json
import os
import random
import signal
import sys
import threading
import time

for library in ("OPENBLAS", "OMP", "MKL", "BLIS"):
    os.environ[library + "_NUM_THREADS"] = "1"
try:
    import numpy
except ImportError:
    sys.exit("batching.py: numpy is not installed for %s: python3-numpy" % sys.executable)

VOCABULARY = 256
POSITIONS = 512
# Vectors of a step are filled up to a multiple of this, as engines do for their kernels.
PADDED_TO = 4
BODY_BYTES_MAX = 16 << 20
TOKENS_MAX = 1 << 17


class Model:
    """Layers of random weights that make the next token out of each token and its position."""

    def __init__(self, width, layers):
        generator = numpy.random.default_rng(1)

        def weights(rows, columns):
            made = generator.standard_normal((rows, columns), dtype=numpy.float32)
            return made / numpy.float32(rows**0.5)

        self.layers = [
            (weights(width, 4 * width), weights(4 * width, width)) for _ in range(layers)
        ]
        self.tokens = weights(VOCABULARY, width)
        self.positions = weights(POSITIONS, width)
        self.words = weights(width, VOCABULARY)

    def next_tokens(self, tokens, positions):
        """The token that follows each of these, at these positions of their texts."""
        padding = [0] * (-len(tokens) % PADDED_TO)
        state = self.tokens[tokens + padding]
        state += self.positions[numpy.array(positions + padding) % POSITIONS]
        for up, down in self.layers:
            scale = numpy.sqrt(numpy.square(state).mean(axis=1, keepdims=True)) + 1e-6
            inner = (state / scale) @ up
            numpy.maximum(inner, 0, out=inner)
            state += inner @ down
        return (state @ self.words).argmax(axis=1)[: len(tokens)].tolist()


def gains_by_batches():
    """Whether the weights come from memory once for a batch, as the BLAS multiplies here."""
    # More than a cache holds, whatever the width of the model is.
    model = Model(512, 2)

    def step_s(requests):
        began = time.perf_counter()
        model.next_tokens([0] * requests, [0] * requests)
        return time.perf_counter() - began

    few, many = (min(step_s(requests) for _ in range(3)) for requests in (4, 32))
    return many < 4 * few


class Job:
    """A request as the engine sees it: a text that grows by a token at the end of a step."""

    def __init__(self, text, tokens_max, on_token):
        self.tokens = [byte for byte in text[::4]] or [0]
        self.prompt_tokens = len(self.tokens)
        self.tokens_max = tokens_max
        self.on_token = on_token
        # Tokens whose place in the cache is filled.
        self.computed = 0
        self.reason = None
        self.is_abandoned = False

    def made(self):
        return len(self.tokens) - self.prompt_tokens


class Engine(threading.Thread):
    """The batch, the queue before it, and the steps."""

    def __init__(self, model, options, deliver):
        super().__init__(daemon=True)
        self.model = model
        self.batch = options.batch
        self.prefill = options.prefill
        self.memory = options.memory
        self.stop_chance = options.stop
        self.deliver = deliver
        self.random = random.Random(1)
        self.changed = threading.Condition()
        self.waiting = collections.deque()
        self.running = []

    def submit(self, job):
        with self.changed:
            self.waiting.append(job)
            self.changed.notify()

    def run(self):
        try:
            while True:
                with self.changed:
                    while not self.waiting and not self.running:
                        self.changed.wait()
                    self.join_and_leave()
                self.step()
        except BaseException:
            sys.excepthook(*sys.exc_info())
            os._exit(1)

    def join_and_leave(self):
        self.running = [job for job in self.running if not (job.reason or job.is_abandoned)]
        held = sum(len(job.tokens) for job in self.running)
        # Each is to have a token more after this step.
        while self.memory and self.running and held + len(self.running) > self.memory:
            last = self.running.pop()
            held -= len(last.tokens)
            last.computed = 0
            self.waiting.appendleft(last)
        while self.waiting and len(self.running) < self.batch:
            job = self.waiting[0]
            needed = held + len(job.tokens) + len(self.running) + 1
            if job.is_abandoned:
                self.waiting.popleft()
            elif self.memory and needed > self.memory:
                break
            else:
                self.running.append(self.waiting.popleft())
                held += len(job.tokens)

    def step(self):
        tokens, positions, ends = [], [], []
        left = self.prefill
        for job in self.running:
            if self.prefill == 0:
                job.computed = len(job.tokens) - 1
            count = len(job.tokens) - job.computed
            if count > 1:
                count = min(count, left)
                left -= count
            tokens += job.tokens[job.computed : job.computed + count]
            positions += range(job.computed, job.computed + count)
            job.computed += count
            if job.computed == len(job.tokens):
                ends.append((job, len(tokens) - 1))
        if not tokens:
            return
        following = self.model.next_tokens(tokens, positions)
        for job, at in ends:
            job.tokens.append(following[at])
            if job.made() >= job.tokens_max:
                job.reason = "length"
            elif self.stop_chance and self.random.random() < self.stop_chance:
                job.reason = "stop"
        self.deliver([(job, following[at], job.reason) for job, at in ends])


def word(token):
    return chr(97 + token // 26) + chr(97 + token % 26) + " "


class Refusal(Exception):
    """A request that is not served: status and reason."""


class Connection(asyncio.StreamReaderProtocol):
    """Tells the job under way that its client has left."""

    job = None

    def abandon(self):
        if self.job:
            self.job.is_abandoned = True
            self.job.on_token(None, "gone")

    def eof_received(self):
        self.abandon()
        return super().eof_received()

    def connection_lost(self, error):
        self.abandon()
        super().connection_lost(error)


async def read_head(reader):
    """Method, path and fields, or None where the client has no more requests."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    except asyncio.LimitOverrunError:
        raise Refusal(431, "the head is too long")
    first, *lines = head.decode("latin-1").split("\r\n")
    fields = {}
    for line in filter(None, lines):
        name, _, value = line.partition(":")
        fields[name.strip().lower()] = value.strip()
    parts = first.split(" ")
    if len(parts) != 3:
        raise Refusal(400, "no request line of HTTP/1.1")
    return parts[0], parts[1].partition("?")[0], fields


async def read_body(reader, writer, fields):
    if fields.get("expect", "").lower() == "100-continue":
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    if "chunked" not in fields.get("transfer-encoding", "").lower():
        length = fields.get("content-length", "0")
        if not length.isdigit():
            raise Refusal(400, "content-length is no number")
        if int(length) > BODY_BYTES_MAX:
            raise Refusal(413, "the body is too long")
        return await reader.readexactly(int(length))
    body = b""
    while True:
        line = await reader.readuntil(b"\r\n")
        try:
            length = int(line.split(b";")[0], 16)
        except ValueError:
            raise Refusal(400, "a chunk has no length")
        if length == 0:
            while await reader.readuntil(b"\r\n") != b"\r\n":
                pass
            return body
        body += (await reader.readexactly(length + 2))[:-2]
        if len(body) > BODY_BYTES_MAX:
            raise Refusal(413, "the body is too long")


def asked(fields, body):
    """What a body asks for, checked."""
    if fields.get("content-encoding", "identity") != "identity":
        raise Refusal(415, "the body is compressed")
    try:
        value = json.loads(body)
    except ValueError:
        raise Refusal(400, "the body is not JSON")
    if not isinstance(value, dict) or not isinstance(value.get("messages"), list):
        raise Refusal(400, "messages: an array is missing")
    tokens_max = value.get("max_completion_tokens", value.get("max_tokens"))
    tokens_max = 16 if tokens_max is None else tokens_max
    if not isinstance(tokens_max, int) or not 1 <= tokens_max <= TOKENS_MAX:
        raise Refusal(400, "max_tokens: a number from 1 to %d" % TOKENS_MAX)
    contents = (one.get("content") for one in value["messages"] if isinstance(one, dict))
    text = "".join(one if isinstance(one, str) else json.dumps(one) for one in contents)
    return value, text.encode(), tokens_max


def send(writer, status, value):
    body = json.dumps(value).encode()
    head = "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    writer.write((head % (status, "OK" if status == 200 else "Error", len(body))).encode() + body)


def send_event(writer, value):
    data = value if isinstance(value, str) else json.dumps(value)
    event = ("data: %s\n\n" % data).encode()
    writer.write(b"%x\r\n%s\r\n" % (len(event), event))


class Server:
    """Requests of HTTP/1.1, for the engine and from it."""

    def __init__(self, options):
        self.loop = asyncio.get_running_loop()
        self.memory = options.memory
        self.served = 0
        deliver = lambda tokens: self.loop.call_soon_threadsafe(self.hand_out, tokens)
        model = Model(options.width, options.layers)
        if not gains_by_batches():
            sys.exit("batching.py: this BLAS gains nothing by batches: install libopenblas0")
        self.engine = Engine(model, options, deliver)
        self.engine.start()

    @staticmethod
    def hand_out(tokens):
        for job, token, reason in tokens:
            job.on_token(token, reason)

    async def serve(self, reader, writer, connection):
        try:
            while True:
                head = await read_head(reader)
                if head is None:
                    break
                method, path, fields = head
                body = await read_body(reader, writer, fields)
                await self.answer(method, path, fields, body, writer, connection)
                await writer.drain()
                if fields.get("connection", "").lower() == "close":
                    break
        except Refusal as refusal:
            # What comes after it is not understood.
            status, reason = refusal.args
            send(writer, status, {"error": {"message": reason}})
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def answer(self, method, path, fields, body, writer, connection):
        if path == "/health":
            return send(writer, 200, {"status": "ok"})
        if path == "/v1/models":
            model = {"id": "stand-in", "object": "model", "created": 0, "owned_by": "stand-in"}
            return send(writer, 200, {"object": "list", "data": [model]})
        if (method, path) != ("POST", "/v1/chat/completions"):
            return send(writer, 404, {"error": {"message": "there is no %s here" % path}})
        try:
            value, text, tokens_max = asked(fields, body)
        except Refusal as refusal:
            status, reason = refusal.args
            return send(writer, status, {"error": {"message": reason}})
        came = asyncio.Queue()
        job = Job(text, tokens_max, lambda token, reason: came.put_nowait((token, reason)))
        if self.memory and job.prompt_tokens + tokens_max > self.memory:
            return send(writer, 400, {"error": {"message": "longer than the memory"}})
        self.served += 1
        connection.job = job
        self.engine.submit(job)
        try:
            send_answer = self.stream if value.get("stream") is True else self.complete
            await send_answer(value, job, came, writer)
        finally:
            job.is_abandoned = True
            connection.job = None

    def told(self, kind, value):
        return {
            "id": "chatcmpl-%d" % self.served,
            "object": kind,
            "created": int(time.time()),
            "model": str(value.get("model", "stand-in")),
        }

    @staticmethod
    def usage(job):
        return {
            "prompt_tokens": job.prompt_tokens,
            "completion_tokens": job.made(),
            "total_tokens": len(job.tokens),
        }

    async def complete(self, value, job, came, writer):
        told, text, reason = self.told("chat.completion", value), "", None
        while reason is None:
            token, reason = await came.get()
            if reason == "gone":
                raise ConnectionResetError
            text += word(token)
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "message": message, "finish_reason": reason}
        send(writer, 200, {**told, "choices": [choice], "usage": self.usage(job)})

    async def stream(self, value, job, came, writer):
        told, reason = self.told("chat.completion.chunk", value), None
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
            b"Cache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        delta = {"role": "assistant", "content": ""}
        while reason is None:
            choice = {"index": 0, "delta": delta, "finish_reason": None}
            send_event(writer, {**told, "choices": [choice]})
            await writer.drain()
            token, reason = await came.get()
            if reason == "gone":
                raise ConnectionResetError
            delta = {"content": word(token)}
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        send_event(writer, {**told, "choices": [choice]})
        wanted = value.get("stream_options")
        if isinstance(wanted, dict) and wanted.get("include_usage"):
            send_event(writer, {**told, "choices": [], "usage": self.usage(job)})
        send_event(writer, "[DONE]")
        writer.write(b"0\r\n\r\n")


async def run(address, port, options):
    loop = asyncio.get_running_loop()
    server = Server(options)

    def connect():
        reader = asyncio.StreamReader(loop=loop)
        serve = lambda reader, writer: server.serve(reader, writer, connection)
        connection = Connection(reader, serve, loop=loop)
        return connection

    listening = await loop.create_server(connect, address, port, backlog=4096)
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, listening.close)
    try:
        await listening.serve_forever()
    except asyncio.CancelledError:
        pass
    os._exit(0)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--listen", required=True, metavar="ADDRESS:PORT")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--prefill", type=int, default=64)
    parser.add_argument("--memory", type=int, default=0)
    parser.add_argument("--stop", type=float, default=0.0)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--layers", type=int, default=8)
    options = parser.parse_args()
    address, _, port = options.listen.rpartition(":")
    if not port.isdigit():
        parser.error("--listen: ADDRESS:PORT, not %s" % options.listen)
    for name in ("batch", "width", "layers"):
        if getattr(options, name) < 1:
            parser.error("--%s: at least 1" % name)
    # The engine waits for at most so long until the answers let it go on.
    sys.setswitchinterval(0.0005)
    asyncio.run(run(address.strip("[]"), int(port), options))


main()
