"""Every example a reader may copy runs: docstrings of the package, Python blocks of README and docs."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import elea

PAGES = [Path("README.md"), *sorted(Path("docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def module_names() -> list[str]:
    found = pkgutil.walk_packages(elea.__path__, "elea.")
    # elea.shm only says that it is not built.
    return sorted(module.name for module in found if not module.name.endswith("__main__") and module.name != "elea.shm")


@pytest.mark.parametrize("name", module_names())
def test_examples_in_docstrings(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name))

    assert result.failed == 0


def blocks() -> list[tuple[Path, str]]:
    return [(page, code) for page in PAGES for code in BLOCK.findall(page.read_text(encoding="utf-8"))]


@pytest.mark.parametrize(("page", "code"), blocks(), ids=lambda value: str(value) if isinstance(value, Path) else "")
def test_examples_in_pages(page: Path, code: str, capsys: pytest.CaptureFixture[str]) -> None:
    promised = re.findall(r"print\(.*# (.*)$", code, re.MULTILINE)

    exec(compile(code, str(page), "exec"), {"__name__": "example"})

    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == len(promised)
    assert all(said.startswith(line) for said, line in zip(promised, printed, strict=True))
