"""Looks at all who wait, with a graph of its own, for what the server should have noticed."""

import time

MODES = {
    name: number
    for number, name in enumerate(
        (
            "AccessShareLock",
            "RowShareLock",
            "RowExclusiveLock",
            "ShareUpdateExclusiveLock",
            "ShareLock",
            "ShareRowExclusiveLock",
            "ExclusiveLock",
            "AccessExclusiveLock",
        ),
        1,
    )
}
# lock.c, LockConflicts[].
CONFLICTS = (0, 0x100, 0x180, 0x1E0, 0x1F0, 0x1D8, 0x1F8, 0x1FC, 0x1FE)
BLOCKED = """
    SELECT pid, pg_blocking_pids(pid), waitstart FROM pg_locks
    WHERE NOT granted AND waitstart IS NOT NULL
"""
LOCKS = """
    SELECT concat_ws('/', locktype, database, relation, page, tuple, virtualxid, transactionid,
                     classid, objid, objsubid),
           pid, mode, granted, extract(epoch FROM clock_timestamp() - waitstart)::float8, waitstart
    FROM pg_locks
"""


def conflict(a, b):
    return CONFLICTS[MODES[a]] >> MODES[b] & 1


def on_cycles(edges):
    """Those from whom a way leads back to them."""
    found = set()
    for start in edges:
        ahead, seen = list(edges[start]), set()
        while ahead:
            pid = ahead.pop()
            if pid == start:
                found.add(start)
                break
            if pid not in seen:
                seen.add(pid)
                ahead += edges.get(pid, ())
    return found


class Watcher:
    """A thread of it looks ten times a second."""

    def __init__(self, cluster, deadlock_seconds, bound_seconds):
        self.cluster = cluster
        self.deadlock_seconds_max = deadlock_seconds + 2
        self.wait_seconds_max = bound_seconds + 8
        self.longest_wait = 0.0
        self.longest_cycle = 0.0
        self.looks = 0
        self.wrong = []
        self.in_cycle_since = {}
        self.idle_since = {}

    def watch(self, is_over):
        connection = self.cluster.connect()
        cursor = connection.cursor()
        while not is_over.wait(0.1):
            cursor.execute(BLOCKED)
            self.look_for_cycles(cursor.fetchall())
            cursor.execute(LOCKS)
            self.look_at_queues(cursor.fetchall())
            self.looks += 1
        connection.close()

    def look_for_cycles(self, rows):
        """The rows are not of one moment, so only what lasts with the same waits counts."""
        now = time.monotonic()
        waits = {pid: since for pid, _, since in rows}
        cycle = on_cycles({pid: blockers for pid, blockers, _ in rows})
        still = {(pid, waits[pid]) for pid in cycle}
        self.in_cycle_since = {wait: self.in_cycle_since.get(wait, now) for wait in still}
        for (pid, _), since in self.in_cycle_since.items():
            self.longest_cycle = max(self.longest_cycle, now - since)
            if now - since > self.deadlock_seconds_max:
                self.wrong.append(f"undetected deadlock of {pid}: {rows}")
                return

    def look_at_queues(self, rows):
        """A queue in which nobody waits for a holder is one that nobody woke."""
        now = time.monotonic()
        queues, holders = {}, {}
        for lock, pid, mode, granted, waited, since in rows:
            if granted:
                holders.setdefault(lock, []).append((pid, mode))
            elif since is not None:
                queues.setdefault(lock, []).append((pid, mode, since))
                self.longest_wait = max(self.longest_wait, waited)
                if waited > self.wait_seconds_max:
                    self.wrong.append(f"{pid} starves: {waited:.1f} s for {lock}")
        idle = set()
        for lock, waiters in queues.items():
            blocked = any(
                conflict(mode, held) and holder != pid
                for pid, mode, _ in waiters
                for holder, held in holders.get(lock, ())
            )
            if not blocked:
                idle.add((lock, tuple(sorted(waiters))))
        self.idle_since = {queue: self.idle_since.get(queue, now) for queue in idle}
        for (lock, waiters), since in self.idle_since.items():
            if now - since > 1:
                self.wrong.append(f"lost wakeup: {waiters} wait for {lock}")
                return
