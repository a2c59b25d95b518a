#!/usr/bin/env python3
"""Many clients on few locks, with random priorities, cancels and terminations; needs psycopg2.

usage: stress.py [--bin DIR] [--minutes M] [--clients N] [--seed S] [--off]

Fails where a sum does not come out, where a deadlock is not found, a wakeup is lost, a waiter
starves, a lock stays behind, a client does not return, or the server says PANIC. One line a
minute, a line of JSON at the end, exit code 0 or 1.
"""

import argparse
import json
import random
import sys
import threading
import time

import psycopg2
from cluster import Cluster
from test_sources import Map
from transactions import KINDS, ROWS, TABLES
from watcher import Watcher

SETTINGS = """
deadlock_timeout = 20ms
sooner.lock_inherit = on
sooner.lock_max_wait = 6s
sooner.lock_types = 'tuple, relation, advisory, object, transactionid'
"""
PRIORITIES = (0, 0, 0, 0, 10, 10, 50, 150)


class State:
    """What all threads share."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.map = Map(cluster)
        self.is_over = threading.Event()
        self.guard = threading.Lock()
        self.sessions = {}
        self.counts = dict.fromkeys(
            ("commits", "deadlocks", "cancels", "terminations", "other_errors"), 0
        )
        self.seconds = {priority: [0, 0.0] for priority in PRIORITIES}
        self.acknowledged = set()
        self.messages = []

    def count(self, name):
        with self.guard:
            self.counts[name] += 1


def begin_session(state, number):
    connection = state.cluster.connect()
    cursor = connection.cursor()
    cursor.execute("SELECT sooner_slot()")
    slot = cursor.fetchone()[0]
    pid = connection.get_backend_pid()
    with state.guard:
        state.sessions[number] = (slot, pid)
    return connection, cursor, slot, pid


def count_error(state, error):
    name = {"40P01": "deadlocks", "57014": "cancels", "57P01": "terminations"}.get(error.pgcode)
    if name is None and error.pgcode is None:
        name = "terminations"  # the connection broke before the message came
    if name is None:
        with state.guard:
            state.messages.append(str(error))
        name = "other_errors"
    state.count(name)


def client(state, number, seed):
    """Runs transactions until the end; a broken session is replaced."""
    dice = random.Random(seed)
    connection, cursor, slot, pid = begin_session(state, number)
    serial = 0
    while not state.is_over.is_set():
        kind = dice.choice(KINDS)
        priority = dice.choice(PRIORITIES)
        serial += 1
        began = time.monotonic()
        try:
            # Half by the map, half by a setting.
            state.map.write(slot, pid, priority if serial % 2 else 0)
            cursor.execute("BEGIN")
            if not serial % 2:
                cursor.execute(f"SET LOCAL sooner.priority = {priority}")
            delta = kind(cursor, dice)
            cursor.execute("INSERT INTO done VALUES (%s, %s, %s)", (number, serial, delta))
            cursor.execute("COMMIT")
            with state.guard:
                state.counts["commits"] += 1
                state.acknowledged.add((number, serial))
                state.seconds[priority][0] += 1
                state.seconds[priority][1] += time.monotonic() - began
        except psycopg2.Error as error:
            count_error(state, error)
            try:
                cursor.execute("ROLLBACK")
            except psycopg2.Error:
                connection, cursor, slot, pid = begin_session(state, number)
    connection.close()


def is_quiet():
    """Five of eight seconds: what is stuck is not to be freed by what disturbs."""
    return time.monotonic() % 8 > 3


def disturb(state, seed):
    """Cancels and terminates at random."""
    dice = random.Random(seed)
    connection = state.cluster.connect()
    cursor = connection.cursor()
    while not state.is_over.wait(dice.uniform(0.0, 0.02)):
        if is_quiet():
            continue
        with state.guard:
            _, pid = dice.choice(list(state.sessions.values()))
        what = "terminate" if dice.random() < 0.03 else "cancel"
        cursor.execute(f"SELECT pg_{what}_backend({pid}) FROM pg_stat_activity WHERE pid = {pid}")
    connection.close()


def change_priorities(state, seed):
    """Also of those that wait already, and have looked for deadlocks."""
    dice = random.Random(seed)
    while not state.is_over.wait(dice.uniform(0.0, 0.01)):
        if is_quiet():
            continue
        with state.guard:
            slot, pid = dice.choice(list(state.sessions.values()))
        state.map.write(slot, pid, dice.choice(PRIORITIES))


def sums(state):
    """What does not come out, in words."""
    cluster = state.cluster
    wrong = []
    total = cluster.value("SELECT sum(v) FROM rows_of_all")
    expected = cluster.value("SELECT coalesce(sum(delta), 0) FROM done")
    if total != expected:
        wrong.append(f"sum of all is {total}, done was {expected}")
    done = set(cluster.execute("SELECT client, serial FROM done"))
    if not state.acknowledged <= done:
        wrong.append(f"{len(state.acknowledged - done)} commits are lost")
    left = cluster.value("SELECT count(*) FROM pg_locks WHERE NOT granted")
    if left:
        wrong.append(f"{left} locks are still waited for")
    log = cluster.log()
    bad_words = ("PANIC", "TRAP", "signal 11", "signal 6")
    wrong += [f"the log has {bad}" for bad in bad_words if bad in log]
    if state.counts["other_errors"]:
        wrong.append(f"other errors, such as: {state.messages[0]}")
    return wrong


def stats(cluster):
    row = cluster.execute("SELECT to_jsonb(s) FROM sooner_lock_stats() s")
    return row[0][0]


def play(cluster, arguments, seed):
    """What went wrong, and the figures."""
    state = State(cluster)
    watcher = Watcher(cluster, deadlock_seconds=0.02, bound_seconds=6)
    threads = [
        threading.Thread(target=client, args=(state, i, f"{seed} {i}"), daemon=True)
        for i in range(arguments.clients)
    ]
    for target in (disturb, change_priorities):
        threads.append(
            threading.Thread(target=target, args=(state, f"{seed} {target.__name__}"), daemon=True)
        )
    threads.append(threading.Thread(target=watcher.watch, args=(state.is_over,), daemon=True))
    for thread in threads:
        thread.start()
    end = time.monotonic() + arguments.minutes * 60
    minute = 0
    while time.monotonic() < end and not watcher.wrong:
        time.sleep(max(0, min(60, end - time.monotonic())))
        minute += 1
        line = " ".join(f"{name} {count}" for name, count in state.counts.items())
        print(f"minute {minute}: {line} reorders {stats(cluster)['reorders']}", flush=True)
    state.is_over.set()
    for thread in threads:
        thread.join(30)
    wrong = list(watcher.wrong)
    stuck = sum(thread.is_alive() for thread in threads)
    if stuck:
        wrong.append(f"{stuck} threads did not return")
    wrong += sums(state)
    figures = {
        "seed": seed,
        **state.counts,
        "longest_wait_s": round(watcher.longest_wait, 2),
        "longest_cycle_s": round(watcher.longest_cycle, 2),
        "looks": watcher.looks,
        "mean_ms": {
            str(priority): round(1000 * total / max(1, count), 2)
            for priority, (count, total) in state.seconds.items()
        },
        "stats": stats(cluster),
        "wrong": wrong,
    }
    return figures


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", default="/usr/lib/postgresql/15/bin")
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--clients", type=int, default=40)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--off", action="store_true", help="orders nothing, to compare")
    arguments = parser.parse_args()
    seed = arguments.seed if arguments.seed is not None else random.randrange(10**6)
    settings = SETTINGS + ("sooner.lock_order = off\n" if arguments.off else "")
    cluster = Cluster(arguments.bin, settings)
    try:
        cluster.execute(TABLES)
        cluster.execute(f"INSERT INTO t SELECT i, 0 FROM generate_series(1, {ROWS}) i")
        figures = play(cluster, arguments, seed)
        figures["version"] = cluster.value("SHOW server_version")
        if figures["wrong"]:
            print(cluster.log()[-3000:])
    finally:
        cluster.remove()
    print(json.dumps(figures))
    return 1 if figures["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
