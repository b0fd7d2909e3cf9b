"""`python -m tests.vectors DIR…`: runs every vector below the folders (default: this one).

`--router tcp/HOST:PORT` puts vectors of router behaviour to a router that runs already, instead of one of ours.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

from tests.vectors.behaviour import router_at
from tests.vectors.cases import Case, files_below
from tests.vectors.kinds import cases_of

SHOWN_FAILURES = 10


def main(arguments: list[str]) -> int:
    """Prints a line per file, the failures, and the sum; 1 if anything failed."""
    if arguments[:1] == ["--router"]:
        router_at.locator = arguments[1]
        arguments = arguments[2:]
    places = [Path(argument) for argument in arguments] or [Path(__file__).parent]
    absent = [place for place in places if not place.exists()]
    if absent:
        print(f"{absent[0]}: no such file or folder", file=sys.stderr)
        return 2
    total: Counter[str] = Counter()
    files = list(files_below(places))
    width = max((len(_title(path)) for path in files), default=0)
    for path in files:
        total += _run_file(path, width)
    print()
    print(f"{total['passed']} passed, {total['failed']} failed, {total['skipped']} skipped")
    return 1 if total["failed"] else 0


def _title(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


def _run_file(path: Path, width: int) -> Counter[str]:
    count: Counter[str] = Counter()
    failures: list[str] = []
    reasons: dict[str, None] = {}
    for case in cases_of(path):
        result, text = _run_case(case)
        count[result] += 1
        if result == "failed":
            failures.append(f"    {case.name}: {text}")
        elif result == "skipped":
            reasons[text] = None
    parts = [f"{count[result]} {result}" for result in ("passed", "failed", "skipped") if count[result]]
    because = f" ({'; '.join(reasons)})" if reasons else ""
    print(f"{_title(path).ljust(width)}   {', '.join(parts) or 'no records'}{because}")
    for failure in failures[:SHOWN_FAILURES]:
        print(failure)
    if len(failures) > SHOWN_FAILURES:
        print(f"    and {len(failures) - SHOWN_FAILURES} more")
    return count


def _run_case(case: Case) -> tuple[str, str]:
    if case.check is None:
        return "skipped", case.reason
    try:
        case.check()
    except Exception as error:  # noqa: BLE001 - whatever happens in one case, the others are to run
        text = str(error) or "no text"
        return "failed", text if isinstance(error, AssertionError) else f"{type(error).__name__}: {text}"
    return "passed", ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
