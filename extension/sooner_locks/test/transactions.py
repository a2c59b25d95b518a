"""The kinds of transactions of the stress test. Each returns how much it adds to the sum."""

ROWS = 6

TABLES = """
    CREATE TABLE t (id int PRIMARY KEY, v bigint) WITH (fillfactor = 20);
    CREATE TABLE done (client int, serial int, delta int, PRIMARY KEY (client, serial));
    CREATE TABLE counter (id int PRIMARY KEY, v bigint);
    INSERT INTO counter SELECT i, 0 FROM generate_series(1, 8) i;
    CREATE TABLE locked_a (v bigint);
    CREATE TABLE locked_b (v bigint);
    INSERT INTO locked_a VALUES (0);
    INSERT INTO locked_b VALUES (0);
    CREATE VIEW rows_of_all AS
        SELECT v FROM t UNION ALL SELECT v FROM counter
        UNION ALL SELECT v FROM locked_a UNION ALL SELECT v FROM locked_b;
"""


def add(cursor, row):
    cursor.execute("UPDATE t SET v = v + 1 WHERE id = %s", (row,))


def two_rows(dice):
    return dice.sample(range(1, ROWS + 1), 2)


def pair_in_order(cursor, dice):
    for row in sorted(two_rows(dice)):
        add(cursor, row)
    return 2


def pair_in_any_order(cursor, dice):
    for row in two_rows(dice):
        add(cursor, row)
    return 2


def for_update(cursor, dice):
    a, b = sorted(two_rows(dice))
    cursor.execute("SELECT v FROM t WHERE id = %s FOR UPDATE", (a,))
    cursor.execute("SELECT v FROM t WHERE id = %s FOR NO KEY UPDATE", (b,))
    cursor.execute("UPDATE t SET v = %s WHERE id = %s", (cursor.fetchone()[0] + 1, b))
    return 1


def only_lock(cursor, dice):
    cursor.execute("SELECT v FROM t WHERE id = %s FOR UPDATE", (dice.randint(1, 2),))
    return 0


def share_then_update(cursor, dice):
    row = dice.randint(1, ROWS)
    strength = dice.choice(("SHARE", "KEY SHARE"))
    cursor.execute(f"SELECT v FROM t WHERE id = %s FOR {strength}", (row,))
    add(cursor, row)
    return 1


def savepoints(cursor, dice):
    a, b = two_rows(dice)
    cursor.execute("SAVEPOINT one")
    add(cursor, a)
    cursor.execute("SAVEPOINT two")
    add(cursor, b)
    cursor.execute("ROLLBACK TO two")
    cursor.execute("SELECT pg_advisory_xact_lock(%s)", (100 + b,))
    if dice.random() < 0.5:
        cursor.execute("ROLLBACK TO one")
        return 0
    return 1


def count_up(cursor, key):
    """Read, then write what was read and one more: right only if the lock keeps others out."""
    cursor.execute("SELECT v FROM counter WHERE id = %s", (key,))
    value = cursor.fetchone()[0]
    cursor.execute("UPDATE counter SET v = %s WHERE id = %s", (value + 1, key))


def advisory(cursor, dice):
    keys = dice.sample(range(1, 9), 2)
    if dice.random() < 0.7:
        keys.sort()
    for key in keys:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", (key,))
        count_up(cursor, key)
    return 2


def advisory_shared(cursor, dice):
    key = dice.randint(1, 8)
    cursor.execute("SELECT pg_advisory_xact_lock_shared(%s)", (key,))
    if dice.random() < 0.2:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", (key,))
        count_up(cursor, key)
        return 1
    return 0


def lock_table(cursor, dice):
    table = dice.choice(("locked_a", "locked_b"))
    mode = dice.choice(("EXCLUSIVE", "ACCESS EXCLUSIVE", "SHARE ROW EXCLUSIVE"))
    cursor.execute(f"LOCK TABLE {table} IN {mode} MODE")
    cursor.execute(f"SELECT v FROM {table}")
    cursor.execute(f"UPDATE {table} SET v = {cursor.fetchone()[0] + 1}")
    return 1


def lock_table_weakly(cursor, dice):
    tables = ["locked_a", "locked_b"]
    dice.shuffle(tables)
    for table in tables[: dice.randint(1, 2)]:
        mode = dice.choice(("ACCESS SHARE", "ROW EXCLUSIVE", "SHARE", "SHARE UPDATE EXCLUSIVE"))
        cursor.execute(f"LOCK TABLE {table} IN {mode} MODE")
    if dice.random() < 0.3:
        cursor.execute(f"LOCK TABLE {tables[0]} IN SHARE ROW EXCLUSIVE MODE")
    return 0


def crossed(cursor, dice):
    """Table locks of all strengths and advisory locks in any order: queues of mixed modes."""
    modes = ("ACCESS SHARE", "ROW EXCLUSIVE", "SHARE", "EXCLUSIVE", "ACCESS EXCLUSIVE")
    steps = [f"LOCK TABLE locked_{dice.choice('ab')} IN {dice.choice(modes)} MODE"]
    steps += [f"SELECT pg_advisory_xact_lock({key})" for key in dice.sample(range(200, 204), 2)]
    dice.shuffle(steps)
    for step in steps:
        cursor.execute(step)
    return 0


KINDS = (
    pair_in_order,
    pair_in_any_order,
    for_update,
    only_lock,
    share_then_update,
    savepoints,
    advisory,
    advisory_shared,
    lock_table,
    lock_table_weakly,
    crossed,
    crossed,
)
