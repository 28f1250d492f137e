"""Fixtures for what the tests need from outside: real servers, a real browser, real data."""

from __future__ import annotations

import functools
import gc
import hashlib
import importlib
import io
import os
import pickle
import pkgutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any, NoReturn

import pytest
from hypothesis import settings

from tests import services
from tests.covering import leave_to_stress

_SMALL_FILE = 1_000_000
UNDER_CI = os.environ.get("CI") == "true"

# Time limits per example would fail on a busy machine; under CI the same examples are drawn every time.
settings.register_profile("sfumato", deadline=None, print_blob=True, derandomize=UNDER_CI, max_examples=20)
settings.register_profile("stress", settings.get_profile("sfumato"), max_examples=300)
settings.load_profile("sfumato")

# Several workers have a core each: threads of linear algebra would wait for one another and burn what the others need.
if "PYTEST_XDIST_WORKER" in os.environ:
    for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(threads, "1")


@pytest.fixture(scope="session", autouse=True)
def engines_of_several_workers_have_a_thread_each() -> Iterator[None]:
    """DuckDB starts a thread for every core with every connection, which takes a third of the time of a small question."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        yield
        return
    import duckdb

    connect = duckdb.connect

    def alone(database: str = ":memory:", read_only: bool = False, config: dict[str, Any] | None = None) -> Any:
        return connect(database, read_only, {"threads": 1, **(config or {})})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(duckdb, "connect", alone)
        yield


def unavailable(reason: str) -> NoReturn:
    """Skip on a person's machine; fail where everything is supposed to run."""
    if UNDER_CI:
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def start(stack: ExitStack, service: AbstractContextManager[Any]) -> Any:
    try:
        return stack.enter_context(service)
    except services.Missing as missing:
        unavailable(str(missing))


@pytest.fixture(scope="session", autouse=True)
def no_key_of_the_user(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Sessions make an owner's key on first use; tests never touch the user's."""
    os.environ.setdefault("SFUMATO_KEY", str(tmp_path_factory.mktemp("keys") / "owner.key"))


@pytest.fixture(scope="session", autouse=True)
def equal_figures_are_drawn_once() -> Iterator[None]:
    """A figure depends on nothing but what it is given, and drawing takes most of the time of saving or verifying a release.
    Whoever tests figures imports them at the top of a file, and draws them each time."""
    from sfumato.report import figures

    with pytest.MonkeyPatch.context() as patch:
        for found in pkgutil.iter_modules(figures.__path__):
            module = importlib.import_module(f"{figures.__name__}.{found.name}")
            own = {name: each for name, each in vars(module).items() if getattr(each, "__module__", "") == module.__name__}
            figures_of = [name for name, each in own.items() if getattr(each, "__annotations__", {}).get("return") == "str"]
            for name in figures_of if found.name in own else ():
                if not name.startswith("_"):
                    draw = _once(own[name])
                    patch.setattr(module, name, _unarranged(module, draw) if found.name in _OF_OWNERS else draw)
        yield


@functools.cache
def _equal_texts_are_measured_once() -> None:
    """How wide a text is follows from its font, and every drawing measures the same hundred texts anew."""
    from matplotlib.backends.backend_agg import RendererAgg
    from matplotlib.textpath import TextToPath

    def once(measure: Callable[..., Any]) -> Callable[..., Any]:
        sizes: dict[object, Any] = {}

        def remembered(drawing: Any, text: str, font: Any, ismath: Any) -> Any:
            key = (text, hash(font), ismath, getattr(drawing, "dpi", None))
            if key not in sizes:
                sizes[key] = measure(drawing, text, font, ismath)
            return sizes[key]

        return remembered

    for kind in (RendererAgg, TextToPath):
        kind.get_text_width_height_descent = once(kind.get_text_width_height_descent)


#: Their figures stand in the cards of owners alone, one of each in every card.
_OF_OWNERS = ("distributions", "tradeoff")


def _unarranged(module: ModuleType, draw: Callable[..., str]) -> Callable[..., str]:
    """A figure with all its marks, whose names are left as they are: to place them so that none hides another takes three more
    drawings, and is looked at in tests/report."""
    from sfumato.report.figures import drawing

    @contextmanager
    def bare_board(*size: float) -> Iterator[drawing.Board]:
        with drawing.board(*size) as drawn:
            drawn.figure.set_layout_engine("none")
            yield drawn

    @functools.wraps(draw)
    def without(*given: Any, **named: Any) -> str:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(drawing, "_keep_ticks_apart", lambda figure: None)
            patch.setattr(module, "board", bare_board)
            patch.setattr(module, "fit_titles", _titles, raising=False)
            patch.setattr(module, "place_labels", lambda *given, **named: None, raising=False)
            return draw(*given, **named)

    return without


def _once(draw: Callable[..., str]) -> Callable[..., str]:
    drawn: dict[bytes, str] = {}

    @functools.wraps(draw)
    def remembered(*given: Any, **named: Any) -> str:
        content = io.BytesIO()
        pickler = pickle.Pickler(content)
        pickler.dispatch_table = {MappingProxyType: lambda mapping: (dict, (dict(mapping),))}
        try:
            pickler.dump((given, named))
        except (pickle.PicklingError, AttributeError, TypeError):  # a law that is a function
            return draw(*given, **named)
        key = content.getvalue()
        if key not in drawn:
            _equal_texts_are_measured_once()
            drawn[key] = draw(*given, **named)
        return drawn[key]

    return remembered


def _titles(axes: Iterable[Any], texts: Iterable[str]) -> None:
    for panel, text in zip(axes, texts, strict=True):
        panel.set_title(text)


@pytest.fixture(scope="session", autouse=True)
def equal_files_are_unpacked_once() -> Iterator[None]:
    """Every verification starts processes that unpack the data file, and their start takes most of its time. Whoever tests the
    unpacking imports `unpack` at the top of a file, and has a process each time."""
    from sfumato.workflow.verifying import limited_reading

    tables: dict[bytes, Any] = {}
    unpack = limited_reading.unpack

    def remembered(path: Path, rows: int | None = None, groups: range | None = None) -> Any:
        if groups is not None or not 0 < path.stat().st_size < _SMALL_FILE or limited_reading.VARIABLE in os.environ:
            return unpack(path, rows, groups)
        key = hashlib.sha256(path.read_bytes()).digest()
        table = tables.get(key)
        if table is None or rows not in (None, table.num_rows):
            table = tables[key] = unpack(path, rows)
        return table

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limited_reading, "unpack", remembered)
        yield


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """URL of a PostgreSQL server that belongs to this process alone and is thrown away afterwards."""
    with ExitStack() as stack:
        yield start(stack, services.postgres())


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """One local Spark session for the whole run; mark tests `spark` so that they share it."""
    with ExitStack() as stack:
        yield start(stack, services.spark_session())


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """A headless Chromium; open a page with `chromium.new_page()` and close it again."""
    with ExitStack() as stack:
        yield start(stack, services.chromium_browser())


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real data that SFUMATO_DATA names."""
    named = os.environ.get("SFUMATO_DATA")
    if not named:
        pytest.skip("real data: set SFUMATO_DATA to the folder that holds it")
    folder = Path(named)
    if not folder.is_dir():
        unavailable("real data: the folder that SFUMATO_DATA names does not exist")
    return folder


def pytest_collection_finish() -> None:
    """Thousands of tests and modules stay to the end: the collector of cycles need not walk over them again and again, nor over
    what a test has just made."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 30)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests of one heavy service on one worker, so that each service starts once; leave to `make stress` what says
    little more than the rest."""
    leave_to_stress(items)
    for item in items:
        for service in ("spark", "e2e"):
            if item.get_closest_marker(service):
                item.add_marker(pytest.mark.xdist_group(service))
                break
