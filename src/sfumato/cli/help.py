"""The help of commands: in our words, by task, with examples; options that nobody typed come from `sfumato.toml`."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import typer
from typer.core import TyperCommand, TyperGroup

from sfumato.cli import defaults
from sfumato.cli.usage import Library, Misuse, bounds, called, value_word
from sfumato.core.errors import as_name
from sfumato.core.texts import nearest

LOOK, PUBLISH, ASK, CHECK = "Look at a table", "Publish", "Ask under a budget", "Check and attack"
ACCOUNT, PROGRAM = "Keep accounts and keys", "This program"
#: The tasks by which `sfumato` lists its commands, in this order.
TASKS = (LOOK, PUBLISH, ASK, CHECK, ACCOUNT, PROGRAM)


def add(
    app: typer.Typer, function: Callable[..., None], *examples: str, task: str | None = None, name: str | None = None
) -> None:
    """Add a command with examples of how it is typed; `task` says under which heading `sfumato` lists it."""
    app.command(name, cls=Command, epilog="\n".join(examples), rich_help_panel=task)(function)


def group(about: str, *examples: str, **options: Library) -> typer.Typer:
    """Commands under a word of their own; `options` are those of Typer."""
    return typer.Typer(help=about, epilog="\n".join(examples), **{"cls": CommandGroup, "no_args_is_help": True, **options})


class _Helped:
    """What a command and a group of commands show of themselves."""

    epilog: str | None
    params: list[Library]
    get_params: Callable[[Library], list[Library]]

    def collect_usage_pieces(self, ctx: Library) -> list[str]:
        """The arguments by their names in capitals, and that there are options."""
        arguments = [each for each in self.params if each.param_type_name == "argument"]
        pieces = [called(each) if each.required else f"[{called(each)}]" for each in arguments]
        return [*pieces, *(["COMMAND"] if isinstance(self, TyperGroup) else []), "[OPTIONS]"]

    def format_options(self, ctx: Library, formatter: Library) -> None:
        """Arguments and options, one by one; then commands where there are some."""
        params = [each for each in self.get_params(ctx) if not getattr(each, "hidden", False)]
        for heading, kind in (("Arguments", "argument"), ("Options", "option")):
            rows = [_row(each) for each in params if each.param_type_name == kind]
            if rows and heading == "Options" and isinstance(self, CommandGroup):
                self.format_commands(ctx, formatter)
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)

    def format_epilog(self, ctx: Library, formatter: Library) -> None:
        """The examples, as they are typed."""
        if self.epilog:
            with formatter.section("Examples"):
                formatter.write("".join(f"  {line}\n" for line in self.epilog.split("\n")))


def _row(parameter: Library) -> tuple[str, str]:
    """An argument or option with its meaning, its default and its range."""
    if parameter.param_type_name == "argument":
        first = called(parameter)
    else:
        names = [*sorted(parameter.opts, key=len), *parameter.secondary_opts]
        first = ", ".join(names) if parameter.is_flag else f"{', '.join(names)} {value_word(parameter)}"
    notes = [f"default: {parameter.default}"] if _says_default(parameter) else []
    notes += [within] if (within := bounds(parameter)) else []
    notes += ["required"] if parameter.required and parameter.param_type_name == "option" else []
    beside = f" [{'; '.join(notes)}]" if notes else ""
    return first, f"{parameter.help or ''}{beside}"


def _says_default(parameter: Library) -> bool:
    return not getattr(parameter, "is_flag", False) and parameter.default not in (None, "", (), [])


class Command(_Helped, TyperCommand):
    """A command."""

    def make_context(self, info_name: str | None, args: list[str], parent: Library = None, **extra: Library) -> Library:
        """Options that nobody typed come from `sfumato.toml`, where they are named there."""
        under = "" if parent is None or parent.parent is None else f"{parent.info_name} "
        resilient = bool(extra.get("resilient_parsing"))
        extra.setdefault("default_map", defaults.Defaults(f"{under}{info_name}", resilient=resilient))
        return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: Library) -> Library:
        """Say what came from `sfumato.toml`, and do it."""
        defaults.announce(ctx)
        return super().invoke(ctx)


class CommandGroup(_Helped, TyperGroup):
    """Commands under one word; those of the program itself are listed by task."""

    def make_context(self, info_name: str | None, args: list[str], parent: Library = None, **extra: Library) -> Library:
        """As for a command."""
        extra.setdefault("default_map", defaults.Defaults(resilient=bool(extra.get("resilient_parsing"))))
        return super().make_context(info_name, args, parent, **extra)

    def parse_args(self, ctx: Library, args: list[str]) -> list[str]:
        """Without any word the help is the answer, and no error."""
        if not args and self.no_args_is_help and not ctx.resilient_parsing:
            from sfumato.cli.output import put

            put(f"{ctx.get_help()}\n")
            raise typer.Exit(0)
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Library, args: list[str]) -> Library:
        """The command that is named; where there is none, the nearest is."""
        word = args[0] if args else ""
        if word and not word.startswith("-") and word not in self.commands and not ctx.resilient_parsing:
            shown = [name for name, each in self.commands.items() if not each.hidden]
            raise Misuse(f"there is no command {as_name(word)}{nearest(word, shown)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Library, formatter: Library) -> None:
        """Every command with the whole first sentence about it, under its task."""
        by_task: dict[str, list[tuple[str, str]]] = {}
        for name, each in self.commands.items():
            if not each.hidden:
                by_task.setdefault(getattr(each, "rich_help_panel", None) or "Commands", []).append((name, _summary(each.help)))
        for task in _in_order(by_task):
            with formatter.section(task):
                formatter.write_dl(by_task[task])


def _in_order(tasks: Iterable[str]) -> list[str]:
    return sorted(tasks, key=lambda task: TASKS.index(task) if task in TASKS else len(TASKS))


def _summary(text: str | None) -> str:
    """The first paragraph of a help, as one line."""
    return " ".join((text or "").split("\n\n")[0].split())
