"""The server of the page: one process on 127.0.0.1, until Ctrl-C."""

from __future__ import annotations

import secrets
import socket
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from urllib.parse import quote

from langchain_threadmem.errors import InputError
from langchain_threadmem.memory_system import MemorySystem

HOST = "127.0.0.1"
GRACE = 2
"""The time in seconds for requests that run when the server ends."""


def check_installed() -> None:
    """Refuse to go on without the server.

    Raises:
        InputError: Starlette or uvicorn is not installed.
    """
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise InputError(
            "the page needs the packages starlette and uvicorn; install them with "
            'pip install "langchain-threadmem[view]"'
        ) from error


def serve(
    system: MemorySystem,
    opening: Callable[[], MemorySystem] | None,
    *,
    port: int = 0,
    browser: bool = True,
    started: Callable[[str], object] = print,
) -> None:
    """Serve the page of one owner until Ctrl-C.

    Args:
        system: The system that the page reads.
        opening: Opens the system that makes changes; `None` for a page without changes.
        port: The port; 0 for a free one.
        browser: Whether to open the page in the browser.
        started: Called with the URL of the page, which contains the token.

    Raises:
        InputError: The port cannot be used.
    """
    import uvicorn

    from langchain_threadmem.view.contents import Contents
    from langchain_threadmem.view.routes import Writer, app_of

    token, writer = secrets.token_urlsafe(24), Writer(opening)
    with _listening(port) as listener:
        port = listener.getsockname()[1]
        url = f"http://{HOST}:{port}/?token={quote(token)}"
        config = uvicorn.Config(
            app_of(Contents(system), writer, token, port),
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=GRACE,
        )
        started(url)
        if browser:
            # A browser in the terminal ends only when its user ends it.
            Thread(target=webbrowser.open, args=(url,), daemon=True).start()
        try:
            # Uvicorn answers what runs and then raises the interrupt again.
            with suppress(KeyboardInterrupt):
                uvicorn.Server(config).run(sockets=[listener])
        finally:
            writer.close()


def _listening(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((HOST, port))
        listener.listen(64)
    except (OSError, OverflowError) as error:
        listener.close()
        raise InputError(f"--port {port} cannot be used: {error}; choose another port, or 0") from error
    return listener
