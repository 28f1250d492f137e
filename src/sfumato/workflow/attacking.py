"""Attacking a saved release: the attacks that fit what the attacker has, each beside blind guessing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from sfumato.core.errors import InputError, Unsupported, VerificationFailed
from sfumato.core.progress import Progress, silent
from sfumato.core.view import AttackResult, View
from sfumato.data.released import ReleasedTable
from sfumato.data.schema import Column
from sfumato.data.values import texts
from sfumato.workflow import named
from sfumato.workflow.scoring import plain_result
from sfumato.workflow.verify import open_release


def attack_folder(
    folder: str | Path,
    *,
    register: Any = None,
    earlier: Sequence[str | Path] = (),
    only: Sequence[str] = (),
    progress: Progress = silent,
) -> list[dict[str, Any]]:
    """Run the attacks on a release folder.

    Without more, those that need the release alone; with a `register` of people also linkage, with
    `earlier` releases also their intersection. `only` names the attacks to run. Results are counts and
    rates, never values.
    """
    from sfumato.attacks import ON_THE_RELEASE_ALONE

    people = None if register is None else _table(register)
    view = _view(folder, people)
    chosen = list(only) or [
        *_fitting(view, ON_THE_RELEASE_ALONE),
        *(["Linkage"] if people is not None else []),
    ]
    if not only and earlier:
        chosen.append("Intersection")
    results = []
    for position, name in enumerate(chosen):
        progress("attacking", position, len(chosen))
        try:
            result = _run(name, view, people, earlier)
        except Unsupported:
            if only:
                raise
            continue  # an attack that does not fit this release
        results.append({**plain_result(result), "details": dict(result.details)})
    return results


def _run(name: str, view: View, people: pa.Table | None, earlier: Sequence[str | Path]) -> AttackResult:
    attack = named.attack(name)
    if name == "Linkage":
        if people is None:
            raise InputError("linkage needs a register of people: pass it with --with")
        from sfumato.attacks import Register

        return attack.run(view, Register(people))
    if name == "Intersection":
        from sfumato.attacks import OtherReleases

        return attack.run(view, OtherReleases(tuple(_view(other, people) for other in earlier), people))
    return attack.run(view)


def _fitting(view: View, names: Sequence[str]) -> list[str]:
    """Attacks on sensitive attributes make no sense without one."""
    return list(names) if view.schema.sensitive else []


def _view(folder: str | Path, people: pa.Table | None) -> View:
    """The release with what its texts stand for: its published hierarchies over the values the attacker
    knows.
    """
    from sfumato.data import hierarchy_builders

    try:
        with open_release(folder) as opened:
            trees = {}
            for name, column in opened.schema.columns.items():
                values = _known_values(name, column, opened.table, people)
                if values is not None:
                    trees[name] = hierarchy_builders.build(name, column, values, None, opened.schema.folder)
            released = ReleasedTable(opened.table, opened.schema, trees, opened.table.num_rows)
            return View(released, opened.schema, opened.certificate.to_mapping(), Path(folder).name)
    except VerificationFailed as error:
        raise InputError(f"'{folder}' is not a release that can be attacked: {error}") from None


def _known_values(name: str, column: Column, table: pa.Table, people: pa.Table | None) -> list[str | None] | None:
    """The values a hierarchy is built over: those of the register, or the leaves of a file alone; None where
    it takes more.
    """
    if column.hierarchy is None:
        return None
    if column.role == "sensitive":
        return texts(table.column(name).unique())
    if people is not None and name in people.column_names:
        return texts(people.column(name).unique())
    return [] if column.hierarchy.file is not None else None


def _table(source: Any) -> pa.Table:
    from sfumato.engines.sources import read

    return read(source).table()
