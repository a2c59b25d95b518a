"""A PostgreSQL cluster of its own for the tests, and what waits in it."""

import os
import re
import shutil
import subprocess
import tempfile
import threading
import time

import psycopg2

SETTINGS = """
fsync = off
listen_addresses = ''
max_connections = 150
max_prepared_transactions = 10
max_worker_processes = 16
deadlock_timeout = 500ms
shared_preload_libraries = 'sooner_locks'
"""


class Cluster:
    """Made by initdb in a folder under /tmp, as the user postgres where root runs the test."""

    def __init__(self, binaries, settings=""):
        self.binaries = binaries
        self.folder = tempfile.mkdtemp(prefix="sooner-locks-", dir="/tmp")
        self.data = os.path.join(self.folder, "data")
        self.prefix = []
        if os.geteuid() == 0:
            shutil.chown(self.folder, "postgres", "postgres")
            self.prefix = "setpriv --reuid=postgres --regid=postgres --init-groups".split()
        self.run("initdb", "-D", self.data, "-A", "trust", "-U", "postgres", "--no-locale")
        self.configure(SETTINGS + f"unix_socket_directories = '{self.folder}'\n" + settings)
        self.start()
        self.execute("CREATE EXTENSION sooner_locks")

    def run(self, program, *arguments):
        command = [*self.prefix, os.path.join(self.binaries, program), *arguments]
        subprocess.run(command, check=True, cwd=self.folder, stdout=subprocess.DEVNULL)

    def configure(self, lines):
        with open(os.path.join(self.data, "postgresql.conf"), "a", encoding="utf8") as file:
            file.write(lines + "\n")

    def set(self, **settings):
        """Settings of `sooner.`, in force when it returns."""
        for name, value in settings.items():
            self.execute(f"ALTER SYSTEM SET sooner.{name} = '{value}'")
        self.execute("SELECT pg_reload_conf()")
        time.sleep(0.2)

    def reset(self):
        self.execute("ALTER SYSTEM RESET ALL")
        self.execute("SELECT pg_reload_conf()")
        time.sleep(0.2)

    def start(self):
        self.run("pg_ctl", "-D", self.data, "-l", os.path.join(self.folder, "log"), "-w", "start")

    def stop(self, mode="fast"):
        self.run("pg_ctl", "-D", self.data, "-w", "-m", mode, "stop")

    def remove(self):
        try:
            self.stop("immediate")
        except subprocess.CalledProcessError:
            pass
        shutil.rmtree(self.folder, ignore_errors=True)

    def log(self):
        with open(os.path.join(self.folder, "log"), encoding="utf8") as file:
            return file.read()

    def connect(self, user="postgres", **options):
        connection = psycopg2.connect(host=self.folder, user=user, dbname="postgres", **options)
        connection.autocommit = True
        return connection

    def execute(self, sql, user="postgres"):
        connection = self.connect(user)
        try:
            cursor = connection.cursor()
            cursor.execute(sql)
            return cursor.fetchall() if cursor.description else None
        finally:
            connection.close()

    def value(self, sql):
        return self.execute(sql)[0][0]

    def stat(self, name):
        return self.value(f"SELECT {name} FROM sooner_lock_stats()")

    def wait_for(self, sql, seconds=20):
        """Until a query says true."""
        end = time.monotonic() + seconds
        while not self.value(sql):
            assert time.monotonic() < end, f"never: {sql}"
            time.sleep(0.005)

    def let_worker_look(self):
        """Until the worker has seen twice what waits now; one that waits must have a priority."""
        before = self.stat("scans")
        self.wait_for(f"SELECT scans >= {before} + 2 FROM sooner_lock_stats()")


class Client:
    """A session in a thread: what it is asked to lock is granted some time, and it says so."""

    def __init__(self, cluster, name, priority=0, user="postgres"):
        self.cluster = cluster
        self.name = name
        self.connection = cluster.connect(user)
        self.cursor = self.connection.cursor()
        self.pid = self.connection.get_backend_pid()
        self.error = None
        self.thread = None
        if priority:
            self.cursor.execute(f"SET sooner.priority = {priority}")

    def do(self, sql):
        self.cursor.execute(sql)
        return self.cursor.fetchall() if self.cursor.description else None

    def ask(self, sql, granted=None, then="COMMIT"):
        """Begins a transaction in which it waits; `granted` gets its name, `then` ends it."""

        def run():
            try:
                self.cursor.execute(sql)
                if granted is not None:
                    granted.append(self.name)
                if then:
                    self.cursor.execute(then)
            except psycopg2.Error as error:
                self.error = error
                try:
                    self.cursor.execute("ROLLBACK")
                except psycopg2.Error:
                    pass

        self.thread = threading.Thread(target=run, daemon=True)
        self.thread.start()

    def ask_and_wait(self, sql, granted=None, then="COMMIT"):
        """Returns when the server shows that it waits."""
        self.ask(sql, granted, then)
        self.cluster.wait_for(
            f"SELECT count(*) > 0 FROM pg_locks WHERE pid = {self.pid} AND NOT granted"
        )

    def join(self, seconds=30):
        self.thread.join(seconds)
        assert not self.thread.is_alive(), f"{self.name} still waits"

    def close(self):
        self.connection.close()


def sequence(cluster, sql, who, pause=0.0, hold=0.0, is_ordered=True):
    """One holds a lock, `who` queue for it one after the other; in which order they get it."""
    granted = []
    holder = Client(cluster, "holder")
    holder.do(f"BEGIN; {sql}")
    clients = []
    for name, priority in who:
        client = Client(cluster, name, priority)
        client.ask_and_wait(f"BEGIN; {sql}", granted)
        clients.append(client)
        time.sleep(pause)
    time.sleep(hold)
    if is_ordered:
        cluster.let_worker_look()
    holder.do("COMMIT")
    for client in clients:
        client.join()
        assert client.error is None, client.error
        client.close()
    holder.close()
    return " ".join(granted)


def major(cluster):
    return int(re.match(r"\d+", cluster.value("SHOW server_version")).group())
