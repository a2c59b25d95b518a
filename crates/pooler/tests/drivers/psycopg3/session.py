"""What lasts as long as a session.

What ties a client to its server connection has a connection of its own, which is closed behind it.
"""

import psycopg

from common import connect, failure, row


def notices(a, b):
    heard = []
    def hear(diagnostic):
        heard.append((diagnostic.severity, diagnostic.sqlstate, diagnostic.message_primary))
    a.add_notice_handler(hear)
    a.execute("DO $$ BEGIN RAISE NOTICE 'hello'; RAISE WARNING 'beware'; END $$")
    a.remove_notice_handler(hear)
    return heard


def notifications(a, b):
    with connect() as c:
        c.execute("LISTEN news")
        with b.transaction():
            b.execute("NOTIFY news, 'first'")
            b.execute("SELECT pg_notify('news', 'second')")
        b.execute("NOTIFY other, 'unheard'")
        heard = c.notifies()
        found = [(heard_one.channel, heard_one.payload) for _, heard_one in zip(range(2), heard)]
        heard.close()
        c.execute("UNLISTEN *")
        return found


def temporary_tables(a, b):
    with connect() as c:
        c.execute("CREATE TEMP TABLE mine (i int)")
        c.execute("INSERT INTO mine VALUES (1), (2)")
        with b.transaction():
            hidden = row(b, "SELECT to_regclass('mine')")
        return hidden, row(c, "SELECT count(*) FROM mine"), row(c, "SELECT count(*) FROM mine", prepare=True)


def advisory_locks_of_a_session(a, b):
    with connect() as c:
        c.execute("SELECT pg_advisory_lock(7)")
        with connect() as d:
            first = row(d, "SELECT pg_try_advisory_lock(7)")
            freed = row(c, "SELECT pg_advisory_unlock(7)")
            return first, freed, row(d, "SELECT pg_try_advisory_lock(7)")


READ = "SELECT current_setting('TimeZone'), current_setting('DateStyle'), current_setting('application_name')"


def settings_that_are_reported(a, b):
    with connect() as c, connect() as d:
        c.execute("SET TimeZone TO 'Asia/Tokyo'")
        d.execute("SET TimeZone TO 'America/New_York'; SET DateStyle TO 'German'; SET application_name TO 'd'")
        found = []
        for first, second in ((c, d), (d, c), (c, d)):
            with first.transaction():
                found += [row(first, READ), row(second, READ)]
        found += [row(a, READ), c.info.timezone.key, d.info.parameter_status("DateStyle")]
        moment = "SELECT timestamptz '2024-02-29 12:00 UTC'"
        found += [row(c, moment, prepare=True)[0].isoformat(), row(a, moment, prepare=True)[0].isoformat()]
        d.execute("RESET DateStyle")
        with c.transaction(), d.transaction():
            found += [row(d, READ), row(c, READ)]
        return found


def an_encoding(a, b):
    with connect(client_encoding="latin1") as c:
        with b.transaction():
            found = row(c, "SELECT %s::text, octet_length(%s::text)", ("ñ", "ñ"))
            shown = row(b, "SHOW client_encoding")
        return found, shown, row(c, "SHOW client_encoding"), c.info.encoding


def a_setting_taken_back(a, b):
    with connect() as c:
        with c.transaction(force_rollback=True):
            c.execute("SET TimeZone TO 'Asia/Tokyo'")
            inside = c.info.timezone.key
        with b.transaction():
            row(b, "SELECT 1")
            return inside, c.info.timezone.key == a.info.timezone.key, row(c, "SHOW TimeZone") == row(b, "SHOW TimeZone")


def settings_that_are_not(a, b):
    with connect() as c:
        c.execute("CREATE SCHEMA IF NOT EXISTS shop; CREATE TABLE IF NOT EXISTS shop.goods (i int)")
        c.execute("SET work_mem TO '7MB'; SET search_path TO shop")
        with b.transaction():
            others = row(b, "SELECT current_setting('work_mem'), to_regclass('goods')")
        return others, row(c, "SELECT current_setting('work_mem'), to_regclass('goods')")


def everything_discarded(a, b):
    with connect() as c:
        c.execute("SET work_mem TO '7MB'; SET TimeZone TO 'Asia/Tokyo'; CREATE TEMP TABLE mine (i int)")
        row(c, "SELECT 5", prepare=True)
        c.execute("DISCARD ALL")
        with b.transaction():
            row(b, "SELECT 1")
            found = row(c, "SELECT current_setting('work_mem'), to_regclass('mine')")
            said = failure(lambda: row(c, "EXECUTE nothing"))
        return found, said, c.info.timezone.key == a.info.timezone.key


def held_cursors(a, b):
    with connect() as c:
        with c.cursor("held", withhold=True) as cursor:
            cursor.execute("SELECT generate_series(1, 5)")
            first = cursor.fetchmany(2)
            with b.transaction():
                others = row(b, "SELECT count(*) FROM pg_cursors WHERE name = 'held'")
            return first, others, cursor.fetchall()


def parameters_of_a_connection(a, b):
    with connect(options="-c work_mem=5MB -c search_path=pg_catalog", application_name="shop") as c:
        found = []
        for _ in range(2):
            with b.transaction():
                read = "SELECT current_setting('work_mem'), current_setting('search_path'), current_setting('application_name')"
                found += [row(c, read), row(b, read)]
        return found


def what_the_server_says_of_itself(a, b):
    names = (
        "server_version", "server_encoding", "client_encoding", "is_superuser", "session_authorization",
        "DateStyle", "IntervalStyle", "TimeZone", "integer_datetimes", "standard_conforming_strings",
        "in_hot_standby", "default_transaction_read_only", "application_name", "nothing",
    )
    with connect() as c:
        return [c.info.parameter_status(name) for name in names]


def no_such_database(a, b):
    try:
        connect(dbname="nowhere")
    except psycopg.OperationalError as error:
        return str(error).partition("FATAL:")[2]


def a_terminated_session(a, b):
    c = connect()
    said = failure(lambda: c.execute("SELECT pg_terminate_backend(pg_backend_pid())"))
    return said, c.closed, row(a, "SELECT 'alive'"), row(b, "SELECT 'alive'")


STEPS = (
    notices,
    notifications,
    temporary_tables,
    advisory_locks_of_a_session,
    settings_that_are_reported,
    an_encoding,
    a_setting_taken_back,
    settings_that_are_not,
    everything_discarded,
    held_cursors,
    parameters_of_a_connection,
    what_the_server_says_of_itself,
    no_such_database,
    a_terminated_session,
)
