"""An echo server for WebSockets that also does what a path says.

Prints its port. /ws echoes, and answers `count` with how many connections there are; /ws/close/CODE
closes with it; /ws/cut ends the connection without a word; /ws/reset resets it; /ws/refuse answers
403. Of the subprotocols it takes `b`.
"""

import asyncio
import socket
import struct
from http import HTTPStatus

from websockets.asyncio.server import serve

SERVERS = []


async def handle(connection):
    path = connection.request.path
    if path.startswith("/ws/close/"):
        await connection.close(int(path.rsplit("/", 1)[1]), "as told")
        return
    if path in ("/ws/cut", "/ws/reset"):
        await connection.recv()
        await connection.send("half")
        if path == "/ws/reset":
            raw = connection.transport.get_extra_info("socket")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.transport.abort()
        return
    async for message in connection:
        if message == "count":
            message = str(len(SERVERS[0].connections))
        await connection.send(message)


def refuse(connection, request):
    if request.path == "/ws/refuse":
        return connection.respond(HTTPStatus.FORBIDDEN, "not you\n")
    return None


async def main():
    async with serve(
        handle,
        "127.0.0.1",
        0,
        max_size=32 << 20,
        process_request=refuse,
        select_subprotocol=lambda _, offered: "b" if "b" in offered else None,
        ping_interval=None,
    ) as server:
        SERVERS.append(server)
        print(server.sockets[0].getsockname()[1], flush=True)
        await asyncio.Future()


asyncio.run(main())
