"""`docs/compatibility.md`: the served operations, headers and parameters of Azure.

Lives here: the generation of the page, and of the README's line about it, from the declarations and
the hand-made transcript. Must not live here: Azure's operations (docs/operations/), the served ones
(strongroom.operations). tests/operations/transcript.py reads the tables of operations.

    python -m tests.tidy.compatibility     writes both anew

Unserved headers are found by tests of the code: the service refuses the header, or no field of the
operation reads it. Whether an operation is served is in the transcript's last column, which
test_transcript.py compares with the declaration.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache

from strongroom.errors.core import StorageError
from strongroom.operations.core.endpoint import Endpoint
from strongroom.operations.core.spec import Operation
from strongroom.wire.core.http import Headers
from strongroom.wire.core.query import Query, parse
from tests.operations.transcript import DOCS, Row, rows
from tests.tidy.sources import ROOT
from tests.tidy.test_transcript import ENDPOINTS

PAGE = ROOT / "docs" / "compatibility.md"
README = ROOT / "README.md"
README_LINE = re.compile(r"^.*\(docs/compatibility\.md\)\)\.$", re.MULTILINE)
YES, PARTLY, NO = "yes", "partly", "no"
REFUSED, NO_EFFECT = "501", "no effect"
EVERY = "*"
AS = "as "
RULE = re.compile(r"[BQTF]-[A-Z]{3}-\d\d")
_DATES = ("If-Modified-Since", "If-Unmodified-Since")
_FOUR = ("If-Match", "If-None-Match", *_DATES)
# The words of the transcripts' column `conditions`, as blob.md explains them.
CONDITIONS: dict[str, tuple[str, ...]] = {
    "ims4": _FOUR,
    "dates": _DATES,
    "modified-since": _DATES[:1],
    "unmodified-since": _DATES[1:],
    "tags": ("x-ms-if-tags",),
    "blob-ims4": tuple(f"x-ms-blob-{name.lower()}" for name in _FOUR),
    "source": tuple(f"x-ms-source-{name.lower()}" for name in _FOUR),
    "source-tags": ("x-ms-source-if-tags",),
    "sequence": tuple(f"x-ms-if-sequence-number-{word}" for word in ("le", "lt", "eq")),
    "append": ("x-ms-blob-condition-appendpos", "x-ms-blob-condition-maxsize"),
}
INTRODUCTION = """\
# Compatibility

Made by `python -m tests.tidy.compatibility`, not by hand. The sources are the declarations in
`src/strongroom/operations`, and the transcripts under [operations/](operations/README.md), whose
every rule is cited by a test.

{summary}

- **yes**: as in Azure, as far as the transcripts go.
- **partly**: served, but for what the last column says. `501`: a request that asks for it is
  refused with its name. `no effect`: the request is served as if it had not been sent.
- **no**: every request is refused, mostly with 501 and the name of the operation.

A header's own row is about the operations that are served. [clients.md](clients.md) has recipes
for clients.
"""


@dataclass(frozen=True, slots=True)
class Note:
    """A missing operation, or a missing header, parameter or element of it.

    It has the rule and the words of the page.
    """

    operations: tuple[str, ...]
    names: tuple[str, ...]
    text: str
    rule: str
    words: str

    def is_about(self, operation: str) -> bool:
        return operation in self.operations


@dataclass(frozen=True, slots=True)
class Further:
    """The part of docs/operations/further.md about a service."""

    always: tuple[tuple[str, str], ...]
    headers: tuple[tuple[str, str, str], ...]
    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True)
class Taken:
    """One header or parameter of an Azure operation, and its status here."""

    name: str
    status: str
    missing: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """One operation of Azure, and its status here."""

    name: str
    status: str
    taken: tuple[Taken, ...]
    missing: tuple[str, ...] = ()


def _tables(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each row of each table below a third-level heading, without the two header rows."""
    for section in text.split("\n### ")[1:]:
        title, _, rest = section.partition("\n")
        for line in [line for line in rest.splitlines() if line.startswith("|")][2:]:
            yield title, [cell.strip() for cell in line.strip("|").split("|")]


@cache
def further(title: str) -> Further:
    """The part of further.md headed `title`."""
    text = (DOCS / "further.md").read_text(encoding="utf-8")
    [part] = [part for part in text.split("\n## ") if part.startswith(f"{title}\n")]
    always, headers, notes = [], [], []
    for heading, cells in _tables(part):
        if heading == "Every request":
            always += [(name, cells[1]) for name in cells[0].split(", ")]
        elif heading == "Further headers":
            found = cells[0].split(", ")
            headers += [(one, name, cells[2]) for one in cells[1].split(", ") for name in found]
        else:
            assert heading == "Served in part", heading
            notes.append(Note(tuple(cells[0].split(", ")), tuple(cells[1].split(", ")), *cells[2:]))
    return Further(tuple(always), tuple(headers), tuple(notes))


def title(endpoint: Endpoint) -> str:
    """Return the name of the service in pages."""
    return f"{endpoint.service.value.capitalize()} service"


def is_refused(endpoint: Endpoint, text: str) -> bool:
    """Whether the service answers 501 to every request with this header or `?parameter`,
    `=value`."""
    name, _, value = text.partition("=")
    value = value or "x"
    headers = Headers([] if name.startswith("?") else [(name, value)])
    query: Query = parse(f"{name[1:]}={value}" if name.startswith("?") else "")
    try:
        endpoint.refuse_unserved(headers, query)
    except StorageError:
        return True
    return False


def _reads(operation: Operation, text: str) -> bool:
    name = text.partition("=")[0].lower()
    found = {header.lower() for field in operation.accepts for header in field.headers}
    return name.lstrip("?") in found | {one for field in operation.accepts for one in field.query}


def _listed(row: Row) -> list[str]:
    """Return all headers and parameters of an operation in the tables of the transcript."""
    names = [*row.required, *row.optional]
    names += [name for word in sorted(row.conditions) for name in CONDITIONS[word]]
    names += [] if row.lease in ("none", "operation") else ["x-ms-lease-id"]
    return list(dict.fromkeys(names))


def _taken(endpoint: Endpoint, row: Row, operation: Operation | None) -> Iterator[Taken]:
    more = further(title(endpoint))
    about = {name: note for note in more.notes if note.is_about(row.id) for name in note.names}
    listed = _listed(row)
    for name in listed:
        yield Taken(name, PARTLY, about[name].text) if name in about else Taken(name, YES)
    otherwise = {name: text for one, name, text in more.headers if one == row.id}
    for name in [name for name in otherwise if name not in listed]:
        if name in about:
            yield Taken(name, PARTLY, about[name].text)
        elif row.served:
            yield _asked(endpoint, operation, name, otherwise)
        else:
            yield Taken(name, NO)


def _asked(
    endpoint: Endpoint, operation: Operation | None, name: str, otherwise: Mapping[str, str]
) -> Taken:
    """Return whether a served operation accepts a header; `otherwise` is the last column of
    further.md.

    Raises: ValueError if no source knows.
    """
    text = otherwise.get(name, "-")
    if is_refused(endpoint, name):
        return Taken(name, NO, REFUSED)
    if (operation is not None and _reads(operation, name)) or RULE.fullmatch(text):
        return Taken(name, YES)
    if text == NO_EFFECT:
        return Taken(name, NO, NO_EFFECT)
    if text.startswith(AS):
        return replace(_asked(endpoint, operation, text.removeprefix(AS), otherwise), name=name)
    of = "none" if operation is None else operation.id
    raise ValueError(f"{name} of {of} is served by no field: say in further.md by which rule")


def _entry(endpoint: Endpoint, row: Row) -> Entry:
    operation = {one.id: one for one in endpoint.routes.operations}.get(row.id)
    taken = tuple(_taken(endpoint, row, operation))
    if not row.served:
        return Entry(row.operation, NO, taken)
    by_text: dict[str, list[str]] = defaultdict(list)
    for one in taken:
        if one.status != YES:
            by_text[one.missing].append(one.name)
    for note in further(title(endpoint)).notes:
        if note.is_about(row.id):
            by_text[note.text] += [one for one in note.names if one not in by_text[note.text]]
    missing = tuple(f"{_code(names)}: {text}" for text, names in by_text.items())
    return Entry(row.operation, PARTLY if missing else YES, taken, missing)


@cache
def entries(endpoint: Endpoint) -> dict[str, list[Entry]]:
    """The operations of a service, by the headings of its transcript."""
    service = endpoint.service.value
    text = (DOCS / f"{service}.md").read_text(encoding="utf-8").partition("\n## Rules")[0]
    groups = {heading: group for heading, _, group in _sections(text)}
    return {
        heading: [_entry(endpoint, row) for row in rows(service) if f"| {row.id} |" in group]
        for heading, group in groups.items()
    }


def _sections(text: str) -> Iterator[tuple[str, str, str]]:
    return (section.partition("\n") for section in text.split("\n### ")[1:])


def _all(endpoint: Endpoint) -> list[Entry]:
    return [entry for group in entries(endpoint).values() for entry in group]


def summary() -> str:
    """Return how many operations are served."""
    served = {one: [e for e in _all(one) if e.status != NO] for one in ENDPOINTS}
    parts = [
        f"{len(found)} of {len(_all(one))} for {one.service.value}s"
        for one, found in served.items()
    ]
    count = sum(len(found) for found in served.values())
    in_part = sum(entry.status == PARTLY for found in served.values() for entry in found)
    total = sum(len(_all(one)) for one in ENDPOINTS)
    return (
        f"**{count} of Azure's {total} operations** are served. "
        f"By service: {', '.join(parts)}. "
        f"Of these, {in_part} are served in part."
    )


def readme_line() -> str:
    """The README's summary."""
    return f"{summary()[:-1]} ([which ones](docs/compatibility.md))."


def page() -> str:
    """The whole of docs/compatibility.md."""
    parts = [INTRODUCTION.format(summary=summary())]
    shared = further("All services")
    parts.append("## Every request\n\n" + _headers_table(_always(shared, shared.notes)))
    for endpoint in ENDPOINTS:
        parts.append(f"## {title(endpoint)}\n")
        for heading, group in entries(endpoint).items():
            lines = [
                f"| {one.name} | {one.status} | {_code(_names(one))} | {'; '.join(one.missing)} |"
                for one in group
            ]
            parts.append(f"### {heading}\n\n| operation | here | takes | missing |\n|-|-|-|-|")
            parts[-1] += "\n" + "\n".join(lines) + "\n"
        parts.append("### Headers and parameters\n\n" + _headers_table(_by_header(endpoint)))
    return "\n".join(parts)


def _names(entry: Entry) -> list[str]:
    """Return the served headers and parameters of an operation; none if it is not served."""
    return [] if entry.status == NO else [one.name for one in entry.taken if one.status != NO]


def _always(found: Further, notes: Iterable[Note]) -> dict[str, tuple[str, str]]:
    about = {name: note.text for note in notes if EVERY in note.operations for name in note.names}
    return {name: (PARTLY, about[name]) if name in about else (YES, "") for name, _ in found.always}


def _by_header(endpoint: Endpoint) -> dict[str, tuple[str, str]]:
    """Return the status of each header and parameter, and what is missing."""
    more = further(title(endpoint))
    found = _always(more, more.notes)
    uses: dict[str, list[tuple[Entry, Taken]]] = defaultdict(list)
    values = {name for _, name, _ in more.headers if "=" in name}
    for entry in _all(endpoint):
        for one in entry.taken:
            key = one.name if one.name in values else one.name.partition("=")[0]
            uses[key].append((entry, one))
    for name in sorted(uses, key=lambda name: name.lstrip("?").lower()):
        found[name] = _status(uses[name])
    return found


def _status(uses: list[tuple[Entry, Taken]]) -> tuple[str, str]:
    served = [(entry, one) for entry, one in uses if entry.status != NO]
    if not served:
        return NO, "taken by " + ", ".join(dict.fromkeys(entry.name for entry, _ in uses))
    by_text: dict[str, list[str]] = defaultdict(list)
    for entry, one in served:
        if one.status != YES:
            by_text[one.missing].append(entry.name)
    missing = "; ".join(f"{', '.join(names)}: {text}" for text, names in by_text.items())
    statuses = {one.status for _, one in served}
    return statuses.pop() if len(statuses) == 1 else PARTLY, missing


def _headers_table(found: dict[str, tuple[str, str]]) -> str:
    lines = [f"| {_code([name])} | {here} | {text} |" for name, (here, text) in found.items()]
    return "\n".join(["| header or parameter | here | missing |", "|-|-|-|", *lines]) + "\n"


def _code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}-*`" if name == "x-ms-meta" else f"`{name}`" for name in names)


def write() -> None:
    """Write the page and the README's line."""
    PAGE.write_text(page(), encoding="utf-8")
    text = README.read_text(encoding="utf-8")
    README.write_text(README_LINE.sub(readme_line(), text), encoding="utf-8")


if __name__ == "__main__":
    write()
