"""`kubectl playground`: questions about the current cluster, answered by a playground.

kubectl reads nodes, pods and what shapes their placement; names are taken out before anything is sent (but with
`--keep-names`), and put back into the answer. Nothing is ever written to the cluster.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any, Final

from playground.engine.redacting import Dump, UnreadableDump, dump_of
from playground.remote import of_an_extra
from playground.remote.instance import Instance, Refused, part, pod_path, reasons_of
from scheduler_core.schema.tables import table_beside

READ: Final = "nodes,pods,deploy,rs,sts,ds,jobs,pdb,pc,pv,pvc,sc,csinodes"
_TABLE: Final = table_beside(__package__, "kubectl.yaml")
ANSWERED, SAYS_NO, UNUSABLE = 0, 1, 2
_SHOWN: Final = 10
_LOOK_EVERY_S: Final = 0.5


class _Unusable(Exception):
    """The cluster cannot be read, or has no such thing."""


def main(arguments: Sequence[str] | None = None) -> None:
    """The command; kubectl finds it by its name on PATH."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["follow"]:
        with of_an_extra("follow"):
            from playground.remote import follow
        sys.exit(follow.main(words[1:]))
    options = _parser().parse_args(words)
    try:
        sys.exit(options.run(options))
    except (_Unusable, Refused) as error:
        said = str(error)
        if isinstance(error, Refused) and not error.status and "cannot be reached" in said:
            said += "; start one with `kube-scheduler-playground`, or name one with --server"
    except UnreadableDump as error:
        said = f"the cluster cannot be read: {error}"
    except KeyboardInterrupt:
        said = "stopped"
    print(f"error: {said}", file=sys.stderr)
    sys.exit(UNUSABLE)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="kubectl playground",
        description="Ask a scheduling playground about the current cluster. Names are taken out before it is sent.",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, run in (("why", _why), ("plan", _plan), ("share", _share)):
        said = _TABLE["commands"][name]
        command = commands.add_parser(name, help=said["help"])
        command.set_defaults(run=run)
        for option in (*_TABLE["shared"], *said["options"]):
            command.add_argument(*option["name"].split(), **{k: option[k] for k in option if k != "name"})
    return parser


# ---- commands


def _why(options: argparse.Namespace) -> int:
    dump, objects = _cluster(options)
    namespace, _, name = options.pod.rpartition("/")
    namespace = namespace or options.namespace or _own_namespace(options)
    _must_be_there(objects, "Pod", namespace, name)
    instance = Instance(options.server)
    pod = f"{dump.new('Namespace', namespace)}/{dump.new('Pod', name)}"
    cluster = _made(instance, dump, options)
    _awaited(instance, instance.post(f"clusters/{part(cluster)}/run", {"until": "idle"}))
    story = instance.get(f"{pod_path(cluster, pod)}/story")
    if story["node"]:
        print(dump.with_names(f"{pod} is on {story['node']}."))
        return ANSWERED
    cycles = instance.get(f"clusters/{part(cluster)}/cycles/", pod=pod, limit="1")["items"]
    if not cycles:
        waits = story["waitsFor"] or (story["queue"] or {}).get("reason") or "it is not decided"
        print(dump.with_names(f"{pod} waits: {waits}"))
        print(f"  {instance.page(f'/c/{cluster}/')}")
        return SAYS_NO
    [last] = cycles
    print(dump.with_names(last["sentence"]))
    for plugin, reason, nodes in reasons_of(instance.get(last["url"])):
        print(dump.with_names(f"  {plugin}: {reason}" + (f", {len(nodes):,} nodes" if nodes else "")))
    found = _awaited(instance, instance.post(f"clusters/{part(cluster)}/fix", {"pod": pod}))
    for fix in found["answer"]["fixes"][:_SHOWN]:
        print(
            dump.with_names(
                f"  -> {fix['title']} ({fix['placed']} of {fix['of']}, {fix['price']}, {fix['harm']})"
            )
        )
    cycle = instance.page(f"/c/{cluster}/cycles/{last['cycle']}/")
    print(f"  {cycle}")
    return SAYS_NO


def _plan(options: argparse.Namespace) -> int:
    dump, objects = _cluster(options)
    asked: dict[str, Any] = {"ask": options.ask}
    for node in options.nodes:
        _must_be_there(objects, "Node", "", node)
    if options.nodes:
        asked["nodes"] = [dump.new("Node", node) for node in options.nodes]
    if options.label:
        key, equals, value = options.label.partition("=")
        value = dump.new("Node", value) if value in dump.renamed.get("Node", {}) else dump.new("value", value)
        asked["label"] = f"{dump.new('label', key)}{equals}{value}"
    if options.workload:
        kind, _, rest = options.workload.partition("/")
        namespace, _, name = rest.rpartition("/")
        asked["workload"] = f"{kind} {dump.new('Namespace', namespace or 'default')}/{dump.new(kind, name)}"
    instance = Instance(options.server)
    cluster = _made(instance, dump, options)
    row = _awaited(instance, instance.post(f"clusters/{part(cluster)}/plan", asked))
    answer = row["answer"]
    print(dump.with_names(answer["verdict"]))
    for line in answer["lines"][:_SHOWN]:
        print(dump.with_names(f"  {line['node'] + ': ' if line.get('node') else ''}{line['text']}"))
    for move in answer["moves"][:_SHOWN]:
        print(dump.with_names(f"  {move['pod']}: {move['from']} -> {move['to']}"))
    more = max(0, answer["nLines"] - _SHOWN) + max(0, answer["nMoves"] - _SHOWN)
    print(f"  {f'and {more:,} more at ' if more else ''}{instance.page(f'/c/{cluster}/plan/')}")
    return ANSWERED if answer["tone"] == "good" else SAYS_NO


def _share(options: argparse.Namespace) -> int:
    dump, _ = _cluster(options, title=options.title)
    query = {"days": options.days} if options.days else {}
    made = Instance(options.server).post("scenarios/", dump.scenario, **query)
    print(made["page"])
    for note in dump.notes:
        print(f"note: {note}", file=sys.stderr)
    return ANSWERED


# ---- the cluster


def _kubectl(options: argparse.Namespace, *words: str) -> subprocess.CompletedProcess[bytes]:
    program = shutil.which("kubectl")
    if program is None:
        raise _Unusable("kubectl is not on PATH")
    given = [
        f"--{name}={getattr(options, name)}" for name in ("context", "kubeconfig") if getattr(options, name)
    ]
    return subprocess.run(
        [program, *given, *words], capture_output=True, stdin=subprocess.DEVNULL, check=False
    )


def _cluster(options: argparse.Namespace, title: str = "") -> tuple[Dump, list[dict[str, Any]]]:
    """The dump that is sent, and the cluster's objects as they are."""
    done = _kubectl(options, "get", READ, "--all-namespaces", "-o", "json")
    said = done.stderr.decode(errors="replace").strip()
    try:
        objects = json.loads(done.stdout)["items"]
    except (ValueError, KeyError, TypeError):
        raise _Unusable(f"the cluster cannot be read: {said or 'kubectl answered nothing'}") from None
    kinds = {item["kind"] for item in objects}
    if "Node" not in kinds:
        raise _Unusable(f"the cluster shows no nodes{': ' + said if said else ''}")
    if done.returncode:
        # What a person may not list is left out, and told.
        print(f"note: {said}", file=sys.stderr)
    return dump_of(objects, keep_names=options.keep_names, release=options.release, title=title), objects


def _own_namespace(options: argparse.Namespace) -> str:
    done = _kubectl(options, "config", "view", "--minify", "-o", "jsonpath={..namespace}")
    return done.stdout.decode().strip() or "default"


def _must_be_there(objects: Sequence[dict[str, Any]], kind: str, namespace: str, name: str) -> None:
    there = ((item["kind"], item["metadata"]) for item in objects)
    if (kind, namespace, name) not in ((of, meta.get("namespace", ""), meta["name"]) for of, meta in there):
        where = f"{namespace}/{name}" if namespace else name
        raise _Unusable(f'the cluster has no {kind} "{where}"')


# ---- the playground


def _made(instance: Instance, dump: Dump, options: argparse.Namespace) -> str:
    """The id of a cluster made of what left; nothing is left behind where that fails."""
    wanted = {"name": "from kubectl"} | ({"kubernetesRelease": options.release} if options.release else {})
    made = instance.post("clusters/", wanted)
    cluster: str = made["id"]
    try:
        body = {"apiVersion": "v1", "kind": "List", "items": dump.objects}
        status, applied = instance.ask("POST", f"clusters/{part(cluster)}/apply", body)
        if status == 202:  # a worker applies what is large
            _awaited(instance, applied)
    except KeyboardInterrupt:
        instance.ask("DELETE", f"clusters/{part(cluster)}/")
        raise
    except Refused as error:
        instance.ask("DELETE", f"clusters/{part(cluster)}/")
        raise Refused(dump.with_names(str(error)), error.status) from None
    return cluster


def _awaited(instance: Instance, row: Any) -> Any:
    """A run, question or large import at its end; cancelled there when it is stopped here."""
    try:
        while row["state"] not in ("done", "failed", "cancelled"):
            time.sleep(_LOOK_EVERY_S)
            row = instance.get(row["url"])
    except KeyboardInterrupt:
        instance.ask("DELETE", row["url"])
        raise
    if row["state"] != "done":
        why = row.get("error") or row.get("message") or row.get("problem") or ""
        why = "\n".join([why, *(cause["detail"] for cause in row.get("causes") or ())]).strip()
        raise Refused(f"it ended as {row['state']}: {why}", 500)
    return row
