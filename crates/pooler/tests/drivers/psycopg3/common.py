"""Connections, and what is found by them, in the fewest words."""

import time

import psycopg
from psycopg.rows import tuple_row


def connect(**more):
    return psycopg.connect("", autocommit=True, row_factory=tuple_row, **more)


def row(connection, sql, parameters=None, **more):
    return connection.execute(sql, parameters, **more).fetchone()


def rows(connection, sql, parameters=None, **more):
    return connection.execute(sql, parameters, **more).fetchall()


def failure(call):
    """What is said of a call that must fail: its SQLSTATE and its first line."""
    try:
        call()
    except psycopg.Error as error:
        return error.sqlstate, str(error).splitlines()[0]
    raise AssertionError("no error")


def sleeps(other):
    """Waits, by another connection, until somebody sleeps."""
    sql = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
    while row(other, sql) == (0,):
        time.sleep(0.02)
