"""A command line that cannot be understood, explained in one sentence."""

from __future__ import annotations

from typing import Literal, get_args, get_origin

from cyclopts import (
    CoercionError,
    CycloptsError,
    MissingArgumentError,
    RepeatArgumentError,
    UnknownCommandError,
    UnknownOptionError,
    UnusedCliTokensError,
)

from gcond.config.registry import suggest
from gcond.errors import GcondError


def sentence(error: CycloptsError) -> str:
    """One sentence on what is wrong with the command line and what would be right."""
    if isinstance(error.__cause__, GcondError):
        return str(error.__cause__)  # a reader of ours has said it
    where = " ".join(["gcond", *(error.command_chain or ())])
    if isinstance(error, UnknownCommandError):
        return _unknown_command(error)
    if isinstance(error, UnknownOptionError):
        return _unknown_option(error, where)
    if isinstance(error, CoercionError) and error.token is not None:
        return _wrong_type(error)
    if isinstance(error, MissingArgumentError) and error.argument is not None:
        return _missing(error, where)
    if isinstance(error, RepeatArgumentError):
        return f"option {error.token.keyword} is given more than once: give it once"
    if isinstance(error, UnusedCliTokensError) and error.unused_tokens:
        return f"{where} does not know what to do with '{error.unused_tokens[0]}': see {where} --help"
    error.verbose = False
    return f"{str(error).strip().rstrip('.')}: see {where} --help"


def _unknown_command(error: UnknownCommandError) -> str:
    token = (error.unused_tokens or [""])[0]
    names = [name for name in error.app or () if not name.startswith("-")]
    kind = "option" if token.startswith("-") else "command"
    return f"unknown {kind} '{token}'{suggest(token, names)}: the commands are {', '.join(names)}"


def _unknown_option(error: UnknownOptionError, where: str) -> str:
    token = error.token.keyword or error.token.value
    names = [name for argument in error.argument_collection if argument.parse for name in argument.names]
    return f"{where} has no option '{token}'{suggest(token.split('=')[0], names)}: see {where} --help"


def _wrong_type(error: CoercionError) -> str:
    assert error.token is not None
    name = error.token.keyword or (error.argument.name.lstrip("-").upper() if error.argument else "an argument")
    value, kind = error.token.value, error.target_type
    if get_origin(kind) is Literal:
        choices = [str(choice) for choice in get_args(kind)]
        return f"{name} cannot be '{value}'{suggest(value, choices)}: choose {' or '.join(choices)}"
    wanted = {int: "a whole number", float: "a number", bool: "yes or no"}.get(kind, "of another kind")  # type: ignore[arg-type]
    return f"{name} cannot be '{value}': it must be {wanted}"


def _missing(error: MissingArgumentError, where: str) -> str:
    assert error.argument is not None
    keyword = error.keyword or next((token.keyword for token in error.argument.tokens if token.keyword), None)
    if keyword:
        return f"option {keyword} needs a value: see {where} --help"
    name = error.argument.name
    name = name if error.argument.field_info.is_keyword_only else name.lstrip("-").upper()
    # --set takes as many values as follow it, so what comes last may have become one of them.
    place = " before --set" if "--set" in (error.root_input_tokens or ()) else ""
    return f"{where} needs {name}{place}: see {where} --help"
