"""The `threadmem` command: its commands and exit codes.

Wrong arguments and unusable files are reported in one line on stderr with exit code 2. Commands import heavy
modules when they run, so that `threadmem --help` is fast.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import click

from langchain_threadmem import __version__
from langchain_threadmem.apps.cli import checking, editing, programs, reading, transfers
from langchain_threadmem.apps.cli.arguments import print_error
from langchain_threadmem.errors import ThreadMemError

_EPILOG = """\b
exit codes:
0    success
1    verify, repair, reindex, backup, import-checkpoints or erase found a
     problem that is left; no summary was written; or a question was
     answered with no
2    an argument, a file or a database cannot be used: one line on stderr
     names the cause and the next step
130  interrupted

`threadmem COMMAND --help` shows options and examples.
"""


class _CommandGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)  # In the order of `PROGRAM`.


PROGRAM = _CommandGroup(
    "threadmem",
    commands=[
        *(programs.demo, programs.mcp),
        *(
            transfers.import_,
            transfers.import_checkpoints,
            transfers.convert,
            transfers.backup,
            transfers.export,
        ),
        *(reading.list_, reading.show, reading.search, reading.stats, reading.owners),
        *(programs.view, programs.chat),
        *(editing.sort, editing.place, editing.summarize, editing.forget, editing.erase),
        *(checking.verify, checking.repair, checking.reindex, checking.secure, checking.partition),
        programs.completion,
    ],
    help="Chat memory in which a conversation is a tree.",
    epilog=_EPILOG,
    no_args_is_help=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
"""`threadmem` with all commands, in the order of the help."""
click.version_option(__version__, prog_name="threadmem", message="%(prog)s %(version)s")(PROGRAM)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        arguments: The arguments after `threadmem`; by default the arguments of the process.

    Returns:
        The exit code: 0 for success, 1 if a problem was found or is left, 2 for unusable input, 130 for an
        interrupt. A closed pipe, as of `threadmem list | head -1`, ends the command without an error.

    Raises:
        SystemExit: The arguments are wrong, or ask for the help or the version.
    """
    if instruction := os.environ.get(programs.VARIABLE):
        from click.shell_completion import shell_complete

        return shell_complete(PROGRAM, {}, "threadmem", programs.VARIABLE, instruction)
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        with _one_line_warnings(), PROGRAM.make_context("threadmem", words) as context:
            code: int | None = PROGRAM.invoke(context)
            sys.stdout.flush()
            return code or 0
    except click.exceptions.Exit as done:  # After the help or the version.
        raise SystemExit(done.exit_code) from None
    except click.UsageError as error:
        command = "threadmem" if error.ctx is None else error.ctx.command_path
        print_error(f"{error.format_message()}; see `{command} --help`")
        raise SystemExit(2) from None
    except ThreadMemError as error:
        print_error(str(error))
        return 2
    except BrokenPipeError:
        # Python writes the rest of the output at exit, which must not fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except UnicodeEncodeError as error:
        print_error(
            f"the output is written as {error.encoding}, which has no {error.object[error.start]!r}; set "
            "PYTHONUTF8=1, or write a file with --out"
        )
        return 2
    except OSError as error:  # A name that is too long, a full disk behind the output.
        print_error(f"{error}; check the path and the free space")
        return 2
    except KeyboardInterrupt:
        print_error("interrupted")
        return 130


@contextmanager
def _one_line_warnings() -> Iterator[None]:
    """Print warnings, and the log from the level WARNING on, in one line each."""
    import logging  # Not for `threadmem --help`.

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            print_error(record.getMessage())

    handler = Handler(logging.WARNING)
    logging.root.addHandler(handler)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_: print_error(str(message))
            yield
    finally:
        logging.root.removeHandler(handler)
