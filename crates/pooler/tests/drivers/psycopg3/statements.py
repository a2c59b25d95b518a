"""Values, statements and their names."""

import datetime
import decimal
import hashlib
import uuid

import psycopg
from psycopg.types.json import Jsonb

from common import connect, failure, row, rows


def several_statements(a, b):
    cursor = a.execute("SELECT 1; SELECT 'two', NULL; VALUES (3), (4)")
    found = [cursor.fetchall()]
    while cursor.nextset():
        found.append(cursor.fetchall())
    return found


VALUES = (
    7,
    None,
    "ñ'\\",
    [1, None, 3],
    [["x", "y"]],
    datetime.date(1999, 12, 31),
    datetime.datetime(2024, 2, 29, 12, 0, tzinfo=datetime.timezone.utc),
    decimal.Decimal("12345678901234567890.000001"),
    Jsonb({"k": [1, 2.5, None]}),
    uuid.UUID(int=1),
    b"\x00\xff",
    datetime.timedelta(days=3, seconds=4),
    1.5,
)
ECHO = """SELECT %s::int, %s::text, %s::text, %s::int[], %s::text[], %s::date, %s::timestamptz, %s::numeric, %s::jsonb, %s::uuid,
    %s::bytea, %s::interval, %s::float8"""


def parameters(a, b):
    return row(a, ECHO, VALUES)


def parameters_in_binary(a, b):
    types = "SELECT %b::int, %b::int[], %b::bytea, %b::date, %b::uuid, %b::text"
    values = (7, [1, None, 3], b"\x00\xff", datetime.date(1999, 12, 31), uuid.UUID(int=1), None)
    return row(a, types, values, binary=True), row(b, types, values, binary=False)


def a_table(a, b):
    a.execute("CREATE TABLE t (i int PRIMARY KEY, s text)")
    with a.cursor() as cursor:
        cursor.executemany("INSERT INTO t VALUES (%s, %s)", [(i, f"s{i}") for i in range(100)])
        count = cursor.rowcount
    return count, row(b, "SELECT count(*), sum(i) FROM t")


def rows_returned(a, b):
    with a.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO t VALUES (%s, %s) RETURNING i", [(200, "x"), (201, None)], returning=True
        )
        found = [cursor.fetchone()]
        while cursor.nextset():
            found.append(cursor.fetchone())
    return found


def prepared_across_transactions(a, b):
    found = []
    for turn in range(12):
        first, second = (a, b) if turn % 2 else (b, a)
        with first.transaction():
            found += row(first, "SELECT s FROM t WHERE i = %s", (turn,), prepare=True)
            found += row(second, "SELECT i FROM t WHERE s = %s", (f"s{turn}",), prepare=True)
            found += row(second, "SELECT s FROM t WHERE i = %s", (turn,), prepare=True)
    return found


def one_name_two_texts(a, b):
    with connect() as c, connect() as d:
        found = []
        for turn in range(3):
            with c.transaction():
                found += row(c, "SELECT 'c', %s::int", (turn,), prepare=True)
                found += row(d, "SELECT %s::text, 'd'", ("other",), prepare=True)
            with d.transaction():
                found += row(d, "SELECT %s::text, 'd'", ("again",), prepare=True)
                found += row(c, "SELECT 'c', %s::int", (turn,), prepare=True)
        return found


def a_changed_table(a, b):
    with connect() as c, connect() as d:
        c.execute("CREATE TABLE changing (i int)")
        c.execute("INSERT INTO changing VALUES (1)")
        # Side by side, so that whatever runs it afterwards has it prepared.
        with c.transaction(), d.transaction():
            rows(c, "SELECT * FROM changing", prepare=True)
            rows(d, "SELECT * FROM changing", prepare=True)
        c.execute("ALTER TABLE changing ADD s text DEFAULT 'new'")
        said = failure(lambda: rows(c, "SELECT * FROM changing", prepare=True))
        return said, rows(c, "SELECT *, 1 FROM changing", prepare=True)


def a_table_changed_inside(a, b):
    with connect() as c:
        def inside():
            with c.transaction():
                rows(c, "SELECT * FROM changing WHERE i > 0", prepare=True)
                c.execute("ALTER TABLE changing DROP s")
                rows(c, "SELECT * FROM changing WHERE i > 0", prepare=True)
        return failure(inside), rows(c, "SELECT * FROM changing")


def prepared_by_sql(a, b):
    with connect() as c:
        c.execute("PREPARE p (int) AS SELECT $1 + 1")
        with b.transaction():
            others = failure(lambda: row(b, "EXECUTE p (1)"))
            b.execute("ROLLBACK")
        found = row(c, "EXECUTE p (1)")
        c.execute("DEALLOCATE p")
        return others, found, failure(lambda: row(c, "EXECUTE p (1)"))


def a_pipeline(a, b):
    with a.pipeline() as pipeline:
        cursors = [a.execute("SELECT %s::int * 2", (n,)) for n in range(50)]
        pipeline.sync()
        with a.transaction():
            cursors.append(a.execute("UPDATE t SET s = 'piped' WHERE i = 3 RETURNING i"))
        cursors += [a.execute("SELECT s FROM t WHERE i = %s", (n,), prepare=True) for n in (3, 4)]
    return [cursor.fetchone()[0] for cursor in cursors], row(b, "SELECT s FROM t WHERE i = 3")


def a_pipeline_with_an_error(a, b):
    found = []
    def run():
        with a.pipeline() as pipeline:
            good = a.execute("SELECT 'good'", prepare=True)
            pipeline.sync()
            found.append(good.fetchone())
            a.execute("SELECT 1/%s", (0,), prepare=True)
            a.execute("SELECT 'skipped'", prepare=True)
            pipeline.sync()
    said = failure(run)
    # This driver believes that it has prepared what was skipped.
    again = failure(lambda: a.execute("SELECT 'skipped'", prepare=True))
    return found, said, again, row(b, "SELECT 'skipped'", prepare=True)


def large_values(a, b):
    large = "".join(str(i) for i in range(550000))[:3_000_000]
    for_text = row(a, "SELECT md5(%s), %s::text", (large, large))
    (back,) = row(b, "SELECT decode(repeat('00ff', 1500000), 'hex')", binary=True)
    return for_text[0], for_text[1] == large, hashlib.md5(back).hexdigest(), len(back)


def a_long_statement(a, b):
    with connect() as c:
        text = f"SELECT length('{'x' * 1_500_000}')"
        return row(c, text), row(c, text, prepare=True), row(b, "SELECT 1"), row(c, text, prepare=True)


def errors(a, b):
    said = []
    for sql in (
        "SELEC 1",
        "SELECT * FROM nowhere",
        "INSERT INTO t VALUES (1, 'again')",
        "SELECT 'x'::int",
        "SELECT %s::int + 'y'::text",
    ):
        try:
            a.execute(sql, (1,) if "%s" in sql else None)
        except psycopg.Error as error:
            said.append((error.sqlstate, error.diag.constraint_name, error.diag.statement_position))
    return said


STEPS = (
    several_statements,
    parameters,
    parameters_in_binary,
    a_table,
    rows_returned,
    prepared_across_transactions,
    one_name_two_texts,
    a_changed_table,
    a_table_changed_inside,
    prepared_by_sql,
    a_pipeline,
    a_pipeline_with_an_error,
    large_values,
    a_long_statement,
    errors,
)
