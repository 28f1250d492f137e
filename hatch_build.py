"""Puts the software bill of materials into every wheel, where PEP 770 looks for it: `*.dist-info/sboms/`."""

from __future__ import annotations

import importlib.util
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class SbomHook(BuildHookInterface):  # type: ignore[type-arg]
    """Writes the bill before the wheel is packed, and removes it afterwards."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Make the bill, unless the wheel only points to the sources."""
        if version == "editable":
            return
        root = Path(self.root)
        place = importlib.util.spec_from_file_location("sbom", root / "tools" / "sbom.py")
        assert place is not None and place.loader is not None  # noqa: S101  (the file is part of the sources)
        tool = importlib.util.module_from_spec(place)
        place.loader.exec_module(tool)
        self._folder = tempfile.TemporaryDirectory(prefix="sfumato-sbom-")
        build_data["sbom_files"].append(str(tool.write(Path(self._folder.name), root)))

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the file the wheel has a copy of."""
        if version != "editable":
            self._folder.cleanup()
