"""Dumps before they become clusters: what is in them, what becomes of their pending pods, and large imports.

A small text is read where it was posted. A large one, and whatever the scheduler has to decide, is a worker's: the row
says how far it is, and nothing but the row is kept until it is imported. So it is with a large text for a cluster that
is there.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Final

from django.db import transaction
from django.utils import timezone

from playground.accounts.choices import Role
from playground.accounts.tokens import only_cluster
from playground.clusters import jobs, lanes, wake
from playground.clusters.access import check_role, clusters_of
from playground.clusters.branches import make_change
from playground.clusters.drive.config import checked_release
from playground.clusters.drive.runs import request_run
from playground.clusters.errors import ClusterError, Conflict, InvalidManifest, NotFound
from playground.clusters.lifecycle import create_cluster
from playground.clusters.log.changes import author, written_by
from playground.clusters.log.rows import keep_newest
from playground.clusters.models import Cluster, Draft
from playground.clusters.objects.admission import checked_media_type, read_posted
from playground.clusters.objects.apply import ApplyResult, apply_documents
from playground.engine.dumps import decide_pending, facts_of_dump, fix_of_dump
from scheduler_core.objects.documents import decoded
from scheduler_core.objects.reading import Posted

READ_AT_ONCE_BYTES: Final = 2 * 2**20
"""A text of so many bytes is read in about a second; a larger one by a worker."""
ROWS_PER_KIND: Final = 40
KEPT_PER_PERSON: Final = 5
KEPT_FOR: Final = timedelta(hours=6)
MOST_PROBLEMS: Final = 20


def start_preview(
    *,
    text: str | bytes,
    owner: Any = None,
    release: str = "",
    rebuild_owners: bool = True,
    keep: bool = False,
) -> Draft:
    """Look at a dump for a new cluster; nothing is made of it.

    Parameters
    ----------
    release
        Kubernetes release that decides; empty = the newest one that is proved.
    keep
        Whether row and text stay, so that `commit_draft` can make a cluster of them.

    Returns
    -------
    Draft
        With ``import`` and ``facts`` in its answer where the text is small. It stays open while a worker has
        something to find out; where there is nothing and it is not kept, there is no row.

    Raises
    ------
    ClusterError
        The text cannot be imported, or too much waits already.
    """
    wanted = {
        "release": checked_release(release or None, None)["name"],
        "rebuildOwners": rebuild_owners,
        "keep": keep,
    }
    draft = _draft(text, Draft.PREVIEW, owner, wanted)
    if not is_large(text):
        _read(draft, zlib.decompress(draft.text))
        facts = draft.answer["facts"]
        if not (facts["nodes"] and facts["pending"]):
            draft.state = Draft.State.DONE
            return _put(draft) if keep else draft
    return _put(draft)


def start_import(*, text: str | bytes, owner: Any, name: str, release: str, rebuild_owners: bool) -> Draft:
    """Have a worker make a cluster of a large text.

    Raises
    ------
    Conflict
        Too much waits already.
    """
    wanted = {"name": name, "release": release, "rebuildOwners": rebuild_owners}
    return _put(_draft(text, Draft.IMPORT, owner, wanted))


def import_into(
    *,
    cluster: Cluster,
    text: str | bytes,
    owner: Any = None,
    rebuild_owners: bool = False,
    content_type: str = "application/yaml",
    field_validation: str = "Warn",
    dry_run: bool = False,
) -> Draft:
    """Have a worker apply a large text to a cluster that is there, or say what would come of it.

    Parameters
    ----------
    dry_run
        Only a preview, without facts and decisions.

    Raises
    ------
    Unsupported
    Conflict
        Too much waits already.
    """
    wanted = {
        "into": cluster.public_id,
        "release": cluster.kubernetes_release,
        "rebuildOwners": rebuild_owners,
        "contentType": checked_media_type(content_type),
        "fieldValidation": field_validation,
        "program": author(),
    }
    return _put(_draft(text, Draft.PREVIEW if dry_run else Draft.IMPORT, owner, wanted))


def _draft(text: str | bytes, action: str, owner: Any, wanted: dict[str, Any]) -> Draft:
    raw = text.encode() if isinstance(text, str) else text
    return Draft(owner=owner, text=zlib.compress(raw, 3), action=action, wanted=wanted)


def is_large(text: str | bytes) -> bool:
    """Whether a text takes too long to be read in a request."""
    return len(text) > READ_AT_ONCE_BYTES


def commit_draft(*, public_id: str, owner: Any, name: str, fixed: bool = False) -> Draft:
    """Have a worker make a cluster of a kept draft, by the release that was previewed.

    Parameters
    ----------
    fixed
        Whether the best fix of the preview is made in it.

    Raises
    ------
    NotFound
    Conflict
        The preview is not done, was not kept, has no fix or was committed already; too much waits already.
    """
    draft = get_draft(public_id, owner)
    _check_room(draft)
    if fixed and not (draft.answer.get("fix") or {}).get("best"):
        raise Conflict("the preview has no fix to make", kind="Draft", name=public_id)
    with transaction.atomic():
        rows = Draft.objects.filter(
            pk=draft.pk, action=Draft.PREVIEW, state=Draft.State.DONE, wanted__keep=True
        )
        wanted = {**draft.wanted, "name": name, "fixed": fixed}
        told = {"doing": "", "done": 0, "total": 0, "touched": timezone.now()}
        if not rows.update(action=Draft.IMPORT, state=Draft.State.QUEUED, wanted=wanted, **told):
            raise Conflict(_why_it_stays(draft), kind="Draft", name=public_id)
        wake.on_commit("work_on_draft", draft_id=draft.pk)
    draft.refresh_from_db()
    return draft


def _why_it_stays(draft: Draft) -> str:
    """Why no cluster is made of a draft."""
    if draft.action == Draft.IMPORT:
        return "it was committed already"
    if draft.is_open:
        return "the preview is under way; wait until it is done"
    if draft.state != Draft.State.DONE:
        return f"the preview is {draft.state}: nothing can be made of it"
    return "only its preview was kept: post the text to import it"


def _put(draft: Draft) -> Draft:
    if draft.is_open:
        _check_room(draft)
    with transaction.atomic():
        draft.save()
        keep_newest(Draft.objects.filter(owner=draft.owner, action=Draft.PREVIEW), KEPT_PER_PERSON)
        if draft.is_open:
            wake.on_commit("work_on_draft", draft_id=draft.pk)
    return draft


def _check_room(draft: Draft) -> None:
    jobs.check_room(lanes.ASK, jobs.person_of(draft.owner.pk if draft.owner else None))


def get_draft(public_id: str, owner: Any) -> Draft:
    """A person's own draft, if they see the cluster it goes into where that is there already.

    Raises
    ------
    NotFound
    """
    found = Draft.objects.filter(public_id=public_id, owner=owner).first()
    into = found.wanted.get("into", "") if found is not None else ""
    hidden = only_cluster(owner) not in ("", into)
    if into and not hidden:
        there = Cluster.objects.filter(public_id=into)
        hidden = there.exclude(pk__in=clusters_of(owner).values("pk")).exists()
    if found is None or hidden:
        raise NotFound(f'preview "{public_id}" not found', kind="Draft", name=public_id)
    return found


def cancel_draft(*, public_id: str, owner: Any) -> None:
    """No more is wanted; a worker that is at it stops within a second. Of one that is gone or done nothing changes."""
    rows = Draft.objects.filter(public_id=public_id, owner=owner, state__in=Draft.OPEN)
    rows.update(state=Draft.State.CANCELLED, doing="", touched=timezone.now())


def discard_draft(*, public_id: str, owner: Any) -> None:
    """The draft is gone, its text too, and a worker that is at it stops; a cluster that was made of it stays.

    Raises
    ------
    NotFound
    """
    get_draft(public_id, owner).delete()


def text_of(draft: Draft) -> str:
    """What was posted."""
    return decoded(zlib.decompress(bytes(draft.text)), "replace")


def drop_old(*, now: Any = None) -> int:
    """Delete the drafts of some hours ago; how many."""
    moment = (now or timezone.now()) - KEPT_FOR
    return Draft.objects.filter(touched__lt=moment).delete()[0]


# ---- the worker's side


def work_on(*, draft_id: int) -> None:
    """Read, decide or import what a draft holds. Safe to run twice: a draft that is not open is left alone."""
    draft = Draft.objects.select_related("owner").filter(pk=draft_id, state__in=Draft.OPEN).first()
    if draft is None:
        return
    try:
        if draft.action == Draft.IMPORT:
            _import(draft)
        else:
            _preview(draft)
    except ClusterError as error:
        draft.end(Draft.State.FAILED, problems=problems_of(error), error=error.message)


def _preview(draft: Draft) -> None:
    report = jobs.reporting(draft)
    report(0, 0, "reading")
    manifests = _read(draft, zlib.decompress(bytes(draft.text)))
    facts = draft.answer.get("facts")
    draft.change(answer=draft.answer)
    if facts and facts["nodes"] and facts["pending"]:
        report(0, facts["pending"], "deciding pending pods")
        draft.answer["decided"] = decide_pending(
            manifests, release=draft.wanted["release"], n_pending=facts["pending"], report=report
        )
        draft.change(answer=draft.answer)
        draft.answer["fix"] = fix_of_dump(manifests, release=draft.wanted["release"], report=report)
    text = draft.text if draft.wanted.get("keep") else b""
    draft.end(Draft.State.DONE, answer=draft.answer, text=text)


class _NotWanted(Exception):
    """It was cancelled meanwhile."""


def _import(draft: Draft) -> None:
    report = jobs.reporting(draft)
    wanted = draft.wanted
    if "into" in wanted:
        report(0, 0, "reading")
        try:
            with written_by(wanted["program"]):
                _apply(draft, _cluster_of(draft), zlib.decompress(bytes(draft.text)), report)
        except _NotWanted:
            pass
        return
    report(0, 0, "making the cluster")
    # Reading a large text takes as long as the rest, and others want to write meanwhile.
    posted = _posted(draft, zlib.decompress(bytes(draft.text)))
    with transaction.atomic():
        if not _rows(draft).select_for_update().exists():
            return
        cluster = create_cluster(
            name=wanted["name"], kubernetes_release=wanted["release"] or None, owner=draft.owner
        )
        result = _applied(draft, cluster, posted)
        if wanted.get("fixed"):
            make_change(cluster, draft.answer["fix"]["best"]["change"])
            request_run(cluster=cluster, until="idle")
        _end(draft, cluster, result)


def _apply(draft: Draft, cluster: Cluster, text: bytes, report: Callable[[int, int, str], Any]) -> None:
    """Write it; the row says so in the same transaction, so that it is done once."""

    def ended(result: ApplyResult) -> None:
        if not _rows(draft).select_for_update().exists():
            raise _NotWanted
        _end(draft, cluster, result)

    posted = _posted(draft, text)
    report(0, len(posted), "writing")
    _applied(draft, cluster, posted, also=ended)


def _end(draft: Draft, cluster: Cluster, result: ApplyResult) -> None:
    answer = {**draft.answer, "import": summary_of(result)}
    draft.end(Draft.State.DONE, made=cluster, answer=answer, text=b"")


def _cluster_of(draft: Draft) -> Cluster:
    """The cluster a text goes into.

    Raises
    ------
    NotFound
        It was deleted meanwhile, or is not its owner's to see any more.
    Forbidden
        Its owner may not change it any more.
    """
    name = draft.wanted["into"]
    cluster = clusters_of(draft.owner).filter(public_id=name).first()
    if cluster is None:
        raise NotFound("the cluster was deleted meanwhile", kind="Cluster", name=name)
    check_role(cluster, draft.owner, Role.EDITOR)
    return cluster


def _rows(draft: Draft) -> Any:
    return Draft.objects.filter(pk=draft.pk, state__in=Draft.OPEN)


def _read(draft: Draft, text: bytes) -> list[dict[str, Any]]:
    """Fill in what the text alone tells, and for a cluster that is there what changes; its admitted objects."""
    cluster = _cluster_of(draft) if "into" in draft.wanted else None
    result = _applied(draft, cluster, _posted(draft, text), dry_run=True)
    draft.answer = {"import": summary_of(result)}
    if cluster is None:
        facts = facts_of_dump(result.manifests)
        draft.answer |= {"nodes": facts.pop("uses"), "facts": facts}
    return result.manifests


def _posted(draft: Draft, text: bytes) -> list[Posted]:
    return read_posted(text, draft.wanted.get("contentType", "application/yaml"))


def _applied(draft: Draft, cluster: Cluster | None, posted: list[Posted], **how: Any) -> ApplyResult:
    """Apply a draft's objects with the options its request named."""
    wanted = draft.wanted
    return apply_documents(
        cluster=cluster,
        posted=posted,
        rebuild_owners=wanted["rebuildOwners"],
        field_validation=wanted.get("fieldValidation", "Warn"),
        **how,
    )


def summary_of(result: ApplyResult) -> dict[str, Any]:
    """What an import does, as plain data.

    Returns
    -------
    dict
        ``kinds`` (kind, count, changes: verb, name, detail of the first `ROWS_PER_KIND`), ``ignored`` (the same without
        a kind), ``counts`` (create, update, unchanged, ignored), ``leftOut`` (fields no kind has), ``missingOwners``
        and ``rebuilt`` (kind -> how many).
    """
    by_kind: dict[str, list[dict[str, str]]] = {}
    for verb, objects in (
        ("create", result.created),
        ("update", result.configured),
        ("unchanged", result.unchanged),
    ):
        for item in objects:
            where = f"{item.namespace}/{item.name}" if item.namespace else item.name
            changes = result.changes.get(f"{item.kind} {where}", ())
            words = "; ".join(f"{path}: {_short(old)} → {_short(new)}" for path, old, new in changes[:4])
            row = {"verb": verb, "name": where, "detail": item.note or words}
            by_kind.setdefault(item.kind, []).append(row)
    ignored = [
        {"verb": "ignored", "name": f"{item.kind} {item.name}", "detail": item.reason}
        for item in result.ignored
    ]
    return {
        "kinds": [
            {"kind": kind, "count": len(rows), "changes": rows[:ROWS_PER_KIND]}
            for kind, rows in by_kind.items()
        ],
        "ignored": {"kind": "Ignored", "count": len(ignored), "changes": ignored[:ROWS_PER_KIND]},
        "counts": {
            "create": len(result.created),
            "update": len(result.configured),
            "unchanged": len(result.unchanged),
            "ignored": len(result.ignored),
        },
        "leftOut": list(result.warnings[:ROWS_PER_KIND]),
        "missingOwners": dict(result.missing_owners),
        "rebuilt": dict(result.rebuilt),
    }


def _short(value: object) -> str:
    text = "none" if value is None else str(value)
    return text if len(text) <= 40 else f"{text[:39]}…"


def problems_of(error: ClusterError) -> list[dict[str, Any]]:
    """An error and its causes as plain data; `error_from` makes one of it again."""
    causes = error.causes if isinstance(error, InvalidManifest) else ()
    return [
        {
            "message": one.message,
            "path": getattr(one, "path", "") or getattr(one, "field", ""),
            "line": getattr(one, "line", None),
            "kind": getattr(one, "kind", ""),
            "name": getattr(one, "name", ""),
        }
        for one in (error, *causes)
    ][:MOST_PROBLEMS]


def error_from(problems: list[Mapping[str, Any]]) -> InvalidManifest:
    """The error a worker met."""
    return InvalidManifest.of([InvalidManifest(**problem) for problem in problems])


jobs.KINDS["draft_id"] = jobs.of_rows(Draft, "work_on_draft", "draft_id")
