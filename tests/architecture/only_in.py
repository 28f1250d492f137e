"""An import-linter contract: a third-party package may be imported in the named rooms and nowhere else.

The stock contracts want every module they name to exist. This one does not, so that a rule can stand before
its room is furnished and before anything imports the package.
"""

from __future__ import annotations

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output


class OnlyIn(Contract):
    """Direct imports of `packages` are allowed inside `allowed` (a module or anything below it) only."""

    type_name = "only_in"

    packages = fields.ListField(subfield=fields.StringField())
    allowed = fields.ListField(subfield=fields.StringField(), required=False, default=[])

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        faults = []
        for package in self.packages:
            # A standard-library or external module appears under its top name once something imports it.
            for name in sorted(m for m in graph.modules if m == package or m.startswith(f"{package}.")):
                for importer in sorted(graph.find_modules_that_directly_import(name)):
                    if not self._is_allowed(importer):
                        details = graph.get_import_details(importer=importer, imported=name)
                        faults.append((importer, name, [d["line_number"] for d in details]))
        return ContractCheck(kept=not faults, metadata={"faults": faults})

    def render_broken_contract(self, check: ContractCheck) -> None:
        rooms = ", ".join(self.allowed) or "no room"
        for importer, name, lines in check.metadata["faults"]:
            where = ", ".join(str(line) for line in lines)
            output.print_error(f"{importer} imports {name} (line {where}); allowed in: {rooms}")

    def _is_allowed(self, importer: str) -> bool:
        return any(importer == room or importer.startswith(f"{room}.") for room in self.allowed)
