"""The web server of the page, which listens on 127.0.0.1 until Ctrl-C."""

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
"""The time that running requests have when the server stops, in seconds."""


def check_installed() -> None:
    """Check that the packages of the server are installed."""
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise InputError(
            "the page requires the packages starlette and uvicorn; install them with "
            'pip install "langchain-threadmem[view]"'
        ) from error


def serve(
    system: MemorySystem,
    open_writer: Callable[[], MemorySystem] | None,
    *,
    port: int,
    browser: bool,
    started: Callable[[str], object],
) -> None:
    """Serve the page of one owner until Ctrl-C.

    Args:
        system: The system that the page reads.
        open_writer: Opens the system that makes changes; `None` for a page without changes.
        port: The port; 0 for a free port.
        browser: Whether to open the page in a browser.
        started: Called with the URL of the page, which contains the token.

    Raises:
        InputError: The port cannot be used.
    """
    import uvicorn

    from langchain_threadmem.apps.view.contents import Contents
    from langchain_threadmem.apps.view.routes import WritableSystem, app_of

    token, writer = secrets.token_urlsafe(24), WritableSystem(open_writer)
    with _listen(port) as listener:
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
            # A browser that runs in the terminal blocks until its user closes it.
            Thread(target=webbrowser.open, args=(url,), daemon=True).start()
        try:
            # Uvicorn waits for running requests and then raises the interrupt again.
            with suppress(KeyboardInterrupt):
                uvicorn.Server(config).run(sockets=[listener])
        finally:
            writer.close()


def _listen(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((HOST, port))
        listener.listen(64)
    except (OSError, OverflowError) as error:
        listener.close()
        raise InputError(f"--port {port} cannot be used: {error}; choose another port, or 0") from error
    return listener
