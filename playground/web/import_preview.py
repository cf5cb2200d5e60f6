"""What an import will do, grouped by kind for the preview."""

from collections.abc import Sequence
from dataclasses import dataclass

from playground.clusters.services.apply import ApplyResult

ROWS_PER_KIND = 40


@dataclass(frozen=True)
class Change:
    """One object of the preview."""

    verb: str
    css: str
    icon: str
    name: str
    detail: str


@dataclass(frozen=True)
class KindGroup:
    """All objects of one kind; `n_more` of them are not listed."""

    kind: str
    count: int
    changes: tuple[Change, ...]

    @property
    def n_more(self) -> int:
        """How many are not listed."""
        return self.count - len(self.changes)


@dataclass(frozen=True)
class ImportPreview:
    """Counts and groups of one dry run."""

    groups: tuple[KindGroup, ...]
    ignored: KindGroup | None
    n_create: int
    n_update: int
    n_unchanged: int
    n_ignored: int


_DRAWN = {
    "create": ("ok", "plus"),
    "update": ("acc", "edit"),
    "unchanged": ("", "dash"),
    "ignored": ("", "no"),
}


def view_import(result: ApplyResult) -> ImportPreview:
    """Group what `apply_documents` said it would do."""
    by_kind: dict[str, list[Change]] = {}
    for verb, objects in (
        ("create", result.created),
        ("update", result.configured),
        ("unchanged", result.unchanged),
    ):
        for item in objects:
            where = f"{item.namespace}/{item.name}" if item.namespace else item.name
            changes = result.changes.get(f"{item.kind} {where}", ())
            words = "; ".join(f"{path}: {_short(old)} → {_short(new)}" for path, old, new in changes[:4])
            by_kind.setdefault(item.kind, []).append(_change(verb, where, item.note or words))
    ignored = [_change("ignored", f"{item.kind} {item.name}", item.reason) for item in result.ignored]
    return ImportPreview(
        groups=tuple(_group(kind, changes) for kind, changes in by_kind.items()),
        ignored=_group("Ignored", ignored) if ignored else None,
        n_create=len(result.created),
        n_update=len(result.configured),
        n_unchanged=len(result.unchanged),
        n_ignored=len(result.ignored),
    )


def _change(verb: str, name: str, detail: str) -> Change:
    css, icon = _DRAWN[verb]
    return Change(verb, css, icon, name, detail)


def _group(kind: str, changes: Sequence[Change]) -> KindGroup:
    return KindGroup(kind, len(changes), tuple(changes[:ROWS_PER_KIND]))


def _short(value: object) -> str:
    text = "none" if value is None else str(value)
    return text if len(text) <= 40 else f"{text[:39]}…"
