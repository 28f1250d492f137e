"""The options that say how a table is read, the same for every command that reads one: `--separator`, `--decimal`, `--thousands`,
`--encoding`, `--date-format`, `--missing`. What they say overrides `[read]` of the schema."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer

from sfumato.core.declared import declarations
from sfumato.data.texts.reading import Reading, stated_reading

#: The name of the parameter of a command that takes what was said.
_PARAMETER = "reading"


def reads_a_table(command: Callable[..., None]) -> Callable[..., None]:
    """A command with these options in place of its parameter `reading`, which takes what they say as keys and values."""
    signature = inspect.signature(command, eval_str=True)
    parameters = [each for name, each in signature.parameters.items() if name != _PARAMETER]
    place = next((i for i, each in enumerate(parameters) if each.name in ("json", "quiet")), len(parameters))
    parameters[place:place] = _options()

    @functools.wraps(command)
    def with_options(**values: Any) -> None:
        said = {name: values.pop(name) for name in Reading.names()}
        # of the empty ones, only that of thousands says something: that there is no mark
        stated = stated_reading({name: value for name, value in said.items() if value or (name == "thousands" and value == "")})
        command(**values, reading=stated)

    shown: Any = with_options
    shown.__signature__ = signature.replace(parameters=parameters)
    shown.__annotations__ = {each.name: each.annotation for each in parameters}
    del shown.__wrapped__
    return with_options


def options_of(reading: Mapping[str, object]) -> list[str]:
    """What is typed to say so again."""
    words = []
    for name, stated in reading.items():
        for each in stated if isinstance(stated, (list, tuple)) else (stated,):
            words += [f"--{name.replace('_', '-')}", str(each)]
    return words


def _options() -> list[inspect.Parameter]:
    """One option for each key of a reading, its meaning from where it is declared."""
    options = []
    for each in declarations(Reading):
        repeated = each.name == "missing"
        text = f"{each.meaning[0].upper()}{each.meaning[1:]}{'; may be repeated' if repeated else ''}."
        kind: Any = list[str] | None if repeated else str | None
        annotation = Annotated[kind, typer.Option(f"--{each.name.replace('_', '-')}", help=text)]
        options.append(inspect.Parameter(each.name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None, annotation=annotation))
    return options
