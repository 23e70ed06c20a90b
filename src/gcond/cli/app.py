"""The ``gcond`` command: its parts put together, and how it ends."""

from __future__ import annotations

import errno
import os
import sys
import time
import warnings
from collections.abc import Callable, Sequence

from cyclopts import App, CycloptsError

from gcond import __version__
from gcond.cli import (
    audit,
    compact,
    compare,
    condense,
    demo,
    evaluate,
    grow,
    inspect,
    listings,
    nas,
    pack,
    plot,
    predict,
    propagate,
    recommend,
    report,
    reproduce,
    synthesize,
    train,
    tune,
    update,
)
from gcond.cli.common_options import BEGAN, RESERVED, TYPED, Reservations
from gcond.cli.output import fail
from gcond.cli.translation import in_options
from gcond.cli.usage_errors import sentence
from gcond.errors import GcondError, GcondWarning
from gcond.runtime.plain_text import encodable
from gcond.runtime.stopwatch import process_began

app = App(
    name="gcond",
    help="Condense a large attributed graph into a tiny one on which graph neural networks train as well.",
    help_epilogue="Start with `gcond demo`, or: gcond condense citeseer --nodes 60",
    help_format="plaintext",
    version=f"gcond {__version__}",
    version_format="plaintext",
    result_action="return_value",
    print_error=False,
    exit_on_error=False,
    suppress_keyboard_interrupt=False,
)
_COMMANDS: dict[str, Callable[..., None]] = {
    "condense": condense.command,
    "evaluate": evaluate.command,
    "train": train.command,
    "predict": predict.command,
    "compare": compare.command,
    "grow": grow.command,
    "update": update.command,
    "compact": compact.command,
    "nas": nas.command,
    "recommend": recommend.command,
    "tune": tune.command,
    "audit": audit.command,
    "inspect": inspect.command,
    "plot": plot.command,
    "pack": pack.command,
    "propagate": propagate.command,
    "report": report.command,
    "reproduce": reproduce.command,
    "methods": listings.methods,
    "models": listings.models,
    "datasets": listings.datasets,
    "synthesize": synthesize.command,
    "demo": demo.command,
}
for _place, (_name, _function) in enumerate(_COMMANDS.items()):
    app.command(_function, name=_name, sort_key=_place, help_epilogue="")


def run(argv: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code.

    0 is success; 2 means that something a person gave is wrong, or that the machine refuses it, said in one sentence;
    130 that it was interrupted; 141 that nobody reads the output any more. Other exceptions are bugs and get through.
    """
    with encodable(sys.stdout, sys.stderr):
        return _run(list(sys.argv[1:] if argv is None else argv), process_began() if argv is None else time.monotonic())


def _run(words: list[str], began: float) -> int:
    """The exit code of the command line ``words``, which began then by the monotonic clock."""
    TYPED.set(words)
    BEGAN.set(began)
    try:
        with warnings.catch_warnings(), Reservations() as names:
            RESERVED.set(names)
            warnings.simplefilter("ignore", GcondWarning)  # commands have said it
            app(words)
        sys.stdout.flush()
    except CycloptsError as error:
        fail(sentence(error))
        return 2
    except GcondError as error:
        fail(in_options(str(error), _options(words)))
        return 2
    except KeyboardInterrupt as stop:
        fail(str(stop) or "interrupted")  # a command that can go on later says how
        return 130
    except BrokenPipeError:
        _drop_stdout()
        return 141
    except OSError as error:
        if error.errno == errno.ENOSPC:
            _drop_stdout()
            fail("the result cannot be written: the disk is full")
            return 2
        if error.filename is None or error.strerror is None:
            raise
        fail(f"the system refuses '{_readable(error.filename)}': {error.strerror}")
        return 2
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, MemoryError) and "can't allocate memory" not in str(error):
            raise
        fail("there is not enough memory for that: ask for something smaller, or for less of it at once")
        return 2
    return 0


def _readable(path: object) -> str:
    """A path of an error for its sentence: the end of one that is too long to be read."""
    text = os.fsdecode(path) if isinstance(path, str | bytes | os.PathLike) else str(path)
    return text if len(text) <= 200 else f"…{text[-60:]}"


def _options(words: Sequence[str]) -> set[str]:
    """The options of the command that ``words`` call."""
    _, apps, _ = app.parse_commands(words)
    return {name for argument in apps[-1].assemble_argument_collection() for name in argument.names}


def _drop_stdout() -> None:
    """Send what is still buffered nowhere, or Python would complain about it again on its way out."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
