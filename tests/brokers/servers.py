"""Real servers of Redis, NATS and PostgreSQL on free ports of this machine."""

import asyncio
import json
import os
import pwd
import shutil
import socket
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from kafka_cluster import wait_for


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def find(program, folder=None, pattern=""):
    """Return the path of a program, or skip where it is not there."""
    found = [shutil.which(program), shutil.which(program, path=Path(sys.executable).parent)]
    if folder is not None:
        found += sorted(map(str, Path(folder).glob(pattern)), reverse=True)
    there = next(filter(None, found), None)
    return there or pytest.skip(f"no {program} on this machine: install it")


class Server:
    """A server that can be killed and started again with what it had."""

    columns = ()
    """Options that say which columns are used."""

    def __init__(self, folder):
        self.folder, self.port, self.process = folder, free_port(), None

    def start(self):
        with Path(self.folder, "log").open("ab") as log:
            self.process = subprocess.Popen(
                self.command(), stdout=log, stderr=log, start_new_session=True, **self.how()
            )
        wait_for(self.answers)

    def how(self):
        return {}

    def answers(self):
        assert self.process.poll() is None, Path(self.folder, "log").read_text()
        with suppress(Exception):
            self.ask()
            return True

    def kill(self):
        self.process.kill()
        self.process.wait()

    stop, go_on = kill, start

    def source_url(self, name):
        """Return the address to read from."""
        return self.url(name)


class Redis(Server):
    scheme = "redis"

    def command(self):
        return [
            find("redis-server"),
            *("--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder)),
            *("--appendonly", "yes", "--appendfsync", "always", "--save", ""),
        ]

    @property
    def client(self):
        import redis

        return redis.Redis(port=self.port, protocol=2)

    def ask(self):
        with self.client as client:
            client.ping()

    def url(self, name):
        return f"redis://127.0.0.1:{self.port}/{name}"

    def create(self, name):
        return None

    def write(self, name, values):
        with self.client as client:
            for value in values:
                client.xadd(name, {"data": value})

    def read(self, name):
        with self.client as client:
            found = client.xrange(name)
        return [(fields[b"key"].decode(), json.loads(fields[b"answer"])) for _, fields in found]


class Nats(Server):
    scheme = "nats"

    def command(self):
        return [
            find("nats-server"),
            *("-a", "127.0.0.1", "-p", str(self.port), "-js", "-sd", str(self.folder)),
        ]

    def do(self, work):
        """Run a coroutine of a JetStream context."""
        import nats

        async def connected():
            client = await nats.connect(f"nats://127.0.0.1:{self.port}", allow_reconnect=False)
            try:
                return await work(client.jetstream(timeout=60))
            finally:
                await client.close()

        return asyncio.run(connected())

    def ask(self):
        self.do(lambda stream: stream.account_info())

    def url(self, name):
        return f"nats://127.0.0.1:{self.port}/{name}"

    def create(self, name):
        self.do(lambda stream: stream.add_stream(name=name, subjects=[name]))

    def write(self, name, values):
        async def publish(stream):
            for value in values:
                await stream.publish(name, value)

        with suppress(Exception):
            self.create(name)
        self.do(publish)

    def read(self, name):
        async def messages(stream):
            state = (await stream.stream_info(name)).state
            return [await stream.get_msg(name, i + 1) for i in range(state.messages)]

        return [(one.headers["Nats-Msg-Id"], json.loads(one.data)) for one in self.do(messages)]


class Postgres(Server):
    """Runs as a user of its own, since it refuses root."""

    scheme = "postgresql"
    columns = ("--columns", "x,y")

    def __init__(self, folder):
        super().__init__(folder)
        self.binary = find("initdb", "/usr/lib/postgresql", "*/bin/initdb")
        self.data = folder / "data"
        if os.geteuid() == 0:
            shutil.chown(folder, "postgres")
        subprocess.run(
            [self.binary, "-D", self.data, "-U", "tester", "-A", "trust", "--no-sync"],
            check=True,
            stdout=subprocess.DEVNULL,
            **self.how(),
        )

    def how(self):
        if os.geteuid() != 0:
            return {"cwd": self.folder}
        try:
            return {"user": pwd.getpwnam("postgres").pw_uid, "cwd": "/"}
        except KeyError:
            return pytest.skip("no user postgres, and PostgreSQL refuses root")

    def command(self):
        return [
            str(Path(self.binary).with_name("postgres")),
            *("-D", str(self.data), "-p", str(self.port), "-k", "", "-h", "127.0.0.1"),
        ]

    @property
    def session(self):
        import psycopg

        about = f"host=127.0.0.1 port={self.port} user=tester dbname=postgres"
        return psycopg.connect(about, autocommit=True)

    def do(self, query, *values):
        with self.session as session:
            found = session.execute(query, values)
            return found.fetchall() if found.description else []

    def ask(self):
        self.do("SELECT 1")

    def url(self, name):
        return f"postgresql://tester@127.0.0.1:{self.port}/postgres?table={name}"

    def source_url(self, name):
        """Return the address to read from: a table has a key that grows."""
        return self.url(name) + "&key=n"

    def create(self, name):
        self.do(
            f"CREATE TABLE IF NOT EXISTS {name} "
            "(n bigserial, id text, x float8, y float8, PRIMARY KEY (n))"
        )

    def write(self, name, values):
        self.create(name)
        query = f"INSERT INTO {name} (id, x, y) VALUES (%s, %s, %s)"
        cells = [[json.loads(value)[column] for column in ("id", "x", "y")] for value in values]
        with self.session as session, session.cursor() as cursor:
            cursor.executemany(query, cells)

    def read(self, name):
        return self.do(f"SELECT id, answer FROM {name} ORDER BY (answer->>'record')::int")


KINDS = {kind.scheme: kind for kind in (Redis, Nats, Postgres)}
PACKAGES = {"redis": "redis", "nats": "nats", "postgresql": "psycopg"}


@contextmanager
def running(scheme, folder):
    """Run a server, or skip where it or its client is not there."""
    pytest.importorskip(PACKAGES[scheme], reason=f"no client of {scheme} is installed")
    folder.chmod(0o755)
    for parent in folder.parents:  # the user of PostgreSQL has to get there
        if parent.stat().st_uid == os.geteuid() and parent != Path("/"):
            parent.chmod(parent.stat().st_mode | 0o055)
    server = KINDS[scheme](folder)
    server.start()
    try:
        yield server
    finally:
        server.kill()
