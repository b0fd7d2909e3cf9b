"""Which test shows which requirement of the early protocol; makes docs/conformance.md.

    python -m tests.conformance.table            prints it
    python -m tests.conformance.table --write    writes the page

A requirement is shown by a check of `elea.conformance` (which `tests/conformance` runs against a broker and against
broken endpoints), by a test that names it in a marker (`@pytest.mark.requirement("Z18-REL-05")`) or in its docstring,
or by vectors that name it.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from elea.conformance.runner import checks_of
from tests.conformance.requirements import ELSEWHERE, OPEN, REQUIREMENTS

__all__ = ["PAGE", "Shown", "page", "shown"]

PAGE = Path("docs/conformance.md")
NAMED = re.compile(r"Z18-([A-Z]{3})-(\d\d)((?:/\d\d)*)")
VECTORS = {
    "acknack-mask": ("Z18-REL-03", "Z18-REL-04"),
    "commit-mode": ("Z18-DCL-12",),
    "dds-resource": ("Z18-DDS-01", "Z18-DDS-02", "Z18-DDS-03"),
    "match": ("Z18-RES-03", "Z18-RES-04"),
    "selection-parse": ("Z18-SEL-01", "Z18-SEL-02", "Z18-SEL-03", "Z18-RES-01"),
    "window-open": ("Z18-DCL-17",),
    "malformed": ("Z18-ERR-01", "Z18-ERR-03", "Z18-ENC-04"),
    "valid": ("Z18-ENC-01", "Z18-ENC-05", "Z18-VLE-01"),
}
"""What vectors are about that do not say so themselves."""

HEAD = """\
# Conformance to the early protocol

Each requirement of the protocol of 2017 and 2018, and what shows that Elea keeps it. Words in italics are checks of
`elea conformance`, which judge any endpoint by bytes; the rest are tests and vectors of this repository. Made by
`python -m tests.conformance.table --write`; `tests/conformance/test_table.py` fails if it is not up to date.

```
elea broker -l 'tcp/127.0.0.1:7448?dialect=zenoh2018'
elea conformance tcp/127.0.0.1:7448 --dialect zenoh2018 --module core
```

A check passes, fails (with the packets of its conversation) or is not applicable, since the endpoint does not offer
what it is about. They drive endpoints that accept sessions, over tcp, udp, unix sockets and serial lines, in the
modules of the papers: core, discovery, query. `tests/conformance` runs all of them against a broker, which passes, and
against endpoints with faults, on which each of them fails.

"""

Shown = dict[str, list[str]]


def requirements_in(text: str) -> Iterator[str]:
    """The requirements that a text names; `Z18-REL-03/04` is two."""
    for group, first, rest in NAMED.findall(text):
        for number in (first, *rest.split("/")[1:]):
            yield f"Z18-{group}-{number}"


def shown() -> Shown:
    """By requirement: what shows it."""
    found: Shown = {one: [] for one in REQUIREMENTS}
    for check in checks_of():
        for one in check.requirements:
            found[one].append(f"*{check.name}*")
    for test, requirements in [*_marked(), *ELSEWHERE.items()]:
        for one in requirements:
            found[one].append(f"`{test}`")
    for what, count in sorted(_vectors().items()):
        category, one = what
        found[one].append(f"{count} vectors `{category}`")
    return found


def _marked() -> Iterator[tuple[str, tuple[str, ...]]]:
    for path in sorted(Path("tests").rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                text = " ".join(ast.unparse(one) for one in node.decorator_list if "requirement" in ast.unparse(one))
                named = tuple(dict.fromkeys(requirements_in(f"{text} {ast.get_docstring(node) or ''}")))
                if named:
                    yield f"{path.as_posix()}::{node.name}", named


def _vectors() -> Counter[tuple[str, str]]:
    counts: Counter[tuple[str, str]] = Counter()
    for dialect in ("zenoh2018", "xrce2017"):
        for path in sorted(Path("tests/vectors", dialect).glob("*.json")):
            for record in json.loads(path.read_text(encoding="utf-8")):
                category = record.get("category", path.stem)
                named = {*requirements_in(str(record.get("why", ""))), *VECTORS.get(category, ())}
                counts.update((category, one) for one in named if one in REQUIREMENTS)
    return counts


def page() -> str:
    """The page of today."""
    found = shown()
    missing = [one for one, tests in found.items() if not tests]
    counts = f"{len(REQUIREMENTS)} requirements, {len(checks_of())} checks, {len(missing)} requirements without a test."
    lines = [f"{HEAD}{counts}", "", "| requirement | says | shown by |", "|---|---|---|"]
    for one, text in REQUIREMENTS.items():
        tests = found[one] or [f"**nothing yet**: {OPEN.get(one, 'unknown')}"]
        lines.append(f"| {one} | {text.replace('|', '/')} | {'; '.join(tests)} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    if parser.parse_args().write:
        PAGE.write_text(page(), encoding="utf-8")
    else:
        print(page())
    missing = [one for one, tests in shown().items() if not tests]
    print(f"without a test: {', '.join(missing) or 'none'}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
