"""The `threadmem` command."""
