"""``gcond`` and ``python -m gcond``."""

from __future__ import annotations

import sys

from gcond.cli.app import run


def main() -> None:
    """Run the command line of this process and exit."""
    sys.exit(run())


if __name__ == "__main__":
    main()
