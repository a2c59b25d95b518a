"""One conversation over a WebSocket, printed as lines that two servers can be compared by.

Usage: websocket_client.py URL CASE [CA]. URL ends in /ws.
"""

import asyncio
import hashlib
import random
import ssl
import sys

from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

URL, CASE = sys.argv[1], sys.argv[2]
PATIENCE_S = 20


def digest(message):
    data = message.encode() if isinstance(message, str) else message
    return f"{type(message).__name__} {len(message)} {hashlib.sha256(data).hexdigest()[:16]}"


def open_at(path="", **options):
    if len(sys.argv) > 3:
        options["ssl"] = ssl.create_default_context(cafile=sys.argv[3])
    return connect(URL + path, max_size=32 << 20, ping_interval=None, **options)


async def end_of(connection):
    """Reads to the end, and says how it came: with a close frame or without."""
    try:
        while True:
            print("message", digest(await connection.recv()))
    except ConnectionClosed as closed:
        received = closed.rcvd
        print("end", "without a close frame" if received is None else f"{received.code} {received.reason}")


async def handshake():
    async with open_at(subprotocols=["a", "b"]) as connection:
        response = connection.response
        print("status", response.status_code, response.reason_phrase)
        print("subprotocol", connection.subprotocol)
        for name in ("Upgrade", "Connection", "Sec-WebSocket-Extensions", "Sec-WebSocket-Accept"):
            value = response.headers.get(name)
            print(name, "present" if name.endswith("Accept") and value else value)


async def frames():
    source = random.Random(7)
    async with open_at(compression=None) as connection:
        for size in (0, 1, 125, 126, 65535, 65536, 1 << 20, 4 << 20):
            await connection.send(source.randbytes(size))
            print("message", digest(await connection.recv()))
        await connection.send("\u00e4\u20ac\U0001d11e" * 1000)
        print("message", digest(await connection.recv()))


async def compressed():
    async with open_at() as connection:
        print("extensions", [type(extension).__name__ for extension in connection.protocol.extensions])
        await connection.send("abc" * 400_000)
        print("message", digest(await connection.recv()))


async def fragments():
    async with open_at(compression=None) as connection:
        await connection.send([b"a" * 1000, b"", b"b" * 70_000, b"c"])
        print("message", digest(await connection.recv()))


async def pipelined():
    """A thousand messages of 1 KiB before the first answer is read, while answers are read."""
    async with open_at(compression=None) as connection:
        async def send():
            for number in range(1000):
                await connection.send(number.to_bytes(4, "big") * 256)
        sending = asyncio.create_task(send())
        seen = hashlib.sha256()
        for _ in range(1000):
            seen.update(await connection.recv())
        await sending
        print("all", seen.hexdigest()[:16])


async def ping():
    async with open_at() as connection:
        for payload in (b"", b"x" * 125):
            pong = await connection.ping(payload)
            await pong
            print("pong", len(payload))
        await connection.pong(b"unasked")
        await connection.send("after")
        print("message", await connection.recv())


async def codes():
    for code in (1000, 1001, 1008, 1011, 3000, 4999):
        async with open_at(f"/close/{code}") as connection:
            await end_of(connection)
    async with open_at() as connection:
        await connection.close(4001, "from the client")
        print("closed", connection.close_code, connection.close_reason)


async def cut(path):
    async with open_at(path) as connection:
        await connection.send("go")
        await end_of(connection)


async def refused():
    try:
        async with open_at("/refuse"):
            print("let in")
    except InvalidStatus as refusal:
        print("status", refusal.response.status_code, refusal.response.body)


async def leave():
    """The client goes without a word; the server must hear of it."""
    async with open_at() as watcher:
        connection = await open_at()
        await connection.send("here")
        print("message", await connection.recv())
        connection.transport.abort()
        for _ in range(100):
            await watcher.send("count")
            count = await watcher.recv()
            await asyncio.sleep(0.05)
        print("still", count)


async def many():
    """Fifty connections at once, each with messages of its own."""
    async def one(number):
        async with open_at() as connection:
            for turn in range(20):
                text = f"{number} {turn}"
                await connection.send(text)
                if await connection.recv() != text:
                    return 0
            return 1
    print("right", sum(await asyncio.gather(*(one(number) for number in range(50)))))


CASES = {
    "handshake": handshake,
    "frames": frames,
    "compressed": compressed,
    "fragments": fragments,
    "pipelined": pipelined,
    "ping": ping,
    "close codes": codes,
    "backend ends the connection": lambda: cut("/cut"),
    "backend resets the connection": lambda: cut("/reset"),
    "refused": refused,
    "client leaves": leave,
    "many at once": many,
}


async def main():
    try:
        async with asyncio.timeout(PATIENCE_S):
            await CASES[CASE]()
    except TimeoutError:
        print(f"no end within {PATIENCE_S} s")
    except Exception as error:
        print("error", type(error).__name__, error)


asyncio.run(main())
