"""The console script and `python -m gradcli`: Ctrl-C ends it quietly from its first line on."""

from __future__ import annotations

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
    sys.exit(code)


if __name__ == "__main__":
    main()
