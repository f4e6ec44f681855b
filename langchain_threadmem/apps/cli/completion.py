"""The command `completion`."""

from __future__ import annotations

import click

from langchain_threadmem.apps.cli.arguments import command

VARIABLE = "_THREADMEM_COMPLETE"
"""The environment variable by which the script of a shell asks `threadmem` for completions."""


@command(
    "completion",
    examples=[
        "completion bash > ~/.local/share/bash-completion/completions/threadmem",
        "completion zsh > ~/.zfunc/_threadmem",
        "completion fish > ~/.config/fish/completions/threadmem.fish",
    ],
    database=None,
    owner=False,
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a script for completion in a shell."""
    from click.shell_completion import get_completion_class

    from langchain_threadmem.apps.cli.main import PROGRAM

    script = get_completion_class(shell)
    assert script is not None
    print(script(PROGRAM, {}, "threadmem", VARIABLE).source())
