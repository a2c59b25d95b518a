"""Starts, stops, crashes, upgrades, and what it costs to do nothing. Runs last: it restarts."""

import gc
import os
import signal
import threading
import time

import psycopg2
from cluster import Client, sequence
from test_order import ADVISORY, LOW_NAMES, LOW_THEN_HIGH
from test_sources import Map
from watcher import Watcher

DESCRIBED = """
    SELECT proname || ' ' || pg_get_function_result(oid) || coalesce(proacl::text, '')
    FROM pg_proc WHERE probin = '$libdir/sooner_locks'
    UNION ALL SELECT relname || ' ' || relacl::text FROM pg_class WHERE relname LIKE 'sooner%'
    ORDER BY 1
"""


def test_upgrade(cluster):
    cluster.execute("DROP EXTENSION sooner_locks; CREATE EXTENSION sooner_locks")
    fresh = cluster.execute(DESCRIBED)
    cluster.execute("DROP EXTENSION sooner_locks")
    cluster.execute("CREATE EXTENSION sooner_locks VERSION '0.9'")
    assert cluster.execute(DESCRIBED) != fresh
    cluster.execute("ALTER EXTENSION sooner_locks UPDATE TO '1.0'")
    updated = cluster.execute(DESCRIBED)
    assert updated == fresh, (updated, fresh)


def test_watcher_sees_a_deadlock(cluster):
    """The stress test's own eyes: a deadlock for which the server does not look in time."""
    watcher = Watcher(cluster, deadlock_seconds=-1.5, bound_seconds=10)
    is_over = threading.Event()
    thread = threading.Thread(target=watcher.watch, args=(is_over,), daemon=True)
    thread.start()
    clients = [Client(cluster, name) for name in "ab"]
    for key, client in enumerate(clients):
        client.do(f"SET deadlock_timeout = '3s'; BEGIN; SELECT pg_advisory_xact_lock({key})")
    for key, client in enumerate(clients):
        client.ask_and_wait(f"SELECT pg_advisory_xact_lock({1 - key})")
    for client in clients:
        client.join()
    is_over.set()
    thread.join()
    assert len(watcher.wrong) > 0 and "undetected deadlock" in watcher.wrong[0], watcher.wrong


def test_idle_costs_nothing(cluster):
    gc.collect()  # sessions of earlier tests: nothing is left of them
    cluster.wait_for("SELECT count(*) = 0 FROM sooner_backends WHERE priority IS NOT NULL")
    time.sleep(4)
    before = cluster.stat("scans")
    time.sleep(3)
    assert cluster.stat("scans") - before <= 5


def test_off_costs_nothing(cluster):
    cluster.set(lock_order="off")
    time.sleep(0.5)
    before = cluster.stat("scans")
    client = Client(cluster, "c", 10)
    time.sleep(1)
    assert cluster.stat("scans") == before
    client.close()
    cluster.reset()
    assert sequence(cluster, ADVISORY, LOW_THEN_HIGH) == "H10 H50 " + LOW_NAMES


def wait_until_up(cluster, mapped, earlier_worker):
    """Until the server answers and has another worker."""
    end = time.monotonic() + 60
    while True:
        try:
            cluster.execute("SELECT 1")
            if mapped.header()["worker_pid"] not in (0, earlier_worker):
                return
        except psycopg2.Error:
            pass
        assert time.monotonic() < end
        time.sleep(0.1)


def test_worker_stops_and_comes_back(cluster):
    mapped = Map(cluster)
    generation = mapped.header()["generation"]
    worker = mapped.header()["worker_pid"]
    assert worker > 0
    os.kill(worker, signal.SIGTERM)
    wait_until_up(cluster, mapped, worker)
    assert mapped.header()["generation"] == generation
    assert sequence(cluster, ADVISORY, LOW_THEN_HIGH) == "H10 H50 " + LOW_NAMES


def test_crash(cluster):
    mapped = Map(cluster)
    before = mapped.header()
    inode = os.stat(mapped.path).st_ino
    client = Client(cluster, "c", 10)
    mapped.write(client.do("SELECT sooner_slot()")[0][0], client.pid, 1)
    assert before["worker_pid"] > 0
    os.kill(before["worker_pid"], signal.SIGKILL)
    wait_until_up(cluster, mapped, before["worker_pid"])
    after = mapped.header()
    # The same file, with nothing in it and another generation.
    assert os.stat(mapped.path).st_ino == inode
    assert after["state"] == 1 and after["generation"] != before["generation"]
    assert all(mapped.read(slot) == 0 for slot in range(after["slot_count"]))
    assert sequence(cluster, ADVISORY, LOW_THEN_HIGH) == "H10 H50 " + LOW_NAMES


def test_stop_removes_the_map(cluster):
    mapped = Map(cluster)
    cluster.stop()
    assert not os.path.exists(mapped.path)
    assert mapped.header()["state"] == 0
    # One that an unclean end left behind is replaced, never written over.
    with open(mapped.path, "wb") as file:
        file.write(b"left")
    cluster.start()
    assert Map(cluster).header()["state"] == 1


def test_map_elsewhere(cluster):
    cluster.stop()
    path = os.path.join(cluster.folder, "elsewhere.map")
    cluster.configure(f"sooner.lock_map = '{path}'")
    cluster.start()
    assert os.stat(path).st_mode & 0o777 == 0o600
    cluster.stop()
    assert not os.path.exists(path)
    cluster.configure("sooner.lock_map = 'sooner_locks.map'")
    cluster.start()


def test_not_preloaded(cluster):
    cluster.stop()
    cluster.configure("shared_preload_libraries = ''")
    cluster.start()
    for sql in (
        "SELECT sooner_slot()",
        "SELECT sooner_set_priority(1, 1)",
        "SELECT * FROM sooner_backends",
        "SELECT * FROM sooner_holders(1)",
        "SELECT * FROM sooner_lock_stats()",
        "SELECT sooner_lock_stats_reset()",
        "DROP EXTENSION sooner_locks; CREATE EXTENSION sooner_locks",
    ):
        try:
            cluster.execute(sql)
            raise AssertionError(f"{sql} went well")
        except psycopg2.Error as error:
            assert error.pgcode == "55000", error
            assert error.diag.message_primary == "sooner_locks is not loaded"
            assert "shared_preload_libraries" in error.diag.message_hint
    assert sequence(cluster, ADVISORY, [("a", 0), ("b", 0)], is_ordered=False) == "a b"
    assert not os.path.exists(os.path.join(cluster.data, "sooner_locks.map"))
    cluster.stop()
    cluster.configure("shared_preload_libraries = 'sooner_locks'")
    cluster.start()
    assert "PANIC" not in cluster.log() and "TRAP" not in cluster.log()
