"""The `threadmem` command: its commands and exit codes.

Wrong arguments and unusable files are reported in one line on stderr with exit code 2. Commands import heavy
modules when they run, so that `threadmem --help` is fast.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence

from langchain_threadmem import __version__
from langchain_threadmem.cli import checking, editing, reading, running, transfers
from langchain_threadmem.cli.arguments import Command, Parser, print_error, settle
from langchain_threadmem.errors import ThreadMemError

GROUPS = (running, transfers, reading, editing, checking)
"""The modules of commands, in the order of the help; each has a function `register(commands)`."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        arguments: The arguments after `threadmem`; by default those of the process.

    Returns:
        The exit code: 0 for success, 1 if `verify` finds problems, an import differs from its source or the
        index of vectors is incomplete, 2 for unusable input, 130 for an interrupt.
    """
    options = make_parser().parse_args(arguments)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_: print_error(str(message))
            settle(options)
            code: int = options.run(options)
            return code
    except ThreadMemError as error:
        print_error(str(error))
        return 2
    except KeyboardInterrupt:
        print_error("interrupted")
        return 130


def make_parser() -> argparse.ArgumentParser:
    """The parser of `threadmem` with all commands."""
    parser = Parser(prog="threadmem", description="Chat memory in which a conversation is a tree.")
    parser.add_argument("--version", action="version", version=f"threadmem {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND", parser_class=Command)
    for group in GROUPS:
        group.register(commands)
    return parser
