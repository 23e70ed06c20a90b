"""Messages of the Python API in the words of the command line: ``nodes=7`` there is ``--nodes 7`` here."""

from __future__ import annotations

import re
from collections.abc import Collection

# Arguments whose option has another name.
_OPTIONS = {"memory_limit": "--memory", "data_dir": "--data", "folder": "-o", "out": "-o"}
# Options that take settings, whose names settings have, too.
_OF_SETTINGS = ("--set", "--train", "--grid")
# A setting, and a form that an option takes, stay as they are; part of a longer word (a path, a list of changes) is no
# argument.
_ARGUMENT = re.compile(r"(?<!\S)(?<!setting )(?<!takes )(\(?)([a-z_]+)=('[^']*'|\"[^\"]*\"|[^\s,;:()]+)")


def in_options(message: str, options: Collection[str]) -> str:
    """``message`` with every ``argument=value`` for which ``options`` has an option as ``--argument value``."""

    def spell(found: re.Match[str]) -> str:
        bracket, argument, value = found.groups()
        option = _OPTIONS.get(argument, f"--{argument.replace('_', '-')}")
        if option not in options or option in _OF_SETTINGS:
            return found[0]
        value = value.strip("'\"")
        return bracket + (option if value == "True" else f"{option} {value}")

    return _ARGUMENT.sub(spell, message)
