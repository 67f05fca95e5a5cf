"""The console script and `python -m gradcli`: Ctrl-C ends it quietly from its first line on."""

from __future__ import annotations

import os
import sys

INTERRUPTED = 130
NO_MEMORY = 4


def main() -> None:
    """Carry out the command line of this process and leave with its exit code."""
    try:
        from gradcli.cli import garbage

        garbage.seldom()
        from gradcli.cli.main import run

        code = run(sys.argv[1:])
    except KeyboardInterrupt:  # in an import, or while `run` answers another one
        code = INTERRUPTED
    except MemoryError:  # in an import; nothing but this can be relied on then
        sys.stderr.write("error[E402] the memory of this process is used up\n")
        code = NO_MEMORY
    _flush_stderr()
    sys.exit(code)


def _flush_stderr() -> None:
    """Give up what no room is left for: Python would end with 120 in place of the exit code."""
    try:
        sys.stderr.flush()
    except AttributeError:  # there is none
        return
    except (OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


if __name__ == "__main__":
    main()
