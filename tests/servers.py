"""Programs that tests start beside PostgreSQL: PgBouncer."""

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
