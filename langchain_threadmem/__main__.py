"""The `threadmem` command as `python -m langchain_threadmem`."""

import sys

from langchain_threadmem.apps.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
