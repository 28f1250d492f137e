"""How a request that cannot be understood is refused: in our words, with the nearest name, and with where to read on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from sfumato.core.errors import ParameterError, as_name
from sfumato.core.texts import nearest

#: A command, a parameter, a context or an error of the library of commands, which gives them no public names.
Library: TypeAlias = Any


class Misuse(ParameterError):
    """Arguments or options of a command that do not fit together; whoever sees it is told where its help is."""


def with_hint(text: str, command: str) -> str:
    """The sentence, and the help of the command that it is about."""
    return f"{text}{'' if text.rstrip().endswith(('.', '?', '!')) else '.'} See `{command} --help`."


def command_of(root: Library, arguments: Sequence[str]) -> tuple[str, Library]:
    """The command that these arguments call, as it is typed (`sfumato ledger grant`) and itself."""
    node, path = root, ["sfumato"]
    for word in arguments:
        inside = getattr(node, "commands", {})
        if word not in inside:
            break
        node = inside[word]
        path.append(word)
    return " ".join(path), node


def explained(error: Library, command: Library) -> str:
    """What is wrong with the arguments: the library calls it otherwise, and quotes what was typed, which may hold a password."""
    kind, parameter = type(error).__name__, getattr(error, "param", None)
    if kind == "NoSuchOption":
        return f"there is no option {as_name(error.option_name)}{nearest(error.option_name, _options(error.ctx))}"
    if kind == "MissingParameter" and parameter is not None:
        about = (parameter.help or "").split(";")[0].rstrip(".")
        return f"{called(parameter)} is missing" + (f": {about[:1].lower()}{about[1:]}" if about else "")
    if kind == "BadOptionUsage":
        option = next((each for each in command.params if error.option_name in (*each.opts, *each.secondary_opts)), None)
        if option is None or option.is_flag:
            return f"{as_name(error.option_name)[1:-1]} takes no value"
        return f"{called(option)} needs a value: {value_word(option)}"
    if kind == "BadParameter" and parameter is not None:
        return f"{called(parameter)} must be {_range(parameter)}"
    if kind == "UsageError" and "extra argument" in error.message:
        taken = [called(each) for each in command.params if each.param_type_name == "argument"]
        return f"there is an argument too many: {error.ctx.command_path} takes {' and '.join(taken) or 'options only'}"
    return str(error.format_message())


def called(parameter: Library) -> str:
    """An option as it is typed, an argument by its name in capitals."""
    if parameter.param_type_name == "argument":
        return str(parameter.name).replace("_", "-").upper()
    return str(max(parameter.opts, key=len))


#: What stands behind an option in a help, where its kind of value does not say it.
_WORDS = {
    "FILE": "schema schema_out original population sign public_key figure register ledger groups tree delta_file",
    "FOLDER": "output cache",
    "TABLE": "table write_table destination_table data_table",
    "PLACE": "data write_to destination earlier",
    "COLUMN": "column quasi key order unit",
    "METHOD": "method methods",
    "GUARANTEE": "guarantee",
    "ATTACK": "attack only",
    "MEASURE": "utility risk loss also",
    "NAME": "analyst dataset version kind",
    "NAME=VALUE": "parameters keys",
    "COLUMN=NUMBER": "l t least_level greatest_level",
    "SIZE": "memory",
    "FORMAT": "format",
    "NAME=PLACE": "public",
    "SEED": "seed",
    "AMOUNT": "epsilon delta rho within rank_within",
    "CODE": "missing country",
    "CHARACTER": "separator decimal thousands",
}
_WORD_OF = {name: word for word, names in _WORDS.items() for name in names.split()}


def value_word(parameter: Library) -> str:
    """A word for the value of an option: no type of a programming language."""
    if parameter.metavar:
        return str(parameter.metavar)
    numeric = parameter.type_descriptor.annotation in (int, float)
    return "NUMBER" if numeric else _WORD_OF.get(parameter.name, "TEXT")


def bounds(parameter: Library) -> str:
    """The range of a number in words."""
    low, high = getattr(parameter, "min", None), getattr(parameter, "max", None)
    if low is not None and high is not None:
        return f"from {low:,} to {high:,}"
    return f"at least {low:,}" if low is not None else f"at most {high:,}" if high is not None else ""


def _range(parameter: Library) -> str:
    whole = parameter.type_descriptor.annotation is int
    within = bounds(parameter)
    of = f" of {within}" if within.startswith("at") else f" {within}" if within else ""
    return f"a whole number{of}" if whole else f"a number{of}"


def _options(context: Library) -> list[str]:
    shown = [each for each in context.command.get_params(context) if not getattr(each, "hidden", False)]
    return [name for each in shown if each.param_type_name == "option" for name in (*each.opts, *each.secondary_opts)]
