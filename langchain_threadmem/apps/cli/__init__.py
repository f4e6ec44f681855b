"""The `threadmem` command: its subcommands, the demo and the terminal output."""
