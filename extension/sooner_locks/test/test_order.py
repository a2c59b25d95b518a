"""In which order waiters get their locks."""

import time

from cluster import Client, sequence

LOW = [(str(i), 0) for i in range(1, 11)]
LOW_THEN_HIGH = LOW + [("H50", 50), ("H10", 10)]
LOW_NAMES = " ".join(name for name, _ in LOW)
ROW = "SELECT v FROM t WHERE id = 1 FOR UPDATE"
ADVISORY = "SELECT pg_advisory_xact_lock(1)"
TABLE = "LOCK TABLE t"


def test_row_locks(cluster):
    # The first in the queue owns the tuple lock already: it stays first.
    expected = "1 H10 H50 " + LOW_NAMES[2:]
    assert sequence(cluster, ROW, LOW_THEN_HIGH) == expected


def test_advisory_locks(cluster):
    assert sequence(cluster, ADVISORY, LOW_THEN_HIGH) == "H10 H50 " + LOW_NAMES


def test_table_locks(cluster):
    assert sequence(cluster, TABLE, LOW_THEN_HIGH) == "H10 H50 " + LOW_NAMES


def test_none_counts_as_100(cluster):
    who = [("150", 150), ("none", 0), ("100", 100), ("none2", 0), ("99", 99)]
    assert sequence(cluster, ADVISORY, who) == "99 none 100 none2 150"


def test_off_is_order_of_arrival(cluster):
    cluster.set(lock_order="off")
    try:
        assert sequence(
            cluster, ADVISORY, LOW_THEN_HIGH, hold=0.2, is_ordered=False
        ) == (LOW_NAMES + " H50 H10")
    finally:
        cluster.reset()


def test_types_are_chosen(cluster):
    cluster.set(lock_types="tuple")
    try:
        assert sequence(cluster, ADVISORY, LOW_THEN_HIGH[8:]) == "9 10 H50 H10"
    finally:
        cluster.reset()


def test_waiter_gets_priority_while_it_waits(cluster):
    granted = []
    holder = Client(cluster, "holder")
    holder.do(f"BEGIN; {ADVISORY}")
    clients = [Client(cluster, name) for name in "abc"]
    for client in clients:
        client.ask_and_wait(f"BEGIN; {ADVISORY}", granted)
    assert cluster.value(f"SELECT sooner_set_priority({clients[2].pid}, 10)")
    cluster.let_worker_look()
    holder.do("COMMIT")
    for client in clients:
        client.join()
    assert "".join(granted) == "cab"


def looks_in(cluster, seconds):
    before = cluster.stat("scans")
    time.sleep(seconds)
    return cluster.stat("scans") - before


def test_it_looks_less_where_nothing_has_an_order(cluster):
    holder = Client(cluster, "holder")
    holder.do(f"BEGIN; {ADVISORY}")
    waiters = [Client(cluster, "a", 20), Client(cluster, "b", 10)]
    for client in waiters:
        client.ask_and_wait(f"BEGIN; {ADVISORY}")
    cluster.let_worker_look()
    often = looks_in(cluster, 0.3)
    holder.do("COMMIT")
    for client in waiters:
        client.join()
    # Both keep their priorities.
    deadline = time.monotonic() + 30
    while looks_in(cluster, 0.3) > often / 5:
        assert time.monotonic() < deadline
    for client in [holder, *waiters]:
        client.close()


def test_nobody_starves(cluster):
    cluster.set(lock_max_wait="300ms")
    try:
        # After 0.5 s the first is overdue: nobody passes it any more.
        who = [("a", 0), ("b", 10)]
        assert sequence(cluster, ADVISORY, who, pause=0.5) == "a b"
        # It was passed before, and goes back in front of those that passed it.
        before = cluster.stat("overdue_moved")
        who = [("a", 0), ("b", 0), ("c", 20), ("d", 10)]
        assert sequence(cluster, ADVISORY, who, hold=0.7) == "a b c d"
        assert cluster.stat("overdue_moved") > before
        cluster.set(lock_max_wait="1min")
        assert sequence(cluster, ADVISORY, who) == "d c a b"
    finally:
        cluster.reset()


def chain(cluster):
    """`a` holds what a high one waits for, and waits behind `b` itself."""
    granted = []
    x, a, b = (Client(cluster, name) for name in "xab")
    high = Client(cluster, "h", 10)
    x.do("BEGIN; SELECT pg_advisory_xact_lock(2)")
    a.do("BEGIN; SELECT pg_advisory_xact_lock(1)")
    b.ask_and_wait("BEGIN; SELECT pg_advisory_xact_lock(2)", granted)
    a.ask_and_wait("SELECT pg_advisory_xact_lock(2)", granted)
    high.ask_and_wait("BEGIN; SELECT pg_advisory_xact_lock(1)", granted)
    cluster.let_worker_look()
    inherited = cluster.value(f"SELECT inherited FROM sooner_backends WHERE pid = {a.pid}")
    x.do("COMMIT")
    for client in (a, b, high):
        client.join()
    left = cluster.value("SELECT count(*) FROM sooner_backends WHERE inherited IS NOT NULL")
    return "".join(granted), inherited, left


def test_inheritance(cluster):
    assert chain(cluster) == ("bah", None, 0)
    cluster.set(lock_inherit="on")
    try:
        granted, inherited, _ = chain(cluster)
        assert (granted[0], inherited) == ("a", 10), granted
        cluster.wait_for("SELECT count(*) = 0 FROM sooner_backends WHERE inherited IS NOT NULL")
    finally:
        cluster.reset()


def test_inheritance_through_rows(cluster):
    """The high one waits for a row lock; its owner waits for a table lock."""
    cluster.set(lock_inherit="on")
    try:
        granted = []
        x, a, b, w = (Client(cluster, name) for name in "xabw")
        high = Client(cluster, "h", 10)
        x.do("BEGIN; LOCK TABLE other")
        a.do("BEGIN; UPDATE t SET v = v WHERE id = 2")
        w.ask_and_wait("BEGIN; SELECT v FROM t WHERE id = 2 FOR UPDATE", granted)
        high.ask_and_wait("BEGIN; SELECT v FROM t WHERE id = 2 FOR UPDATE", granted)
        b.ask_and_wait("BEGIN; LOCK TABLE other", granted)
        a.ask_and_wait("LOCK TABLE other", granted)
        cluster.let_worker_look()
        x.do("COMMIT")
        for client in (a, b, w, high):
            client.join()
        assert granted[0] == "a", granted
    finally:
        cluster.reset()


def test_reader_passes_a_table_lock_but_not_the_reverse(cluster):
    """The guard: a LOCK TABLE may not be put before those who wait for others than it does."""
    granted = []
    user = Client(cluster, "user")
    user.do("BEGIN; LOCK TABLE t IN ROW EXCLUSIVE MODE")
    table = Client(cluster, "table")
    table.ask_and_wait("BEGIN; LOCK TABLE t", granted, then=None)
    writer = Client(cluster, "writer")
    writer.ask_and_wait("BEGIN; LOCK TABLE t IN ROW EXCLUSIVE MODE", granted)
    before = cluster.stat("refused_unsafe")
    high = Client(cluster, "high", 10)
    high.ask_and_wait("BEGIN; LOCK TABLE t", granted)
    cluster.wait_for(f"SELECT refused_unsafe > {before} FROM sooner_lock_stats()")
    assert granted == []
    assert cluster.value(f"SELECT pg_blocking_pids({writer.pid})") == [table.pid]
    # A writer with priority does not wait for the others at all: it passes and goes on at once.
    quick = Client(cluster, "quick", 5)
    quick.ask("BEGIN; LOCK TABLE t IN ROW EXCLUSIVE MODE", granted)
    quick.join()
    assert granted == ["quick"]
    user.do("COMMIT")
    # Once the first LOCK TABLE holds, all wait for it: now the other may pass the writer.
    table.join()
    cluster.wait_for(f"SELECT {high.pid} = ANY(pg_blocking_pids({writer.pid}))")
    table.do("COMMIT")
    for client in (writer, high):
        client.join()
    assert granted == ["quick", "table", "high", "writer"], granted


def crossed(cluster):
    granted = []
    share, reader, writer, high = (Client(cluster, n) for n in ("s", "reader", "writer", "high"))
    share.do("BEGIN; LOCK TABLE t IN SHARE MODE")
    reader.do("BEGIN; LOCK TABLE t IN ACCESS SHARE MODE")
    writer.do("BEGIN; SELECT pg_advisory_xact_lock(5)")
    reader.ask_and_wait("SELECT pg_advisory_xact_lock(5)", granted)
    writer.ask_and_wait("LOCK TABLE t IN ROW EXCLUSIVE MODE", granted)
    high.ask_and_wait("BEGIN; LOCK TABLE t", granted)
    time.sleep(1)
    cluster.execute(f"SELECT sooner_set_priority({high.pid}, 1)")
    time.sleep(0.2)
    share.do("COMMIT")
    for client in (writer, reader, high):
        client.join()
        assert client.error is None, client.error
    assert granted == ["writer", "reader", "high"], granted


def test_no_deadlock_is_made_that_nobody_looks_for(cluster):
    """All have looked when `high` gets its priority; before `writer` it would close a cycle.

    share holds t; reader holds t weakly and waits for writer's key; writer waits for share only;
    high waits for share and reader. Were high before writer: writer, high, reader, writer.
    """
    # The bound would undo it.
    cluster.set(lock_max_wait="0")
    try:
        crossed(cluster)
    finally:
        cluster.reset()


def test_upgrade_keeps_its_place_and_deadlocks_are_found(cluster):
    clients = [Client(cluster, str(i), priority) for i, priority in enumerate((150, 10))]
    for client in clients:
        client.do("BEGIN; LOCK TABLE t IN SHARE MODE")
    high = Client(cluster, "high", 1)
    high.ask_and_wait("BEGIN; LOCK TABLE t")
    before = time.monotonic()
    for client in clients:
        client.ask("LOCK TABLE t IN EXCLUSIVE MODE")
    for client in clients:
        client.join()
    assert time.monotonic() - before < 5
    errors = [client.error for client in clients if client.error is not None]
    assert len(errors) == 1 and errors[0].pgcode == "40P01", errors
    high.join()


def test_cancelled_and_terminated_waiters(cluster):
    granted = []
    holder = Client(cluster, "holder")
    holder.do(f"BEGIN; {ADVISORY}")
    clients = [Client(cluster, str(i), 1 + i % 3) for i in range(30)]
    for client in clients:
        client.ask_and_wait(f"BEGIN; {ADVISORY}", granted)
    for i, client in enumerate(clients):
        if i % 3 == 1:
            cluster.execute(f"SELECT pg_cancel_backend({client.pid})")
        if i % 3 == 2:
            cluster.execute(f"SELECT pg_terminate_backend({client.pid})")
    for i, client in enumerate(clients):
        if i % 3:
            client.join()
            assert client.error is not None
    holder.do("COMMIT")
    for client in clients:
        client.join()
    assert granted == [str(i) for i in range(0, 30, 3)], granted
    assert cluster.value("SELECT count(*) FROM pg_locks WHERE NOT granted") == 0


def test_savepoints(cluster):
    granted = []
    holder = Client(cluster, "holder")
    holder.do("BEGIN; SAVEPOINT a; LOCK TABLE t; SAVEPOINT b; LOCK TABLE other")
    low, high = Client(cluster, "low"), Client(cluster, "high", 10)
    for client in (low, high):
        client.ask_and_wait("BEGIN; LOCK TABLE t", granted)
    cluster.let_worker_look()
    holder.do("ROLLBACK TO b")
    cluster.let_worker_look()
    assert granted == []
    holder.do("ROLLBACK TO a")
    for client in (low, high):
        client.join()
    assert granted == ["high", "low"]
    holder.do("COMMIT")


def test_prepared_transaction_holds(cluster):
    granted = []
    holder = Client(cluster, "holder")
    holder.do("BEGIN; LOCK TABLE t; PREPARE TRANSACTION 'p'")
    low, high = Client(cluster, "low"), Client(cluster, "high", 10)
    for client in (low, high):
        client.ask_and_wait("BEGIN; LOCK TABLE t", granted)
    cluster.let_worker_look()
    assert cluster.execute(f"SELECT * FROM sooner_holders({low.pid})") == [(0, False, "relation")]
    holder.do("COMMIT PREPARED 'p'")
    for client in (low, high):
        client.join()
    assert granted == ["high", "low"]


def test_parallel_query_is_left_alone(cluster):
    """Workers that wait: the queue is not touched at all."""
    holder = Client(cluster, "holder")
    query = Client(cluster, "query")
    query.do(
        "SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0;"
        "SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0"
    )
    holder.do("BEGIN; LOCK TABLE other")
    granted = []
    query.ask_and_wait("BEGIN; SELECT count(peek(id)) FROM big", granted)
    cluster.wait_for(
        "SELECT count(*) > 1 FROM pg_locks JOIN pg_stat_activity USING (pid)"
        " WHERE NOT granted AND (backend_type = 'parallel worker' OR leader_pid IS NOT NULL)"
    )
    before = cluster.stat("refused_group")
    high = Client(cluster, "high", 10)
    high.ask_and_wait("BEGIN; LOCK TABLE other", granted)
    cluster.wait_for(f"SELECT refused_group > {before} FROM sooner_lock_stats()")
    holder.do("COMMIT")
    for client in (query, high):
        client.join()
        assert client.error is None, client.error
    assert granted == ["query", "high"], granted
    # A leader whose workers are gone is like any other.
    assert query.do("SHOW max_parallel_workers_per_gather") == [("2",)]
    query.do(f"BEGIN; {ADVISORY}")
    low, high = Client(cluster, "low"), Client(cluster, "high", 10)
    order = []
    for client in (low, high):
        client.ask_and_wait(f"BEGIN; {ADVISORY}", order)
    cluster.let_worker_look()
    query.do("COMMIT")
    for client in (low, high):
        client.join()
    assert order == ["high", "low"]
