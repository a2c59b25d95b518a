#!/usr/bin/env python3
"""Functional tests of sooner_locks on a cluster of their own; needs psycopg2.

usage: functional.py [--bin DIR] [NAME]...

DIR has initdb and pg_ctl; the extension is installed there. NAME: only tests whose name has it.
"""

import argparse
import sys
import time
import traceback

import test_order
import test_server
import test_sources
from cluster import Cluster

TABLES = """
    CREATE TABLE t AS SELECT id, 0 AS v FROM generate_series(1, 100) id;
    ALTER TABLE t ADD PRIMARY KEY (id);
    CREATE TABLE other (v int);
    CREATE TABLE big AS SELECT generate_series(1, 20000) id;
    ANALYZE big;
    CREATE FUNCTION peek(int) RETURNS int LANGUAGE plpgsql PARALLEL SAFE AS
    $$ BEGIN IF $1 % 1000 = 0 THEN PERFORM count(*) FROM other; END IF; RETURN $1; END $$
"""


def tests(names):
    for module in (test_sources, test_order, test_server):
        for name, test in vars(module).items():
            if name.startswith("test_") and test.__module__ == module.__name__:
                if not names or any(part in name for part in names):
                    yield name, test


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", default="/usr/lib/postgresql/15/bin")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    cluster = Cluster(arguments.bin)
    failed = []
    count = 0
    try:
        cluster.execute(TABLES)
        for name, test in tests(arguments.names):
            began = time.monotonic()
            count += 1
            try:
                test(cluster)
                print(f"ok     {name} ({time.monotonic() - began:.1f} s)", flush=True)
            except Exception:
                failed.append(name)
                print(f"FAILED {name}\n{traceback.format_exc()}", flush=True)
        log = cluster.log()
        for bad in ("PANIC", "TRAP", "signal 11", "signal 6"):
            if bad in log:
                failed.append(f"log has {bad}")
        if failed:
            print(log[-3000:])
    finally:
        cluster.remove()
    print(f"{count - len(failed)} passed, {len(failed)} failed {' '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
