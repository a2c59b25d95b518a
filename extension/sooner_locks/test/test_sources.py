"""Where priorities come from, and who may set and see them."""

import mmap
import os
import signal
import struct
import time

import psycopg2
from cluster import Client

HEADER = struct.Struct("=8sIIIIiiQII16x")
FIELDS = (
    "magic version header_bytes slot_count slot_bytes postmaster_pid worker_pid"
    " generation state asleep"
).split()


class Map:
    """The map as another program sees it."""

    def __init__(self, cluster):
        self.path = os.path.join(cluster.data, "sooner_locks.map")
        with open(self.path, "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), 0)

    def header(self):
        return dict(zip(FIELDS, HEADER.unpack_from(self.memory, 0)))

    def write(self, slot, pid, priority):
        struct.pack_into("=Q", self.memory, 64 + 8 * slot, pid | priority << 32)

    def read(self, slot):
        return struct.unpack_from("=Q", self.memory, 64 + 8 * slot)[0]


def seen(cluster, client):
    query = f"SELECT priority, source FROM sooner_backends WHERE pid = {client.pid}"
    return cluster.execute(query)[0]


def refused(cluster, sql, user, code="42501"):
    try:
        cluster.execute(sql, user)
    except psycopg2.Error as error:
        assert error.pgcode == code, error
        return True
    return False


def test_map_layout(cluster):
    assert HEADER.size == 64
    header = Map(cluster).header()
    assert header["magic"] == b"SOONERLK"
    assert (header["version"], header["header_bytes"], header["slot_bytes"]) == (1, 64, 8)
    assert header["slot_count"] > 150
    assert header["state"] == 1
    with open(f"/proc/{header['worker_pid']}/cmdline", encoding="utf8") as file:
        assert "sooner_locks" in file.read()
    status = os.stat(Map(cluster).path)
    assert status.st_mode & 0o777 == 0o600
    assert status.st_size == 64 + 8 * header["slot_count"]
    with open(os.path.join(cluster.data, "postmaster.pid"), encoding="utf8") as file:
        assert int(file.readline()) == header["postmaster_pid"]


def test_most_specific_source_counts(cluster):
    client = Client(cluster, "c")
    slot = client.do("SELECT sooner_slot()")[0][0]
    mapped = Map(cluster)
    assert seen(cluster, client) == (None, "none")
    cluster.execute(f"SELECT sooner_set_priority({client.pid}, 70)")
    assert seen(cluster, client) == (70, "function")
    client.do("SET sooner.priority = 60")
    assert seen(cluster, client) == (60, "setting")
    mapped.write(slot, client.pid, 50)
    assert seen(cluster, client) == (50, "map")
    for none in (0, 201, 2**31):
        mapped.write(slot, client.pid, none)
        assert seen(cluster, client) == (60, "setting")
    client.do("RESET sooner.priority")
    assert seen(cluster, client) == (70, "function")
    cluster.execute(f"SELECT sooner_set_priority({client.pid}, 0)")
    assert seen(cluster, client) == (None, "none")


def test_a_value_for_all_sessions_has_no_effect(cluster):
    """In postgresql.conf and the like it would give all the same place, the server's own as well."""
    client = Client(cluster, "c")
    cluster.set(priority=7)
    try:
        assert client.do("SHOW sooner.priority") == [("7",)]
        later = Client(cluster, "d")
        assert [seen(cluster, one) for one in (client, later)] == [(None, "none")] * 2
        found = cluster.execute("SELECT pid FROM sooner_backends WHERE priority IS NOT NULL")
        assert not found, found
        for one in (client, later):
            one.do("SET sooner.priority = 5")
            assert seen(cluster, one) == (5, "setting")
            one.do("RESET sooner.priority")
            assert seen(cluster, one) == (None, "none")
        cluster.execute("ALTER ROLE ALL SET sooner.priority = 8")
        last = Client(cluster, "e")
        assert last.do("SHOW sooner.priority") == [("8",)]
        assert seen(cluster, last) == (None, "none")
    finally:
        cluster.execute("ALTER ROLE ALL RESET sooner.priority")
        cluster.reset()


def test_local_setting_ends(cluster):
    client = Client(cluster, "c")
    client.do("BEGIN; SET LOCAL sooner.priority = 5")
    assert seen(cluster, client) == (5, "setting")
    client.do("COMMIT")
    assert seen(cluster, client) == (None, "none")
    client.do("BEGIN; SET sooner.priority = 6")
    client.do("ROLLBACK")
    assert seen(cluster, client) == (None, "none")
    client.do("SET sooner.priority = 7")
    client.do("DISCARD ALL")
    assert seen(cluster, client) == (None, "none")


def test_map_orders(cluster):
    """As the gate does it: one store, while the worker may be asleep."""
    granted = []
    mapped = Map(cluster)
    holder = Client(cluster, "holder")
    holder.do("BEGIN; SELECT pg_advisory_xact_lock(1)")
    low, high = Client(cluster, "low"), Client(cluster, "high")
    slot = high.do("SELECT sooner_slot()")[0][0]
    cluster.wait_for("SELECT count(*) = 0 FROM sooner_backends WHERE priority IS NOT NULL")
    end = time.monotonic() + 10
    while not mapped.header()["asleep"]:
        assert time.monotonic() < end
        time.sleep(0.01)
    mapped.write(slot, high.pid, 10)
    worker = mapped.header()["worker_pid"]
    assert worker > 0
    os.kill(worker, signal.SIGUSR1)
    for client in (low, high):
        client.ask_and_wait("BEGIN; SELECT pg_advisory_xact_lock(1)", granted)
    cluster.let_worker_look()
    assert cluster.execute(f"SELECT * FROM sooner_holders({high.pid})") == [
        (holder.pid, False, "advisory")
    ]
    assert mapped.header()["asleep"] == 0
    holder.do("COMMIT")
    for client in (low, high):
        client.join()
    assert granted == ["high", "low"]


def test_stale_process_is_ignored_and_cleared(cluster):
    mapped = Map(cluster)
    client = Client(cluster, "c")
    slot = client.do("SELECT sooner_slot()")[0][0]
    mapped.write(slot, client.pid + 1, 1)
    assert seen(cluster, client) == (None, "none")
    end = time.monotonic() + 5
    while mapped.read(slot) != 0:
        assert time.monotonic() < end
        time.sleep(0.01)
    # What a session leaves behind is not the next one's, which gets the same slot.
    client.do("SET sooner.priority = 3")
    mapped.write(slot, client.pid, 2)
    client.close()
    cluster.wait_for(f"SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = {client.pid}")
    for _ in range(400):
        other = Client(cluster, "other")
        if other.do("SELECT sooner_slot()")[0][0] == slot:
            assert seen(cluster, other) == (None, "none")
            return
        other.close()
    raise AssertionError("nobody got the slot")


def test_strangers(cluster):
    cluster.execute("DROP ROLE IF EXISTS stranger; CREATE ROLE stranger LOGIN")
    pid = Client(cluster, "c").pid
    assert refused(cluster, "SET sooner.priority = 1", "stranger")
    assert refused(cluster, "SET sooner.priority = 200", "stranger")
    assert refused(cluster, "SET sooner.lock_order = off", "stranger", "55P02")
    assert refused(cluster, f"SELECT sooner_set_priority({pid}, 1)", "stranger")
    assert refused(cluster, "SELECT * FROM sooner_backends", "stranger")
    assert refused(cluster, "SELECT * FROM sooner_backends()", "stranger")
    assert refused(cluster, f"SELECT * FROM sooner_holders({pid})", "stranger")
    assert refused(cluster, "SELECT * FROM sooner_lock_stats()", "stranger")
    assert refused(cluster, "SELECT sooner_lock_stats_reset()", "stranger")
    assert refused(cluster, "ALTER ROLE stranger SET sooner.priority = 1", "stranger")
    try:
        cluster.connect("stranger", options="-c sooner.priority=1")
        raise AssertionError("taken from the connection's options")
    except psycopg2.OperationalError as error:
        assert "permission denied" in str(error), error
    assert cluster.execute("SELECT sooner_slot()", "stranger")[0][0] >= 0


def test_who_was_granted(cluster):
    cluster.execute("DROP ROLE IF EXISTS trusted; CREATE ROLE trusted LOGIN")
    cluster.execute("GRANT SET ON PARAMETER sooner.priority TO trusted")
    cluster.execute("GRANT EXECUTE ON FUNCTION sooner_set_priority TO trusted")
    cluster.execute("GRANT pg_monitor TO trusted")
    client = Client(cluster, "c", user="trusted")
    client.do("SET sooner.priority = 3")
    assert seen(cluster, client) == (3, "setting")
    assert client.do(f"SELECT sooner_set_priority({client.pid}, 4)") == [(True,)]
    assert client.do("SELECT sooner_set_priority(1, 4)") == [(False,)]
    assert client.do("SELECT count(*) > 0 FROM sooner_backends") == [(True,)]
    assert refused(cluster, "SELECT sooner_set_priority(1, 201)", "trusted", "22023")
    assert refused(cluster, "SET sooner.priority = 201", "trusted", "22023")


def test_role_setting(cluster):
    cluster.execute("DROP ROLE IF EXISTS batch; CREATE ROLE batch LOGIN")
    cluster.execute("ALTER ROLE batch SET sooner.priority = 200")
    client = Client(cluster, "c", user="batch")
    assert seen(cluster, client) == (200, "setting")
