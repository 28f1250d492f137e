"""Write the API reference into docs/reference/, from the stubs of public names, their docstrings and their declared parameters.

A name is on a page because a stub lists it, and the page says what the code says: the first words of a docstring, the parameters
with the ranges that errors name (`core.declared`), the methods. `tests/docs/test_reference.py` refuses pages that are not as this
script writes them.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import sfumato
from sfumato.core import registry
from sfumato.core.declared import Declared, declarations
from sfumato.core.errors import SfumatoError, SfumatoWarning

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "sfumato"
REFERENCE = ROOT / "docs" / "reference"

_LINE = re.compile(r"^from ([\w.]+) import (\w+) as \2\b")
_CODE = re.compile(r"(`[^`]*`)")
_LONGEST_DEFAULT = 60


class Name(NamedTuple):
    """One public name: how it is written, and what it stands for."""

    written: str
    value: Any

    @property
    def short(self) -> str:
        """The name without what stands before it."""
        return self.written.rpartition(".")[2]

    @property
    def kind(self) -> str:
        """What it is, in one word."""
        if not inspect.isclass(self.value):
            return "function" if callable(self.value) else "value"
        kinds = (kind for kind in registry.kinds() if self.value in registry.every(kind).values())
        return next(kinds, "error" if issubclass(self.value, SfumatoError) else "class")


class Page(NamedTuple):
    """One page: its file, title, what it says first, and its parts, each with a heading and names."""

    file: str
    title: str
    lead: str
    parts: list[tuple[str, list[Name]]]


def stub_parts(stub: Path, written: str) -> dict[str, list[Name]]:
    """The names of a stub by the comment above them."""
    parts: dict[str, list[Name]] = {}
    part = ""
    for line in stub.read_text("utf-8").splitlines():
        if line.startswith("# "):
            part = line.removeprefix("# ")
        elif (found := _LINE.match(line)) and not inspect.ismodule(value := _value(found[1], found[2])):
            parts.setdefault(part, []).append(Name(f"{written}.{found[2]}", value))
    return parts


def room(name: str, heading: str = "") -> list[tuple[str, list[Name]]]:
    """The parts of a room, without what the whole package lists as well."""
    above = set(sfumato.__all__)
    listed = stub_parts(SOURCE.joinpath(*name.split(".")) / "__init__.pyi", f"sf.{name}")
    parts = [
        (part or heading or f"`sf.{name}`", [each for each in names if each.short not in above]) for part, names in listed.items()
    ]
    return [(part[:1].upper() + part[1:], names) for part, names in parts if names]


def errors(root: type[Exception]) -> list[Name]:
    """The tree of errors, or of notices, from the root down."""
    from sfumato.core import errors as module

    classes = [value for value in vars(module).values() if inspect.isclass(value) and issubclass(value, root)]
    return [Name(f"sf.errors.{each.__name__}", each) for each in classes]


def pages() -> list[Page]:
    """All pages of the reference, in the order of a reader's way: verbs, what they take and give, the methods, the rooms."""
    top = stub_parts(SOURCE / "__init__.pyi", "sf")
    measures = [Name(f'sf.find("measure", "{key}")', cls) for key, cls in sorted(registry.every("measure").items())]
    return [
        Page("verbs.md", "Verbs", "What you do with a table, a release or a claim.", [("Verbs", top["verbs"])]),
        Page(
            "data.md",
            "Tables, schemas, releases, sessions",
            "What verbs take and return, and the room `sf.data` with hierarchies, readers and writers.",
            [("Values", top["data"]), *room("data")],
        ),
        Page(
            "guarantees.md",
            "Guarantees",
            "What can be promised. [Guarantees](../guarantees.md) says what each protects against, "
            "[accounting](../dp/accounting.md) how privacy losses add up.",
            [("Guarantees", top["guarantees"])],
        ),
        Page(
            "searches.md",
            "Searches",
            "How a table is generalised: `sf.protect(people, guarantees, search)`. "
            "[Which method when](../methods/choosing.md) compares them.",
            [("Searches", top["table searches"])],
        ),
        Page(
            "masks.md",
            "Masks",
            "How values are changed: `sf.mask(people, mask)`, or `mask.apply(people)` for the outcome alone. "
            "[Masking](../masking/index.md) says which to take.",
            [
                ("Masks", top["masks"]),
                ("In pipelines of scikit-learn", top["transformers of scikit-learn"]),
                *room("masking", "What masks are made of"),
            ],
        ),
        Page(
            "rules.md",
            "Itemsets and rules",
            "Mining baskets and hiding what is derived from them: `sf.rules.hide(baskets, itemsets, support)`. "
            "[Hiding rules](../hiding-rules.md) says which method to take.",
            [*room("rules")],
        ),
        Page(
            "attacks.md",
            "Attacks",
            "What an adversary does and knows: `sf.attack(folder)`, or `attack.run(view, knowledge)`. "
            "[Attacks](../attacks.md) explains them.",
            [*room("attacks", "Attacks and knowledge")],
        ),
        Page(
            "measures.md",
            "Measures",
            "Measures of risk and loss, by the key that recipes and commands use: "
            '`sf.find("measure", key)`. [Measures](../measures.md) lists them by what they say.',
            [("By key", measures), *room("measures.guarantees", "The plain verifier")],
        ),
        Page(
            "privacy.md",
            "Differential privacy",
            "The room `sf.dp`: mechanisms, sensitivities, accounting, private algorithms, refutation. "
            "[Questions in SQL](../dp/sql.md) is where most people begin.",
            [*room("dp"), *room("dp.sensitivity", "How much one unit changes a query")],
        ),
        Page(
            "tables.md",
            "Aggregate tables",
            "The room `sf.tables`: cubes, rules of sensitivity, blanks, rounding. "
            "[What a cell gives away](../tables/sensitivity.md) is where to begin.",
            [*room("tables")],
        ),
        Page(
            "rooms.md",
            "Ledger, cards, keys, errors",
            "The other rooms, and every error.",
            [
                *room("ledger", "`sf.ledger`"),
                *room("report", "`sf.report`"),
                *room("workflow", "`sf.workflow`"),
                *room("wire", "`sf.wire`"),
                *room("lessons", "`sf.lessons`"),
                ("Errors", errors(SfumatoError)),
                ("Notices", errors(SfumatoWarning)),
            ],
        ),
    ]


def written() -> dict[str, str]:
    """Every file of the reference with its text."""
    listed = pages()
    return {"index.md": "\n".join(_index(listed)), **{page.file: "\n".join(_page(page)) for page in listed}}


def _index(listed: list[Page]) -> Iterator[str]:
    yield "# Python reference"
    yield ""
    yield "Every public name with its meaning in one line, generated from the code. `sf` stands for `import sfumato as sf`; names"
    yield "load on first use. Parameters are listed with the range that a value must lie in, in the words that an error uses. Any"
    yield "other value is refused when the object is made, and all faults are named at once."
    yield ""
    yield "| Page | What is there |"
    yield "|---|---|"
    for page in listed:
        yield f"| [{page.title}]({page.file}) | {_cell(page.lead.partition('. ')[0].removesuffix('.'))} |"
    for page in listed:
        yield ""
        yield f"## {page.title}"
        yield ""
        yield "| Name | What it is |"
        yield "|---|---|"
        taken = _titles(page)
        for _, names in page.parts:
            for name in names:
                yield f"| [`{name.written}`]({page.file}#{_slug(taken[name])}) | {_cell(meaning(name))} |"
    yield ""


def _page(page: Page) -> Iterator[str]:
    yield f"# {page.title}"
    yield ""
    yield f"{page.lead} Written by `tools/reference.py`; [all names](index.md)."
    titles = _titles(page)
    for heading, names in page.parts:
        yield ""
        yield f"## {heading}"
        for name in names:
            yield ""
            yield f"### {titles[name]}"
            yield ""
            yield from _entry(name)
    yield ""


def _titles(page: Page) -> dict[Name, str]:
    """The heading of each name on a page; names that differ in capitals alone say what they are."""
    names = [name for _, part in page.parts for name in part]
    shorts = [_title(name).casefold() for name in names]
    return {
        name: _title(name)
        if shorts.count(_title(name).casefold()) == 1 or inspect.isclass(name.value)
        else f"{_title(name)} ({name.kind})"
        for name in names
    }


def _title(name: Name) -> str:
    found = re.fullmatch(r'sf\.find\("measure", "(\w+)"\)', name.written)
    return found[1] if found else name.short


def _entry(name: Name) -> Iterator[str]:
    value = name.value
    signature = _signature(value)
    if signature is not None:
        yield "```text"
        yield from textwrap.wrap(f"{_called(name)}{signature}", 100, subsequent_indent="    ", break_on_hyphens=False)
        yield "```"
        yield ""
    if inspect.isclass(value) and name.kind not in ("class", "error"):
        yield f"*{name.kind.capitalize()}.* {_first(value)}"
    else:
        yield _first(value)
    rest = _paragraphs(value)[1:]
    for paragraph in rest:
        yield ""
        yield from paragraph
    yield from _parameters(value)
    yield from _members(name)


def _called(name: Name) -> str:
    return name.value.__name__ if name.written.startswith("sf.find(") else name.written


def _parameters(value: Any) -> Iterator[str]:
    """Declared parameters with their ranges, in the order of the call; of a function the types."""
    if inspect.isclass(value) and issubclass(value, Declared) and dataclasses.is_dataclass(value):
        order = list(inspect.signature(value).parameters)
        if rows := sorted(declarations(value), key=lambda each: order.index(each.name)):
            yield ""
            yield "| Parameter | Must be | Default | Meaning |"
            yield "|---|---|---|---|"
            for each in rows:
                default = "*needed*" if each.required else _code(_default(each.default))
                yield f"| `{each.name}` | {_cell(each.words)} | {default} | {_cell(each.meaning)} |"
    elif inspect.isfunction(value):
        typed = [each for each in inspect.signature(value).parameters.values() if isinstance(each.annotation, str)]
        if typed:
            yield ""
            yield "| Parameter | Type | Default |"
            yield "|---|---|---|"
            for given in typed:
                default = "*needed*" if given.default is given.empty else _code(_default(given.default))
                shown = "any" if given.kind is given.VAR_KEYWORD or given.kind is given.VAR_POSITIONAL else default
                yield f"| `{given.name}` | {_cell(_prose(given.annotation))} | {shown} |"


def _members(name: Name) -> Iterator[str]:
    """Methods and properties with their first words: of a class its own, of a method of some kind what its kind does not have."""
    value = name.value
    if not inspect.isclass(value) or issubclass(value, SfumatoError):
        return
    rows = []
    homes = [home for home in value.__mro__ if home.__module__.startswith("sfumato.") and home is not Declared]
    for home in homes if name.kind == "class" else homes[:1]:
        for member, thing in vars(home).items():
            plain = thing.__func__ if isinstance(thing, (classmethod, staticmethod)) else thing
            plain = plain.fget if isinstance(plain, property) else getattr(plain, "func", plain)
            if (
                member.startswith("_")
                or not (inspect.isfunction(plain) and plain.__doc__)
                or any(member == row[0] for row in rows)
            ):
                continue
            shown = f"{member}{_signature(plain, own=True)}" if inspect.isfunction(getattr(thing, "__func__", thing)) else member
            rows.append((member, shown, _first(plain)))
    if rows:
        yield ""
        yield "| Member | What it does |"
        yield "|---|---|"
        for _, shown, words in rows:
            yield f"| {_called_with(shown)} | {_cell(words)} |"


def meaning(name: Name) -> str:
    """What a name is, in one sentence."""
    text = _first(name.value)
    found = re.match(r"(.+?[.:])(?= [A-Z`]|$)", text)
    return (found[1] if found else text).rstrip(":.")


def _first(value: Any) -> str:
    if isinstance(value, tuple):
        return f"{len(value)} `{type(value[0]).__name__}`s."
    paragraphs = _paragraphs(value)
    return " ".join(paragraphs[0]) if paragraphs else ""


def _paragraphs(value: Any) -> list[list[str]]:
    """The paragraphs of a docstring; examples become blocks that no page runs a second time."""
    own = value.__doc__ if inspect.isclass(value) or callable(value) else ""
    text = inspect.cleandoc(own or "")
    paragraphs: list[list[str]] = []
    for block in re.split(r"\n\s*\n", text):
        lines = block.splitlines()
        if not block.strip():
            continue
        if ">>>" in block:
            before = lines[: next(i for i, line in enumerate(lines) if ">>>" in line)]
            if before:
                paragraphs.append([_prose(line) for line in before])
            paragraphs.append(["```pycon", *textwrap.dedent("\n".join(lines[len(before) :])).splitlines(), "```"])
        elif all(line.startswith("    ") for line in lines):
            paragraphs.append(["```text", *textwrap.dedent(block).splitlines(), "```"])
        else:
            paragraphs.append([_prose(line) for line in lines])
    return paragraphs


def _prose(line: str) -> str:
    """A line of a docstring as Markdown: what is no code means itself, and pages of the documentation are links."""
    parts = _CODE.split(line)
    for i in range(0, len(parts), 2):
        plain = re.sub(r"([*_\[\]])", r"\\\1", parts[i]).replace("<", "&lt;")
        parts[i] = re.sub(r"docs/((?:[\w-]+/)?[\w-]+)\.md", lambda page: f"[{page[1]}](../{page[1]}.md)", plain)
    return "".join(parts)


def _cell(text: str) -> str:
    return re.sub(r"\\?\|", r"\\|", text) or " "


def _code(text: str) -> str:
    return f"`{_cell(text)}`" if "`" not in text else _cell(text)


def _called_with(shown: str) -> str:
    """The name as code, what it is called with as text, which a narrow page can break."""
    name, bracket, arguments = shown.partition("(")
    return f"`{name}`{_cell(_prose(bracket + arguments))}"


def _default(value: object) -> str:
    shown = "{}" if isinstance(value, Mapping) and not value else repr(value)
    if " at 0x" in shown or len(shown) > _LONGEST_DEFAULT:
        return "…"
    return shown


def _signature(value: Any, own: bool = False) -> str | None:
    """How it is called, without types: those are in the stubs, and ranges in the table."""
    if not callable(value) or (inspect.isclass(value) and issubclass(value, SfumatoError)):
        return None
    try:
        parameters = list(inspect.signature(value).parameters.values())
    except (TypeError, ValueError):
        return None
    if own and parameters and parameters[0].name in ("self", "cls"):
        parameters = parameters[1:]
    return f"({', '.join(_listed(parameters))})"


def _listed(parameters: Iterable[inspect.Parameter]) -> Iterator[str]:
    named = False
    for each in parameters:
        if each.name.startswith("_"):
            continue
        if each.kind is each.KEYWORD_ONLY and not named:
            named = True
            yield "*"
        named = named or each.kind is each.VAR_POSITIONAL
        stars = {each.VAR_POSITIONAL: "*", each.VAR_KEYWORD: "**"}.get(each.kind, "")
        default = each.default
        missing = default is each.empty or type(default).__name__ == "_HAS_DEFAULT_FACTORY_CLASS"
        yield f"{stars}{each.name}" + ("" if missing else f"={_default(default)}")


def _slug(title: str) -> str:
    return re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", title).strip().lower())


def _value(module: str, name: str) -> Any:
    home = importlib.import_module(module)
    return getattr(home, name) if hasattr(home, name) else importlib.import_module(f"{module}.{name}")


def main() -> None:
    """Write every page, and remove those that are none."""
    REFERENCE.mkdir(parents=True, exist_ok=True)
    texts = written()
    for old in REFERENCE.glob("*.md"):
        if old.name not in texts:
            old.unlink()
    for file, text in texts.items():
        (REFERENCE / file).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
