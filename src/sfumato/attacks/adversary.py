"""The two kinds of adversaries: those who look at a published table, and those who look at numbers, models and ratings.

Both can be described by a file, as a game: what was published, what is known, and the tables and releases that lie beside it.
What a file says is read into values here; none of them is repeated in a message.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeGuard, TypeVar

from sfumato.core import registry
from sfumato.core.declared import build, require
from sfumato.core.errors import InputError, ParameterError, all_at_once
from sfumato.core.plain_data import Plain
from sfumato.core.texts import text_of
from sfumato.core.view import Attack, AttackResult, View
from sfumato.data.masked import Masked, TableView
from sfumato.data.microdata import ReleasedTable
from sfumato.data.schema import Schema

if TYPE_CHECKING:
    import pyarrow as pa

#: Quasi-identifiers of one person, in their text form.
Target = Mapping[str, str | None]

V = TypeVar("V", bound=View[object, object])
K = TypeVar("K")
R = TypeVar("R")


class Beside(Protocol):
    """What lies beside a file that describes an attack."""

    def table(self, place: str, what: str, most_cells: int, otherwise: str = "") -> pa.Table:
        """The table of that name, of `what` and of no more cells; `otherwise` is a remark for those who name something else."""

    def release(self, published: object, target: Target) -> TableView:
        """The release that `{"release": "out"}` names, its texts read over the values of the target."""


class Player(Attack[V, K], Generic[V, K]):
    """An adversary whose game a file can describe."""

    @abstractmethod
    def game(self, published: object, entries: Mapping[str, object], beside: Beside) -> tuple[V, K | None]:
        """The view and the knowledge that a file describes."""

    def play(self, published: object, entries: Mapping[str, object], beside: Beside) -> AttackResult:
        """Attack what a file says was published, with what it says is known."""
        view, knowledge = self.game(published, entries, beside)
        return self.run(view, knowledge)


class TableAttack(Player[TableView, K], Generic[K]):
    """An adversary who looks at a published table."""

    def game(self, published: object, entries: Mapping[str, object], beside: Beside) -> tuple[TableView, K | None]:
        """The view and the knowledge that a file describes."""
        knowledge = self.knowledge_from(entries)
        return beside.release(published, target_in(entries)), knowledge


class OutputAttack(Player[View[R, object], K], Generic[R, K]):
    """An adversary who looks at numbers, a model or ratings that were published, and no table."""

    #: What it knows, as a class that a mapping describes.
    knows: ClassVar[type[Any]]

    def published_from(self, published: object) -> R:
        """What was published, from the JSON of a file: of any shape, until it is read. By default as it stands there."""
        return published  # type: ignore[return-value]

    def knowledge_from(self, entries: Mapping[str, object]) -> K | None:
        """What it knows, with every fault at once."""
        return build(self.knows, entries)  # type: ignore[no-any-return]

    def game(self, published: object, entries: Mapping[str, object], beside: Beside) -> tuple[View[R, object], K | None]:
        """The view and the knowledge that a file describes."""
        return View(self.published_from(published), Schema(), name="outputs"), self.knowledge_from(entries)


def is_table(view: View[object, object]) -> TypeGuard[View[pa.Table | ReleasedTable, Schema]]:
    """Whether the view shows a table whose rows are read as they stand."""
    import pyarrow as pa

    return isinstance(view.result, (pa.Table, ReleasedTable)) and isinstance(view.schema, Schema)


def is_masked(view: View[object, object]) -> bool:
    """Whether a mask has changed the table, as far as that is published."""
    method, facts = view.certificate.get("method"), view.certificate.get("transparency", {})
    by_name = isinstance(method, Mapping) and registry.has("mask", method.get("name"))
    return by_name or isinstance(view.result, Masked) or "masked_columns" in facts or "steps" in facts


def only(entries: Mapping[str, object], *names: str) -> None:
    """Refuse entries that go by other names."""
    unknown = [name[:60] for name in entries if name not in names][:10]
    all_at_once(ParameterError, "knowledge", [f"'{name}' is not among {', '.join(names)}" for name in unknown])


def mapping(value: object, what: str) -> Plain:
    """An object of JSON."""
    if not isinstance(value, dict):
        raise InputError(f"{what} must be an object")
    return value


def mapped(entries: Mapping[str, object], name: str, form: str) -> Plain:
    """The entry of that name, an object of the `form` that the message says; empty where there is none."""
    value = entries.get(name, {})
    if not isinstance(value, dict):
        raise ParameterError(f"knowledge: {name} must be an object from {form}")
    require(all(writable(key) for key in value), f"knowledge: {name} names something in characters that do not exist")
    return value


def target_in(entries: Mapping[str, object]) -> Target:
    """Who is attacked: raw quasi-identifiers as texts; empty where nobody is named."""
    target = mapped(entries, "target", "quasi-identifiers to values")
    return {name: text(value, "target") for name, value in target.items()}


def text(value: object, what: str) -> str | None:
    """One value in its text form."""
    single = value is None or isinstance(value, (str, int, float))
    require(single and writable(str(value)), f"knowledge: {what} holds single values: texts or numbers")
    return text_of(value)


def writable(name: str) -> bool:
    """JSON can spell halves of characters, which no table holds and no file is called."""
    return not any("\ud800" <= character <= "\udfff" for character in name)
