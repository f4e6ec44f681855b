"""The command `completion`."""

from __future__ import annotations

import argparse

from langchain_threadmem.cli.arguments import Commands, add_command

SHELLS = ("bash", "zsh")
_FILES = ("DATABASE", "FILE", "FROM", "TO", "TARGET")
_FOLDERS = ("DIR",)


def register(commands: Commands) -> None:
    completion = add_command(
        commands,
        "completion",
        _completion,
        "print a script that completes commands and options in a shell",
        examples=[
            "completion bash > ~/.local/share/bash-completion/completions/threadmem",
            "completion zsh > ~/.zfunc/_threadmem",
        ],
        database=None,
        owner=False,
    )
    completion.add_argument("shell", metavar="SHELL", choices=SHELLS, help="bash or zsh")


def _completion(options: argparse.Namespace) -> None:
    import shtab

    from langchain_threadmem.cli.main import make_parser

    parser = make_parser()
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                for argument in command._actions:
                    if argument.metavar in _FILES:
                        argument.complete = shtab.FILE
                    elif argument.metavar in _FOLDERS:
                        argument.complete = shtab.DIRECTORY
    print(shtab.complete(parser, options.shell))
