"""What asyncpg sees of a PostgreSQL, one line a step: straight and through a gate the lines must be the same.

Two connections, `a` and `b`, take turns, so that behind a gate neither stays with one server connection. What ties a client to its
server connection has a connection of its own, which is closed behind it.
"""

import asyncio
import contextlib
import datetime
import decimal
import io
import os
import uuid

import asyncpg


@contextlib.asynccontextmanager
async def connect(**more):
    connection = await asyncpg.connect(host=os.environ["PGHOST"], **more)
    try:
        yield connection
    finally:
        await connection.close()


def plain(records):
    return [tuple(record) for record in records]


async def failure(awaitable):
    """What is said of a call that must fail: its SQLSTATE and its first line."""
    try:
        await awaitable
    except asyncpg.PostgresError as error:
        return error.sqlstate, str(error).splitlines()[0]
    except asyncpg.InterfaceError as error:
        return "interface", str(error)
    raise AssertionError("no error")


async def several_statements(a, b):
    status = await a.execute("CREATE TABLE t (i int PRIMARY KEY, s text); INSERT INTO t SELECT i, 's' || i FROM generate_series(0, 99) i; SELECT 1")
    return status, await b.fetchval("SELECT count(*) FROM t")


async def parameters(a, b):
    values = (
        7, None, "ñ'\\", [1, None, 3], [["x", "y"]], datetime.date(1999, 12, 31),
        datetime.datetime(2024, 2, 29, 12, tzinfo=datetime.timezone.utc), decimal.Decimal("1234567890.000001"),
        '{"k": [1, 2.5, null]}', uuid.UUID(int=1), b"\x00\xff", datetime.timedelta(days=3, seconds=4), 1.5,
    )
    sql = """SELECT $1::int, $2::text, $3::text, $4::int[], $5::text[], $6::date, $7::timestamptz, $8::numeric, $9::jsonb, $10::uuid,
        $11::bytea, $12::interval, $13::float8, int4range(1, 5), point(1, 2)"""
    return tuple(await a.fetchrow(sql, *values)), tuple(await b.fetchrow(sql, *values)) == tuple(await a.fetchrow(sql, *values))


async def types_that_are_looked_up(a, b):
    # It asks the catalogue about them first.
    async with connect() as c:
        await c.execute("CREATE TYPE pair AS (x int, y text); CREATE TYPE mood AS ENUM ('good', 'bad')")
        found = await c.fetchrow("SELECT (1, 'one')::pair, 'bad'::mood, ARRAY[(2, NULL)::pair]")
        return [repr(value) for value in found]


async def types_that_many_look_up(a, b):
    # More clients than places; looking a type up sets `jit`, which must tie none of them.
    async with contextlib.AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(connect()) for _ in range(8)]
        return [await c.fetchval("SELECT $1::mood", "bad") for c in clients + clients]


async def prepared_across_transactions(a, b):
    by_key = [await connection.prepare("SELECT s FROM t WHERE i = $1") for connection in (a, b)]
    by_text = [await connection.prepare("SELECT i FROM t WHERE s = $1") for connection in (a, b)]
    found = [[(p.name, p.type.name) for p in by_key[0].get_attributes() for p in (p,)]]
    for turn in range(12):
        first = turn % 2
        async with (a, b)[first].transaction():
            found.append(await by_key[first].fetchval(turn))
            found.append(await by_text[1 - first].fetchval(f"s{turn}"))
            found.append(await by_key[1 - first].fetchval(turn))
    return found


async def one_name_two_texts(a, b):
    async with connect() as c, connect() as d:
        found = []
        for turn in range(3):
            async with c.transaction():
                found.append(await c.fetchval("SELECT 'c' || $1::int", turn))
                found.append(await d.fetchval("SELECT 'd' || $1::text", "other"))
            async with d.transaction():
                found.append(await d.fetchval("SELECT 'd' || $1::text", "again"))
                found.append(await c.fetchval("SELECT 'c' || $1::int", turn))
        return found


async def a_changed_table(a, b):
    async with connect() as c, connect() as d:
        await c.execute("CREATE TABLE changing (i int); INSERT INTO changing VALUES (1)")
        found = []
        for change in ("ADD s text DEFAULT 'new'", "ALTER i TYPE bigint", "DROP s"):
            # Side by side, so that whatever runs it afterwards has it prepared.
            async with c.transaction(), d.transaction():
                for connection in (c, d):
                    found.append(plain(await connection.fetch("SELECT * FROM changing")))
            await c.execute(f"ALTER TABLE changing {change}")
            # Outside a transaction it prepares once more by itself.
            found.append(plain(await c.fetch("SELECT * FROM changing")))
            await d.reload_schema_state()
        async def inside():
            async with c.transaction():
                await c.fetch("SELECT * FROM changing")
                await c.execute("ALTER TABLE changing ADD u int")
                await c.fetch("SELECT * FROM changing")
        return found, await failure(inside()), plain(await c.fetch("SELECT * FROM changing"))


async def transactions(a, b):
    async with a.transaction():
        await a.execute("UPDATE t SET s = 'committed' WHERE i = 1")
        seen_outside = await b.fetchval("SELECT s FROM t WHERE i = 1")
    rolled_back = a.transaction()
    await rolled_back.start()
    await a.execute("UPDATE t SET s = 'never' WHERE i = 1")
    await rolled_back.rollback()
    return seen_outside, await b.fetchval("SELECT s FROM t WHERE i = 1"), a.is_in_transaction()


async def savepoints(a, b):
    async def nested():
        async with a.transaction():
            await a.execute("UPDATE t SET s = 'inner' WHERE i = 2")
            await a.execute("SELECT 1/0")
    async with a.transaction(isolation="serializable"):
        await a.execute("UPDATE t SET s = 'outer' WHERE i = 2")
        said = await failure(nested())
        level = await a.fetchval("SHOW transaction_isolation")
    return said, level, await b.fetchval("SELECT s FROM t WHERE i = 2")


async def a_failed_transaction(a, b):
    await a.execute("BEGIN")
    said = [await failure(a.fetch("SELECT 1/$1::int", 0)), await failure(a.fetch("SELECT 1"))]
    said += [await b.fetchval("SELECT 'others work'"), a.is_in_transaction()]
    return said, await a.execute("COMMIT"), a.is_in_transaction()


async def many_at_once(a, b):
    await a.executemany("INSERT INTO t VALUES ($1, $2)", [(i, f"m{i}") for i in range(1000, 3000)])
    # All or nothing.
    said = await failure(b.executemany("INSERT INTO t VALUES ($1, $2)", [(i, None) for i in range(5000, 4990 - 2000, -1)]))
    return await b.fetchrow("SELECT count(*), sum(i) FROM t WHERE i >= 1000"), said


async def copied(a, b):
    out = io.BytesIO()
    found = [await a.copy_from_query("SELECT * FROM t WHERE i < $1 ORDER BY i", 3, output=out), out.getvalue()]
    found.append(await a.copy_to_table("t", source=io.BytesIO(b"".join(b"%d\tx\n" % i for i in range(10000, 40000)))))
    found.append(await b.copy_records_to_table("t", records=((i, None) for i in range(40000, 45000)), columns=["i", "s"]))
    table = io.BytesIO()
    found.append(await b.copy_from_table("t", output=table, format="csv"))
    return found, len(table.getvalue()), tuple(await a.fetchrow("SELECT count(*), sum(i) FROM t"))


async def copies_that_fail(a, b):
    rows = [b"%d\tx\n" % i for i in range(50000, 60000)]
    said = [await failure(a.copy_to_table("t", source=io.BytesIO(b"".join(rows + [b"no number\tx\n"] + rows))))]
    async def gives_up():
        for row in rows:
            yield row
        raise ValueError("changed its mind")
    try:
        await b.copy_to_table("t", source=gives_up())
    except ValueError as error:
        said.append(str(error))
    query = "SELECT 1/(5000-i) FROM generate_series(1, 9000) i"
    said.append(await failure(a.copy_from_query(query, output=io.BytesIO())))
    return said, await a.fetchval("SELECT count(*) FROM t"), await b.fetchval("SELECT count(*) FROM t")


async def sleeps(other):
    while not await other.fetchval("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"):
        await asyncio.sleep(0.02)


async def cancelled(a, b):
    # By the driver itself, when its caller gives up.
    sleeping = asyncio.create_task(a.fetch("SELECT pg_sleep(50)"))
    await sleeps(b)
    sleeping.cancel()
    try:
        await sleeping
    except asyncio.CancelledError:
        pass
    found = [await a.fetchval("SELECT 'again'"), await b.fetchval("SELECT 'unharmed'")]
    try:
        await a.fetch("SELECT pg_sleep(50)", timeout=0.3)
    except asyncio.TimeoutError:
        found.append("too late")
    left = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
    return found, await a.fetchval("SELECT 'again'"), await b.fetchval(left)


async def notices(a, b):
    heard = []
    def hear(_, message):
        heard.append((message.severity, message.sqlstate, message.message))
    a.add_log_listener(hear)
    await a.execute("DO $$ BEGIN RAISE NOTICE 'hello'; RAISE WARNING 'beware'; END $$")
    a.remove_log_listener(hear)
    await asyncio.sleep(0)
    return heard


async def notifications(a, b):
    heard = asyncio.Queue()
    def hear(_, pid, channel, payload):
        heard.put_nowait((channel, payload))
    async with connect() as c:
        await c.add_listener("news", hear)
        async with b.transaction():
            await b.execute("NOTIFY news, 'first'")
            await b.execute("SELECT pg_notify('news', $1)", "second")
        found = [await heard.get(), await heard.get()]
        await c.remove_listener("news", hear)
    return found


async def temporary_tables(a, b):
    async with connect() as c:
        await c.execute("CREATE TEMP TABLE mine (i int); INSERT INTO mine VALUES (1), (2)")
        async with b.transaction():
            hidden = await b.fetchval("SELECT to_regclass('mine')::text")
        return hidden, await c.fetchval("SELECT count(*) FROM mine WHERE i > $1", 0)


async def advisory_locks(a, b):
    async with connect() as c, connect() as d:
        await c.execute("SELECT pg_advisory_lock(7)")
        found = [await d.fetchval("SELECT pg_try_advisory_lock(7)"), await c.fetchval("SELECT pg_advisory_unlock(7)")]
        found.append(await d.fetchval("SELECT pg_try_advisory_lock(7)"))
    attempt = "SELECT pg_try_advisory_xact_lock($1)"
    async with a.transaction():
        found += [await a.fetchval(attempt, 8), await b.fetchval(attempt, 8)]
    return found, await b.fetchval(attempt, 8)


async def settings(a, b):
    read = "SELECT current_setting('TimeZone'), current_setting('DateStyle'), current_setting('work_mem')"
    changes = []
    async with connect(server_settings={"application_name": "shop", "work_mem": "5MB", "timezone": "Asia/Tokyo"}) as c:
        await c.execute("SET DateStyle TO German")
        found = [c.get_settings().application_name, c.get_settings().TimeZone]
        for _ in range(3):
            async with b.transaction():
                found += [tuple(await c.fetchrow(read)), tuple(await b.fetchrow(read))]
        await c.execute("SET search_path TO pg_catalog")
        async with b.transaction():
            found += [await c.fetchval("SHOW search_path"), await b.fetchval("SHOW search_path")]
    return found


async def reset_by_the_driver(a, b):
    read = "SELECT current_setting('TimeZone'), current_setting('DateStyle'), current_setting('work_mem')"
    async with connect(server_settings={"work_mem": "5MB", "timezone": "Asia/Tokyo"}) as c:
        await c.execute("SET DateStyle TO German")
        async with b.transaction():
            await c.reset()
            found = [tuple(await c.fetchrow(read)), tuple(await b.fetchrow(read))]
        async with c.transaction():
            return found, tuple(await c.fetchrow(read)), tuple(await b.fetchrow(read))


async def a_pool(a, b):
    # Whoever gives a connection back has all of its session thrown away.
    async def work(pool, number):
        found = 0
        for turn in range(5):
            async with pool.acquire() as connection, connection.transaction():
                found += await connection.fetchval("SELECT $1::int * $2::int", number, turn)
                found += await connection.fetchval(f"SELECT {number} + $1::int", turn)
            await asyncio.sleep(0.001 * number)
        return found
    async with asyncpg.create_pool(host=os.environ["PGHOST"], min_size=4, max_size=4) as pool:
        return await asyncio.gather(*(work(pool, number) for number in range(6)))


async def cursors(a, b):
    found = []
    async with a.transaction():
        cursor = await a.cursor("SELECT i FROM t WHERE i < $1 ORDER BY i", 90)
        found += [plain(await cursor.fetch(3)), await b.fetchval("SELECT 'between'"), plain(await cursor.fetch(2))]
        await cursor.forward(5)
        found.append(tuple(await cursor.fetchrow()))
        found.append(sum([record[0] async for record in a.cursor("SELECT i FROM t WHERE i < 60", prefetch=7)]))
    return found


async def large_values(a, b):
    large = "".join(str(i) for i in range(550000))[:3_000_000]
    echoed = await a.fetchrow("SELECT md5($1::text), $1::text", large)
    back = await b.fetchval("SELECT decode(repeat('00ff', 1500000), 'hex')")
    return echoed[0], echoed[1] == large, back == b"\x00\xff" * 1500000


async def errors(a, b):
    said = []
    for sql in ("SELEC 1", "SELECT * FROM nowhere", "INSERT INTO t VALUES (1, 'again')", "SELECT 'x'::int", "SELECT $1::int + 'y'::text"):
        said.append(await failure(a.fetch(sql)))
    said.append(await failure(a.execute("SELECT 1; SELECT 1/0; SELECT 2")))
    said.append(await failure(a.fetch("SELECT 1; SELECT 2")))
    return said


async def many_statements(a, b):
    # More than the driver keeps.
    found = 0
    for turn in range(2):
        for number in range(130):
            connection = (a, b)[(number + turn) % 2]
            found += await connection.fetchval(f"SELECT {number} + $1::int", turn)
    return found


async def sessions_that_end(a, b):
    said = [await failure(asyncpg.connect(host=os.environ["PGHOST"], database="nowhere"))]
    c = await asyncpg.connect(host=os.environ["PGHOST"])
    said.append(await failure(c.execute("SELECT pg_terminate_backend(pg_backend_pid())")))
    await asyncio.sleep(0.2)
    return said, c.is_closed(), await a.fetchval("SELECT 'alive'"), await b.fetchval("SELECT 'alive'")


STEPS = (
    several_statements, parameters, types_that_are_looked_up, types_that_many_look_up, prepared_across_transactions, one_name_two_texts, a_changed_table,
    transactions, savepoints, a_failed_transaction, many_at_once, copied, copies_that_fail, cancelled, notices, notifications,
    temporary_tables, advisory_locks, settings, reset_by_the_driver, a_pool, cursors, large_values, errors, many_statements,
    sessions_that_end,
)


async def main():
    async with connect() as a, connect() as b:
        for step in STEPS:
            print(f"{step.__name__}: {await step(a, b)!r}", flush=True)


asyncio.run(main())
