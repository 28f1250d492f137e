"""Whether releases can be compared text by text: written alike, and readable for certain.

Texts that differ because they were written otherwise would make releases seem to have less in common than they have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from sfumato.attacks.tables.classes import released_table
from sfumato.attacks.tables.meaning import TO
from sfumato.core.errors import Unsupported
from sfumato.data.masked import TableView
from sfumato.data.schema import Column
from sfumato.data.texts.values import texts


def refuse_unread(views: Sequence[TableView]) -> None:
    """Texts that cannot be read for certain, or that were written otherwise, would make releases seem to have less in common."""
    shown = Counter(name for view in views for name in released_table(view).table.column_names)
    quasi = {name for view in views for name in view.schema.quasi}
    for name in sorted(name for name, releases in shown.items() if releases > 1):
        holding = [view for view in views if name in released_table(view).table.column_names]
        why = _written_otherwise(holding, name)
        if why is None and name in quasi:
            why = next((why for view in holding if (why := _unread(view, name)) is not None), None)
        if why is not None:
            raise Unsupported(f"{why}; assume that everything the releases tell adds up.")


def refuse_untied(views: Sequence[TableView]) -> None:
    """Rows that stayed in an engine are known by their groups alone: what ties records of several releases together and was not
    grouped would make them seem to have less in common."""
    published = [_published(view) for view in views]
    several = Counter(name for names in published for name in names)
    lacking = {
        name
        for view, names in zip(views, published, strict=True)
        for name in names
        if name not in released_table(view).table.column_names
    }
    listed = ", ".join(f"'{name}'" for name in sorted(lacking) if several[name] > 1)
    if listed:
        raise Unsupported(
            f"records could be tied together by {listed}, and rows that stayed in an engine are known by their groups alone; "
            "assume that everything the releases tell adds up."
        )


def _published(view: TableView) -> frozenset[str]:
    """The columns of a release as its certificate names them; those of its rows where nothing is certified."""
    schema = view.certificate.get("schema")
    columns = schema.get("columns") if isinstance(schema, Mapping) else None
    return frozenset(columns if isinstance(columns, Mapping) else released_table(view).table.column_names)


def _written_otherwise(views: Sequence[TableView], name: str) -> str | None:
    """Why the values of a column may have been written differently; releases of earlier versions do not say how they were."""
    written = [_writing(view, name) for view in views]
    if len({each for each in written if each is not None}) > 1:
        return f"the values of column '{name}' had another type, or other codes for missing ones, in one of the releases"
    if None in written and len({_shown_writing(view, name) for view in views}) > 1:
        return (
            f"one of the releases does not say how the values of column '{name}' were written, and by type or missing values "
            "the columns differ"
        )
    return None


def _writing(view: TableView, name: str) -> tuple[object, ...] | None:
    """How the values of a column were written, as the certificate says; None where it does not."""
    writing = view.certificate.get("transparency", {}).get("written_as")
    each = writing.get(name) if isinstance(writing, Mapping) else None
    if isinstance(each, Mapping) and isinstance(each.get("missing", []), list):
        return str(each.get("type")), tuple(sorted(map(str, each.get("missing", [])))), _column(view, name).items
    return None


def _shown_writing(view: TableView, name: str) -> tuple[object, ...]:
    """How the values of a column were written, as far as its rows show it."""
    column = _column(view, name)
    return column.type, column.items, released_table(view).table.column(name).null_count > 0


def _unread(view: TableView, name: str) -> str | None:
    """Why the texts of a column cannot be distinguished by what is published and known."""
    column, kinds = _column(view, name), view.certificate.get("transparency", {}).get("hierarchies")
    if column.items is not None:
        return f"column '{name}' holds sets, whose texts cannot be distinguished with certainty"
    if name in released_table(view).hierarchies:
        return None
    if column.hierarchy is not None and column.hierarchy.dates is not None:
        return f"the dates of column '{name}' can only be compared with known dates: pass a register with --with"
    if isinstance(kinds, Mapping) and kinds.get(name) == "frequency":
        return f"the groups of column '{name}' were learnt from a table that is not published"
    if any(text is not None and TO in text for text in texts(released_table(view).table.column(name).unique())):
        return f"a range of column '{name}' cannot be read"
    return None


def _column(view: TableView, name: str) -> Column:
    return view.schema.columns.get(name, Column())
