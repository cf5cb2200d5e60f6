"""`kube-scheduler-playground follow`: what the schedulers of a live cluster decide, each decision beside ours.

It lists and watches with the official client and asks for nothing else: `get`, `list` and `watch` are all the rights
it needs (`--print-rights`). Of objects only what shapes placement is looked at; secrets and config maps are not read.
The exit status is 0 when no decision differs from ours, 1 when some do, 2 when the cluster cannot be followed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import queue
import random
import secrets
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

import urllib3
import yaml
from kubernetes import client, config
from kubernetes.config.config_exception import ConfigException

from playground.remote.instance import Instance, Refused
from playground.remote.mirror import Mirror
from scheduler_core.cli import incident as words
from scheduler_core.cli import manifests, release_options
from scheduler_core.errors import InvalidObject
from scheduler_core.incident.changes import is_followed
from scheduler_core.incident.sources import read_incident
from scheduler_core.incident.verdicts import UNLIKE, JudgedDecision, LiveIncident
from scheduler_core.incident.watched import ADDED, DELETED, LISTED, MODIFIED, NOT_KNOWN, WatchRecord
from scheduler_core.objects.fields import format_time_ns
from scheduler_core.objects.reading import group_of
from scheduler_core.releases import DEFAULT, Release, release_nearest
from scheduler_core.scenario.errors import ScenarioError
from scheduler_core.scenario.redact import Renaming, bare
from scheduler_core.schema.tables import kinds, table_beside

AS_OURS, DIFFERS, UNUSABLE = 0, 1, 2
PAGE: Final = 500
"""Objects of one answer."""
HELD: Final = 5_000
"""Changes that wait to be taken; with more the watches stop reading."""
CONNECTIONS: Final = 32
"""One for each kind, and some."""
WATCH_S: Final = 290
SILENCE_S: Final = 90.0
"""A watch that says nothing for so long is begun again where it was: a bookmark comes sooner."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 30.0
BATCH_S: Final = 0.5
"""Changes of so long are put in the order of their versions: each kind has a watch."""
MISSED_S: Final = 30.0
"""So long the others wait for a watch that broke off: a decision is judged on what of each kind was there."""
KEY_BYTES: Final = 16
_GONE, _FORBIDDEN, _NOT_FOUND, _TIMEOUT = 410, 403, 404, 504
TOO_NEW: Final = 3
"""So many refusals with a timeout in a row: the cluster may have gone back to versions of before, as from a backup."""
PAUSED: Final = "judging was paused"
_CONFIG: Final[Any] = config
"""It has no types."""
NONSENSE: Final = (ValueError, TypeError, KeyError, AttributeError)
"""What reading something else than an API server's answer, or a kubeconfig, ends in."""
_FIRST_KINDS: Final = ("Node", "Pod")

Line = dict[str, Any]


class CannotFollow(Exception):
    """The cluster cannot be followed; why."""


class _Refused(Exception):
    def __init__(self, status: int, said: str) -> None:
        super().__init__(said)
        self.status = status


def served_kinds() -> Iterator[tuple[str, list[Mapping[str, Any]]]]:
    """Kinds that are followed with their rows of the schema, the best version first; events last."""
    rows: dict[str, list[Mapping[str, Any]]] = {}
    for row in kinds():
        if is_followed(row):
            rows.setdefault(row["kind"], []).append(row)
    for name in sorted(rows, key=lambda name: name not in _FIRST_KINDS):
        newest = sorted(rows[name], key=itemgetter("apiVersion"), reverse=True)
        # v1 before v1beta2, v1beta1 and v1alpha3
        yield name, sorted(newest, key=lambda row: "a" in row["apiVersion"].rpartition("/")[2])
    yield "Event", [row for row in kinds() if (row["kind"], row["apiVersion"]) == ("Event", "v1")]


def rights() -> dict[str, Any]:
    """The ClusterRole that following needs."""
    groups: dict[str, set[str]] = {}
    for _, rows in served_kinds():
        for row in rows:
            groups.setdefault(group_of(row["apiVersion"]), set()).add(row["plural"])
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "scheduling-follower"},
        "rules": [
            {"apiGroups": [group], "resources": sorted(names), "verbs": ["get", "list", "watch"]}
            for group, names in sorted(groups.items())
        ],
    }


# ---- reading


class Follower:
    """Lists and watches of a cluster, as lines of `incident.watched` in the order of their versions.

    Parameters
    ----------
    api
        The official client.
    namespace
        Of objects that live in one; all where it is empty.
    """

    def __init__(self, api: client.ApiClient, namespace: str = "") -> None:
        self._api, self._namespace = api, namespace
        self._queue: queue.Queue[tuple[float, Line]] = queue.Queue(HELD)
        self._kept: list[tuple[float, Line]] = []
        self._newest = 0
        self._stopped = threading.Event()
        self._watched: list[_Kind] = []
        self.is_interrupted = False
        self.n_relisted = 0

    def begin(self) -> Iterator[Line]:
        """What is there, kind by kind, and what cannot be known; the watches begin.

        Raises
        ------
        CannotFollow
            Nodes or pods cannot be listed.
        """
        if self._namespace:
            yield _not_known("Pod", f"of other namespaces than {self._namespace}: what room they take")
        for kind, rows in served_kinds():
            watched = _Kind(self._api, kind, rows, self._namespace)
            try:
                yield from watched.listed()
            except _Refused as error:
                if kind in _FIRST_KINDS or error.status not in (_FORBIDDEN, _NOT_FOUND):
                    raise CannotFollow(f"{watched.plural} cannot be listed: {error}") from None
                if error.status == _FORBIDDEN:
                    yield _not_known(kind, f"(no right to list {watched.plural})", rows[0])
                continue
            except urllib3.exceptions.HTTPError as error:
                raise CannotFollow(f"the cluster cannot be reached: {error}") from None
            except NONSENSE as error:
                said = f"what answers is no API server ({error!r})"
                raise CannotFollow(f"{watched.plural} cannot be listed: {said}") from None
            self._watched.append(watched)
        for watched in self._watched:
            watched.changed_s = time.monotonic()
            threading.Thread(
                target=self._watch, args=(watched,), name=f"follow {watched.kind}", daemon=True
            ).start()

    @property
    def kinds(self) -> list[str]:
        """Those that were listed."""
        return [watched.kind for watched in self._watched]

    def batch(self) -> list[Line]:
        """What came within `BATCH_S`, or until watches that broke off are back, in the order of its versions.

        Where something was missed it is not known what came before it: all have a gap then, as has what comes late.
        """
        came, end = self._kept, time.monotonic() + BATCH_S
        while len(came) < HELD:
            with contextlib.suppress(queue.Empty):
                came.append(self._queue.get(timeout=max(0.0, end - time.monotonic())))
                continue
            if not came or self.is_interrupted or not any(one.is_awaited for one in self._watched):
                break
            end = time.monotonic() + BATCH_S / 4
        until_s = math.inf if len(came) >= HELD or self.is_interrupted else time.monotonic() - BATCH_S / 4
        self._kept = [entry for entry in came if entry[0] > until_s]
        lines = sorted((line for at_s, line in came if at_s <= until_s), key=_version)
        is_gap = any("gap" in line for line in lines) or any(one.is_missing for one in self._watched)
        before, comparable = 0 if is_gap else self._newest, [line for line in lines if not _is_apart(line)]
        self._newest = max((before, *map(_version, comparable)))
        return [
            line | {"gap": True} if is_gap or (_version(line) < before and not _is_apart(line)) else line
            for line in lines
        ]

    def interrupted(self, *signal: object) -> None:
        """Take no further batch; interrupted once more, end at once.

        Raises
        ------
        KeyboardInterrupt
        """
        if self.is_interrupted:
            raise KeyboardInterrupt
        self.is_interrupted = True

    def end(self) -> None:
        """Stop the watches."""
        self._stopped.set()

    def _watch(self, watched: _Kind) -> None:
        pause_s, n_timeouts = FIRST_PAUSE_S, 0
        while not self._stopped.is_set():
            try:
                if watched.is_cut_off:
                    self.n_relisted += 1
                    self._put_all(watched.listed(again=True))
                for line in watched.changes():
                    pause_s, n_timeouts = FIRST_PAUSE_S, 0
                    self._put_all((line,))
                    if self._stopped.is_set():
                        return
            except _Refused as error:
                if error.status in (_FORBIDDEN, _NOT_FOUND):
                    watched.is_over = True
                    gap = _not_known(watched.kind, f"({watched.plural} can be watched no more)", watched.row)
                    self._put_all((gap,))
                    return
                n_timeouts += error.status == _TIMEOUT
                watched.is_cut_off |= error.status == _GONE or n_timeouts >= TOO_NEW
            except (urllib3.exceptions.HTTPError, OSError, *NONSENSE):
                pass  # cut in the middle: it goes on where it was
            self._stopped.wait(pause_s * random.uniform(0.5, 1.0))
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    def _put_all(self, lines: Iterator[Line] | Sequence[Line]) -> None:
        for line in lines:
            while not self._stopped.is_set():
                with contextlib.suppress(queue.Full):
                    self._queue.put((time.monotonic(), line), timeout=0.5)
                    break


class _Kind:
    """One kind: what of it is there, by version, and up to which version it is known."""

    def __init__(
        self, api: client.ApiClient, kind: str, rows: Sequence[Mapping[str, Any]], namespace: str
    ) -> None:
        self._api, self.kind, self._rows = api, kind, list(rows)
        self.plural = str(rows[0]["plural"])
        self._namespace = namespace
        self._there: dict[tuple[str, str], str] = {}
        self._since = ""
        self._is_watched = False
        self.is_cut_off = self.is_over = False
        self.changed_s = 0.0
        """When the watch began, or broke off."""

    @property
    def is_awaited(self) -> bool:
        """Whether changes may be there already that its watch has not said."""
        return not self.is_over and time.monotonic() - self.changed_s < (
            BATCH_S if self._is_watched else MISSED_S
        )

    @property
    def is_missing(self) -> bool:
        """Whether it is not waited for any more."""
        return not (self.is_over or self._is_watched or self.is_awaited)

    @property
    def row(self) -> Mapping[str, Any]:
        """Of the schema."""
        return self._rows[0]

    def listed(self, *, again: bool = False) -> Iterator[Line]:
        """All there are; again, what came, changed or went since they were listed or watched last.

        Raises
        ------
        _Refused
        """
        seen: dict[tuple[str, str], str] = {}
        query = {"limit": str(PAGE)}
        while True:
            page = self._page(query)
            for item in page.get("items") or ():
                place, version = _place(item)
                known = self._there.get(place)
                seen[place] = self._there[place] = version
                if not again:
                    yield self._line(LISTED, item)
                elif known != version:
                    yield self._line(ADDED if known is None else MODIFIED, item) | {"gap": True}
            meta = page.get("metadata") or {}
            if not meta.get("continue"):
                break
            query["continue"] = str(meta["continue"])
        since = str(meta.get("resourceVersion") or "")
        for namespace, name in [place for place in self._there if place not in seen]:
            gone = {"namespace": namespace, "name": name, "resourceVersion": since}
            yield self._line(DELETED, {"metadata": gone}) | {"gap": True}
        self._there, self._since = seen, since
        self.is_cut_off = False

    def changes(self) -> Iterator[Line]:
        """One watch from where it is known to.

        Raises
        ------
        _Refused
            410 where the versions since are gone.
        """
        query = {
            "watch": "1", "allowWatchBookmarks": "true", "resourceVersion": self._since,
            "timeoutSeconds": str(WATCH_S),
        }  # fmt: skip
        with _closed(self._get(query, SILENCE_S)) as answer, self._watching():
            for text in _lines(answer):
                event = json.loads(text)
                what, item = event["type"], event["object"]
                if what == "ERROR":
                    raise _Refused(int(item.get("code") or 0), str(item.get("message") or item))
                place, version = _place(item)
                if what != "BOOKMARK":
                    known = self._there.get(place)
                    if what == DELETED:
                        if known is not None and not _is_older(version, known):
                            del self._there[place]
                            yield self._line(DELETED, item)
                    elif known is None or (known != version and not _is_older(version, known)):
                        self._there[place] = version
                        yield self._line(what if known is None else MODIFIED, item)
                if not _is_older(version, self._since):
                    self._since = version

    @contextlib.contextmanager
    def _watching(self) -> Iterator[None]:
        self._is_watched, self.changed_s = True, time.monotonic()
        try:
            yield
        finally:
            self._is_watched, self.changed_s = False, time.monotonic()

    def _line(self, what: str, item: Mapping[str, Any]) -> Line:
        whole = {"apiVersion": self._rows[0]["apiVersion"], "kind": self.kind, **item}
        manifest = bare(whole)
        if self.kind == "Event":
            manifest |= {key: item[key] for key in ("message", "note") if key in item}
        return {"at": format_time_ns(time.time_ns()), "type": what, "object": manifest}

    def _page(self, query: Mapping[str, str]) -> Mapping[str, Any]:
        """A page of a list, of the first version that is served."""
        while True:
            try:
                with _closed(self._get(query, SILENCE_S)) as answer:
                    found: Mapping[str, Any] = json.loads(answer.read())
                    return found
            except _Refused as error:
                if error.status != _NOT_FOUND or len(self._rows) == 1:
                    raise
                del self._rows[0]

    def _get(self, query: Mapping[str, str], timeout_s: float) -> urllib3.BaseHTTPResponse:
        """The answer to a GET: the only verb there is."""
        row = self._rows[0]
        version = str(row["apiVersion"])
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        inside = f"/namespaces/{self._namespace}" if self._namespace and row["namespaced"] else ""
        query = {**query, "fieldSelector": "reason=FailedScheduling"} if self.kind == "Event" else query
        asked = self._api.param_serialize(
            "GET", f"{root}{inside}/{row['plural']}", query_params=[*query.items()],
            header_params={"Accept": "application/json"}, auth_settings=["BearerToken"],
        )  # fmt: skip
        answer: urllib3.BaseHTTPResponse = self._api.call_api(
            *asked, _request_timeout=(SILENCE_S, timeout_s)
        ).response
        if answer.status == 200:
            return answer
        with _closed(answer):
            text = answer.read(2000).decode(errors="replace")
        with contextlib.suppress(ValueError, KeyError, TypeError):
            text = json.loads(text)["message"]
        raise _Refused(answer.status, f"{answer.status} {text}".strip())


@contextlib.contextmanager
def _closed(answer: urllib3.BaseHTTPResponse) -> Iterator[urllib3.BaseHTTPResponse]:
    try:
        yield answer
    finally:
        answer.close()


def _lines(answer: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    """Whole lines of an answer as they come; what a cut leaves of one is no line."""
    held = b""
    for chunk in answer.stream(amt=None):
        *whole, held = (held + chunk).split(b"\n")
        yield from filter(None, whole)


def _is_older(version: str, than: str) -> bool:
    """Whether a version is before another one: a page of a list may be newer than the list, and a watch repeats it."""
    return version.isdigit() and than.isdigit() and int(version) < int(than)


def _place(item: Mapping[str, Any]) -> tuple[tuple[str, str], str]:
    meta = item.get("metadata") or {}
    return (str(meta.get("namespace") or ""), str(meta.get("name") or "")), str(
        meta.get("resourceVersion") or ""
    )


def _version(line: Line) -> int:
    """What numbers a change; versions are opaque, but those of one cluster have grown in every release."""
    text = str(((line.get("object") or {}).get("metadata") or {}).get("resourceVersion") or "")
    return int(text) if text.isdigit() else 0


def _is_apart(line: Line) -> bool:
    """Whether its version is none of the others': an API server may keep events elsewhere."""
    return bool(line["type"] == NOT_KNOWN or line["object"]["kind"] == "Event")


def _not_known(kind: str, what: str, row: Mapping[str, Any] | None = None) -> Line:
    """That something of a kind cannot be read; `row` of the schema where a right to it would help."""
    line = {"at": format_time_ns(time.time_ns()), "type": NOT_KNOWN, "what": f"{kind} {what}", "kind": kind}
    if row is not None:
        line |= {"resource": str(row["plural"]), "group": group_of(row["apiVersion"])}
    return line


# ---- the command


class FollowReport:
    """What is said and kept of a cluster that is followed."""

    def __init__(self, options: argparse.Namespace, live: LiveIncident, record: WatchRecord | None) -> None:
        self._options, self._live, self._record = options, live, record
        self._renaming = None
        if options.redact or options.redact_key:
            self._renaming = Renaming(_redaction_key(_key_file(options)))
        self.counts: Counter[str] = Counter(dict.fromkeys(words.VERDICT_WORDS, 0))
        self.mirror: Mirror | None = None

    def take(self, line: Line) -> None:
        """The next line."""
        if self._renaming is not None and "object" in line:
            line = {**line, "object": self._renamed(line["object"])}
        try:
            if self._record is not None:
                self._record.write(line)
        except InvalidObject as error:
            if line["type"] == LISTED:
                raise
            print(f"not recorded any more: {error}", file=sys.stderr)
            self._record = None
        if self.mirror is not None:
            self.mirror.change(line)
        if line["type"] == NOT_KNOWN:
            self.say({"notKnown": line["what"]}, f"Not known: {line['what']}.")
        self._live.take(line)

    def judged(self, now_ns: int) -> None:
        """Say what was decided and is settled by now."""
        is_paused = self.mirror is not None and self.mirror.is_paused
        for one in self._live.judge(now_ns, unknown=PAUSED if is_paused else ""):
            self.counts[one.found.verdict] += 1
            if self.mirror is not None:
                self.mirror.decision(one)
            self.say(one.document(), _sentence(one))
        if self._record is not None:
            self._record.flush()
        if self.mirror is not None:
            self.mirror.send()

    def end(self) -> None:
        """Say how many there were."""
        missing = {what: n for what, n in self._live.incident.missing.items() if n}
        self.say({"counts": dict(self.counts), "notKnown": missing}, words.counted(self.counts))

    def _renamed(self, manifest: Mapping[str, Any]) -> Mapping[str, Any]:
        assert self._renaming is not None
        if manifest["kind"] != "Event":
            return self._renaming.of(manifest)
        about = manifest.get("involvedObject") or {}
        named = {
            "kind": "Pod",
            "namespace": self._renaming.name("Namespace", str(about.get("namespace") or "")),
            "name": self._renaming.name("Pod", str(about.get("name") or "")),
            "uid": self._renaming.name("uid", str(about.get("uid") or "")),
        }
        return {"kind": "Event", "metadata": {}, "reason": manifest.get("reason"), "involvedObject": named}

    def say(self, document: Mapping[str, Any], sentence: str) -> None:
        """One or the other, as was asked for."""
        is_json = self._options.output == "json"
        print(json.dumps(document, ensure_ascii=False) if is_json else sentence, flush=True)


def _key_file(options: argparse.Namespace) -> str | None:
    """Where the secret of new names is kept: a mirror is found again by the same names, and never has the secret."""
    if options.redact_key or options.into is None:
        return str(options.redact_key) if options.redact_key else None
    home = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config", "kube-scheduler-playground")
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    print(f"new names go by the secret in {home / 'redact-key'} (--redact-key)", file=sys.stderr)
    return str(home / "redact-key")


def _redaction_key(name: str | None) -> bytes:
    """The secret of a file, or a new one, which is written to the file if one is named.

    Raises
    ------
    InvalidObject, OSError
    """
    key = secrets.token_hex(KEY_BYTES).encode()
    if name is None:
        return key
    with contextlib.suppress(FileExistsError), open(name, "xb", opener=_private) as file:
        file.write(key)
    key = Path(name).read_bytes().strip()
    if len(key) < KEY_BYTES:
        raise InvalidObject("--redact-key", name, f"has {len(key)} bytes; a secret needs {KEY_BYTES}")
    return key


def _private(name: str, flags: int) -> int:
    return os.open(name, flags, 0o600)


def _sentence(one: JudgedDecision) -> str:
    if one.found.verdict in UNLIKE:
        return words.line_of(one)
    return f"{words.decision_of(one)}: {words.VERDICT_WORDS[one.found.verdict]}"


def main(arguments: Sequence[str]) -> int:
    """Follow until the time is over, or it is interrupted."""
    parser = argparse.ArgumentParser("kube-scheduler-playground follow", description=__doc__)
    types = {"float": float, "int": int}
    for option in table_beside(__package__, "follow.yaml"):
        given: dict[str, Any] = {key: value for key, value in option.items() if key not in ("name", "type")}
        if "type" in option:
            given["type"] = types[option["type"]]
        parser.add_argument(*option["name"].split(), **given)
    options = parser.parse_args(arguments)
    if options.print_rights:
        print(json.dumps(rights(), indent=1))
        return AS_OURS
    try:
        return _follow(options)
    except (CannotFollow, InvalidObject, ConfigException, OSError, Refused) as error:
        print(f"error: {error}", file=sys.stderr)
    except ScenarioError as error:
        print("\n".join(f"error: {problem}" for problem in error.problems), file=sys.stderr)
    return UNUSABLE


def _mirror_of(
    options: argparse.Namespace,
    host: str,
    by: Mapping[str, Any] | None,
    release: Release,
    report: FollowReport,
    follower: Follower,
) -> Mirror:
    """The cluster of a playground that mirrors what is read.

    Raises
    ------
    Refused
    """
    is_redacted = bool(options.redact or options.redact_key)
    source = options.context or _current_context(options.kubeconfig) or host
    name = options.cluster or ("followed" if is_redacted else source)
    switched = dict(release.switched)
    made_with = {
        "kubernetesRelease": release.name,
        "featureGates": switched,
        **({"config": by} if by else {}),
    }
    mirror = Mirror(
        Instance(options.into or None, options.token), name[:100], name if is_redacted else source,
        redacted=is_redacted, made_with=made_with, say=report.say,
        is_over=lambda: follower.is_interrupted,
    )  # fmt: skip
    report.say({"page": mirror.page}, f"It is shown at {mirror.page}")
    return mirror


def _current_context(kubeconfig: str | None) -> str:
    try:
        return str(_CONFIG.list_kube_config_contexts(kubeconfig)[1]["name"])
    except (ConfigException, KeyError, TypeError):
        return ""


def _release_of(api: client.ApiClient) -> Release:
    """The release of a cluster, or the nearest that is known; the default one where it does not say."""
    version = ""
    with contextlib.suppress(urllib3.exceptions.HTTPError, ValueError, TypeError, KeyError):
        asked = api.param_serialize("GET", "/version", auth_settings=["BearerToken"])
        with _closed(api.call_api(*asked, _request_timeout=(SILENCE_S, SILENCE_S)).response) as answer:
            version = str(json.loads(answer.read())["gitVersion"])[:60]
    release = release_nearest(version)
    said = f"it is {version}" if version else "its version cannot be read"
    print(f"judged by the rules of release {release.name}: {said} (--release)", file=sys.stderr)
    return release


def _follow(options: argparse.Namespace) -> int:
    configuration = client.Configuration()
    try:
        _CONFIG.load_kube_config(options.kubeconfig, options.context, configuration)
    except ConfigException:
        if options.kubeconfig or options.context:
            raise
        _CONFIG.load_incluster_config(configuration)
    except (yaml.YAMLError, *NONSENSE) as error:
        raise CannotFollow(f"{options.kubeconfig or 'the kubeconfig'} cannot be read: {error!r}") from None
    configuration.connection_pool_maxsize = CONNECTIONS
    api = client.ApiClient(configuration)
    default = DEFAULT if options.release else _release_of(api)
    release = release_options.named(options.release, options.feature_gates, default)
    by = None
    if options.config:
        by = manifests.read_configuration(options.config, release, convert=options.convert_config)
    live = LiveIncident(config=by, release=release, seed=options.seed)
    follower = Follower(api, options.namespace or "")
    with contextlib.ExitStack() as held:
        held.callback(follower.end)
        name = options.record
        if options.scenario and not name:
            name = str(Path(held.enter_context(tempfile.TemporaryDirectory()), "record.jsonl"))
        record = None
        if name:
            if not 0 < options.record_size < math.inf:
                raise InvalidObject("--record-size", options.record_size, "is no size in MB")
            record = WatchRecord(Path(name), int(options.record_size * 10**6))
            held.callback(record.close)
        report = FollowReport(options, live, record)
        if options.into is not None:
            report.mirror = _mirror_of(options, configuration.host, by, release, report, follower)
        for line in follower.begin():
            report.take(line)
        if report.mirror is not None:
            report.mirror.listed([kind for kind in follower.kinds if kind != "Event"])
        end = time.monotonic() + options.seconds if options.seconds else None
        for number in (signal.SIGTERM, signal.SIGINT):
            held.callback(signal.signal, number, signal.signal(number, follower.interrupted))
        # Between two batches: a judgement that breaks off in the middle would leave the next one without its changes.
        while not follower.is_interrupted and (end is None or time.monotonic() < end):
            for line in follower.batch():
                report.take(line)
            report.judged(time.time_ns())
        report.judged(2**62)
        report.end()
        if options.scenario and record is not None:
            record.flush()
            words.write_scenario(options, read_incident(record.paths), release, by)
    return DIFFERS if any(report.counts[verdict] for verdict in UNLIKE) else AS_OURS
