"""What lasts as long as a transaction or a command."""

import threading

import psycopg

from common import connect, failure, row, sleeps


def commit_and_rollback(a, b):
    with a.transaction():
        a.execute("UPDATE t SET s = 'committed' WHERE i = 1")
        seen_outside = row(b, "SELECT s FROM t WHERE i = 1")
    with a.transaction(force_rollback=True):
        a.execute("UPDATE t SET s = 'never' WHERE i = 1")
    return seen_outside, row(b, "SELECT s FROM t WHERE i = 1")


def savepoints(a, b):
    with a.transaction():
        a.execute("UPDATE t SET s = 'outer' WHERE i = 2")
        said = failure(lambda: nested(a))
        with a.transaction():
            a.execute("UPDATE t SET s = s || ' kept' WHERE i = 2")
    return said, row(b, "SELECT s FROM t WHERE i = 2")


def nested(connection):
    with connection.transaction():
        connection.execute("UPDATE t SET s = 'inner' WHERE i = 2")
        connection.execute("SELECT 1/0")


def a_failed_transaction(a, b):
    a.execute("BEGIN")
    said = [failure(lambda: a.execute("SELECT 1/0")), a.info.transaction_status.name]
    said += [failure(lambda: a.execute("SELECT 1")), row(b, "SELECT 'others work'")]
    said += [a.execute("COMMIT").statusmessage, a.info.transaction_status.name]
    return said


def kinds_of_transactions(a, b):
    with connect() as c:
        c.isolation_level, c.read_only = psycopg.IsolationLevel.SERIALIZABLE, True
        with c.transaction():
            found = row(c, "SELECT current_setting('transaction_isolation')")
            said = failure(lambda: c.execute("DELETE FROM t"))
    return found, said


def transactions_in_two_phases(a, b):
    a.execute("BEGIN")
    said = failure(lambda: a.execute("PREPARE TRANSACTION 'x'"))
    return said, a.info.transaction_status.name


def advisory_locks_of_a_transaction(a, b):
    attempt = "SELECT pg_try_advisory_xact_lock(8)"
    with a.transaction():
        a.execute("SELECT pg_advisory_xact_lock(8)")
        during = row(b, attempt)
    return during, row(b, attempt)


def settings_of_a_transaction(a, b):
    with a.transaction():
        a.execute("SET LOCAL work_mem TO '9MB'")
        during = row(a, "SHOW work_mem"), row(b, "SHOW work_mem")
    def too_long():
        with a.transaction():
            a.execute("SET LOCAL statement_timeout TO '50ms'")
            a.execute("SELECT pg_sleep(50)")
    return during, row(a, "SHOW work_mem"), failure(too_long), row(a, "SHOW statement_timeout")


def cursors_of_a_transaction(a, b):
    with a.transaction(), a.cursor("portal", scrollable=True) as cursor:
        cursor.execute("SELECT i FROM t WHERE i < %s ORDER BY i", (90,))
        found = cursor.fetchmany(3), row(b, "SELECT 'between'"), cursor.fetchmany(2)
        cursor.scroll(-4)
        found += (cursor.fetchone(),)
        cursor.itersize = 10
        return found, sum(i for (i,) in cursor)


def copied_out(a, b):
    with a.cursor().copy("COPY (SELECT * FROM t WHERE i < 3 ORDER BY i) TO STDOUT") as copy:
        text = list(copy.rows())
    with b.cursor().copy("COPY (SELECT i FROM t WHERE i < 3) TO STDOUT (FORMAT binary)") as copy:
        copy.set_types(["int4"])
        return text, sorted(copy.rows())


def copied_in(a, b):
    a.execute("CREATE TABLE copied (i int, s text)")
    with a.cursor() as cursor:
        with cursor.copy("COPY copied FROM STDIN") as copy:
            for i in range(20000):
                copy.write_row((i, "x" * 50))
        count = cursor.rowcount
    with b.cursor().copy("COPY copied FROM STDIN (FORMAT binary)") as copy:
        copy.set_types(["int4", "text"])
        copy.write_row((1, None))
    return count, row(b, "SELECT count(*), count(s), sum(i), sum(length(s)) FROM copied")


def copies_that_fail(a, b):
    def by_server():
        with a.cursor().copy("COPY copied FROM STDIN") as copy:
            for i in range(5000):
                copy.write(f"{i}\tx\n")
            copy.write("no number\tx\n")
            for i in range(5000):
                copy.write(f"{i}\tx\n")
    def by_client():
        with b.cursor().copy("COPY copied FROM STDIN") as copy:
            copy.write("1\tx\n")
            raise ValueError("changed its mind")
    def half_read():
        with a.cursor().copy("COPY (SELECT 1/(5000-i) FROM generate_series(1, 9000) i) TO STDOUT") as copy:
            for _ in copy:
                pass
    said = [failure(by_server), failure(by_client), failure(half_read)]
    return said, row(a, "SELECT count(*) FROM copied"), row(b, "SELECT count(*) FROM copied")


def a_cancelled_query(a, b):
    said = []
    thread = threading.Thread(target=lambda: said.append(failure(lambda: a.execute("SELECT pg_sleep(50)"))))
    thread.start()
    sleeps(b)
    a.cancel()
    thread.join()
    # One that comes when nothing runs harms nobody.
    a.cancel()
    return said, row(b, "SELECT 'unharmed'"), row(a, "SELECT 'again'")


def large_objects(a, b):
    with a.transaction():
        (oid,) = row(a, "SELECT lo_from_bytea(0, %s)", (b"0123456789",))
        (file,) = row(a, "SELECT lo_open(%s, 393216)", (oid,))
        a.execute("SELECT lo_lseek(%s, 4, 0), lowrite(%s, 'xy')", (file, file))
    return row(b, "SELECT lo_get(%s)", (oid,)), row(a, "SELECT lo_unlink(%s)", (oid,))


STEPS = (
    commit_and_rollback,
    savepoints,
    a_failed_transaction,
    kinds_of_transactions,
    transactions_in_two_phases,
    advisory_locks_of_a_transaction,
    settings_of_a_transaction,
    cursors_of_a_transaction,
    copied_out,
    copied_in,
    copies_that_fail,
    a_cancelled_query,
    large_objects,
)
