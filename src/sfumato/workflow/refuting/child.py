"""The child process of `workflow.refuting.refute`: imports the function, tests it, and answers in JSON."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from sfumato.core.errors import InputError, ParameterError, SfumatoError
from sfumato.core.plain_data import Plain
from sfumato.core.stopping import end_with_parent

_EVERY = 0.2


def main(config: Plain) -> None:
    """Answer one request and leave; nothing that the function registered for the end of the process runs."""
    os.set_inheritable(config["pipe"], False)
    end_with_parent()
    pid = os.getpid()
    try:
        answer: dict[str, Any] = {"result": _tested(config)}
    except SfumatoError as error:
        answer = {"error": str(error)}
    except MemoryError:
        answer = {"error": "the function ran out of memory. Give smaller databases, or more --memory."}
    except BaseException as error:  # whatever foreign code throws ends here, without its message
        answer = {"error": f"the function raised {type(error).__name__}, so nothing was tested"}
    if os.getpid() == pid:
        os.write(config["pipe"], json.dumps(answer).encode() + b"\n")
    os._exit(0)


def _tested(config: Mapping[str, Any]) -> dict[str, Any]:
    from sfumato.dp.refute.tester import refute

    module = _module(config["module"])
    function = _named(module, config["function"])
    pair = _pair(config, module)
    last_report = [time.monotonic()]

    def progress(phase: str, done: int, total: int) -> None:
        if time.monotonic() - last_report[0] > _EVERY:
            last_report[0] = time.monotonic()
            os.write(config["pipe"], json.dumps({"progress": done}).encode() + b"\n")

    refutation = refute(
        _guarded(function),
        pair,
        config["epsilon"],
        config["delta"],
        samples=config["samples"],
        seconds=config["seconds"],
        vectorised=config["vectorised"],
        progress=progress,
    )
    return refutation.to_mapping()


def _module(name: str) -> ModuleType:
    try:
        if not name.endswith(".py"):
            return importlib.import_module(name)
        return _from_file(name)
    except ModuleNotFoundError as error:
        raise InputError(f"there is no module named '{error.name}'. Start in the folder that holds it.") from None
    except (Exception, SystemExit) as error:
        raise InputError(f"the module raised {type(error).__name__} while it was imported; import it once to see why") from None


def _from_file(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(Path(name).stem, name)
    if spec is None or spec.loader is None or not Path(name).is_file():
        raise InputError("the file of the function does not exist")
    sys.path.insert(0, str(Path(name).parent))
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _named(module: ModuleType, function: str) -> Any:
    member: Any = module
    for part in function.split("."):
        member = getattr(member, part, None)
    member = getattr(member, "answer", member)
    if not callable(member):
        raise ParameterError("the module has no function of that name")
    return member


def _pair(config: Mapping[str, Any], module: ModuleType) -> Any:
    if "neighbours" in config:
        return config["neighbours"]
    holder = _from_file(config["neighbours_file"]) if "neighbours_file" in config else module
    pair = getattr(holder, "NEIGHBOURS", None)
    if isinstance(pair, Mapping):
        pair = pair.get(config["function"])
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise ParameterError(
            "neighbours are missing: give --neighbours '[[1, 2, 3], [1, 2]]', or set NEIGHBOURS = (first, second) in the module"
        )
    return pair


def _guarded(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that forks comes back twice: the copy ends here."""
    pid = os.getpid()

    def call(*arguments: Any) -> Any:
        try:
            return function(*arguments)
        finally:
            if os.getpid() != pid:
                os._exit(0)

    return call


if __name__ == "__main__":
    main(json.loads(sys.stdin.buffer.read()))
