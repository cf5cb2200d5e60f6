"""Following a live cluster, which is ours behind its Kubernetes API: it lists and watches, and writes nothing."""

import json
import os
import re
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
import urllib3
from kubernetes import client

from playground.__main__ import main as command
from playground.remote import follow, mirror
from playground.remote.follow import Follower, _Kind, _Refused, rights
from playground.remote.instance import Instance, Refused
from scheduler_core.cli.main import main as core
from scheduler_core.incident.verdicts import LiveIncident
from scheduler_core.incident.watched import DELETED, NOT_KNOWN
from scheduler_core.releases import DEFAULT, OLDEST, Release
from scheduler_core.scenario.redact import Renaming, bare
from tests.clusters.builders import make_node, make_pod
from tests.kube_api.kubectls import kubeconfig
from tests.kube_api.schedulers import RECORDED, replay
from tests.manifests import deployment, make_object

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
PLANTED = ("acme-password", "acme-token", "acme-note", "acme-motto")
by_night = pytest.mark.nightly(
    "playground/remote/", "scheduler_core/incident/", "scheduler_core/whatif/judge.py"
)


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "BATCH_S", 0.1)


def with_secrets(name: str) -> dict[str, Any]:
    """A pod that fits no node, with secrets in its annotations, its environment and its command."""
    pod = make_pod(name, schedulerName="packer", nodeSelector={"disk": "ssd"})
    pod["metadata"]["annotations"] = {"acme.example/note": "acme-note"}
    pod["spec"]["containers"][0] |= {
        "env": [{"name": "PASSWORD", "value": "acme-password"}], "command": ["run", "--token=acme-token"],
    }  # fmt: skip
    return pod


class Live:
    """The live side: a cluster that decides when it is run, and a client of it whose verbs are written down."""

    def __init__(self, instance: Instance, *objects: dict[str, Any], release: Release = DEFAULT) -> None:
        self.instance = instance
        self.id = instance.post("clusters/", {"name": "live", "kubernetesRelease": release.name})["id"]
        self.address = f"{instance.server}/k8s/{self.id}"
        configuration = client.Configuration()
        configuration.host = self.address
        configuration.connection_pool_maxsize = follow.CONNECTIONS
        self.api = client.ApiClient(configuration)
        self.verbs = Counter[str]()
        call = self.api.call_api

        def counted(method: str, *rest: Any, **more: Any) -> Any:
            self.verbs[method] += 1
            return call(method, *rest, **more)

        self.api.call_api = counted
        own = client.Configuration()
        own.host = self.address
        self.core = client.CoreV1Api(client.ApiClient(own))
        self.apply(*objects)

    def apply(self, *objects: dict[str, Any]) -> None:
        if objects:
            self.instance.post(
                f"clusters/{self.id}/apply", {"apiVersion": "v1", "kind": "List", "items": objects}
            )

    def run(self, until: str = "idle") -> None:
        row = self.instance.post(f"clusters/{self.id}/run", {"until": until})
        while row["state"] not in ("done", "failed", "cancelled"):
            time.sleep(0.05)
            row = self.instance.get(row["url"])
        assert row["state"] == "done", row

    def listed(self) -> dict[tuple[str, str, str], Any]:
        """Nodes and pods as they are."""
        return listed(self.instance, self.id)

    def bind(self, pod: str, node: str) -> None:
        target = client.V1ObjectReference(api_version="v1", kind="Node", name=node)
        binding = client.V1Binding(metadata=client.V1ObjectMeta(name=pod), target=target)
        self.core.create_namespaced_binding("default", binding, _preload_content=False)


def listed(instance: Instance, cluster: str) -> dict[tuple[str, str, str], Any]:
    found = {}
    for kind, plural in (("Node", "nodes"), ("Pod", "pods")):
        for item in instance.get(f"/k8s/{cluster}/api/v1/{plural}")["items"]:
            meta = item["metadata"]
            whole = {**item, "apiVersion": "v1", "kind": kind}
            found[kind, meta.get("namespace", ""), meta["name"]] = bare(whole)
    return found


def as_told(objects: dict[Any, Any]) -> dict[Any, Any]:
    """A mirror's versions are its own."""
    return {
        key: {**item, "metadata": {**item["metadata"], "resourceVersion": ""}}
        for key, item in objects.items()
    }


class Cuts:
    """Watches that break off at random, some of them for good: versions are gone, and what was read stays half."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, draw: Random, most: int) -> None:
        self.n = self.n_gone = 0
        self.share_gone = 0.0
        lines, get = follow._lines, _Kind._get

        def cut(answer: Any) -> Iterator[bytes]:
            left = draw.randrange(most)
            for line in lines(answer):
                if left == 0:
                    self.n += 1
                    raise urllib3.exceptions.ProtocolError("cut")
                left -= 1
                yield line

        def gone(kind: _Kind, query: Any, timeout_s: float) -> Any:
            if "watch" in query and draw.random() < self.share_gone:
                self.n_gone += 1
                raise _Refused(410, "too old resource version")
            return get(kind, query, timeout_s)

        monkeypatch.setattr(follow, "_lines", cut)
        monkeypatch.setattr(_Kind, "_get", gone)
        monkeypatch.setattr(follow, "FIRST_PAUSE_S", 0.01)
        monkeypatch.setattr(follow, "LONGEST_PAUSE_S", 0.05)
        monkeypatch.setattr(follow, "BATCH_S", 0.3)


class Followed:
    """What was followed, and mirrored: the cluster's objects, and verdicts."""

    def __init__(self, live: Live) -> None:
        self.wanted, self.instance = live.listed, live.instance
        self.follower = follower = Follower(live.api)
        name, made_with = f"mirror of {live.id}", {"kubernetesRelease": DEFAULT.name}
        self.mirror = mirror.Mirror(
            live.instance, name, name, redacted=False, made_with=made_with, say=print, is_over=lambda: True
        )
        self.objects: dict[tuple[str, str, str], Any] = {}
        self.live = LiveIncident(release=DEFAULT)
        self.verdicts: list[Any] = []
        for line in follower.begin():
            self.take(line)
        self.live.judge(0)
        self.mirror.listed([kind for kind in follower.kinds if kind != "Event"])

    def take(self, line: dict[str, Any]) -> None:
        self.live.take(line)
        self.mirror.change(line)
        if line["type"] == NOT_KNOWN or line["object"]["kind"] not in ("Node", "Pod"):
            return
        meta = line["object"]["metadata"]
        key = (line["object"]["kind"], meta.get("namespace", ""), meta["name"])
        if line["type"] == DELETED:
            del self.objects[key]  # once
        else:
            assert self.objects.get(key) != line["object"], "doubled"
            self.objects[key] = line["object"]

    def catch_up(self, timeout_s: float = 60.0) -> None:
        end = time.monotonic() + timeout_s
        while (now := self.wanted()) != self.objects and time.monotonic() < end:
            for line in self.follower.batch():
                self.take(line)
            self.verdicts += self.live.judge(time.time_ns())
        self.mirror.send()
        assert self.objects == now
        assert as_told(listed(self.instance, self.mirror.cluster)) == as_told(now)

    def settle(self) -> Counter[str]:
        self.verdicts += self.live.judge(2**62)
        assert not [
            one.document() for one in self.verdicts if one.found.verdict in ("different", "infeasible")
        ]
        return Counter(one.found.verdict for one in self.verdicts)


@pytest.mark.parametrize(
    ("n_nodes", "n_pods", "n_rounds"), [(6, 40, 2), pytest.param(100, 2_000, 10, marks=by_night)]
)
def test_a_followed_cluster_is_the_live_one_at_each_rest_whatever_is_cut(
    n_nodes: int, n_pods: int, n_rounds: int, instance: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = Random(n_pods)
    classes = [make_object("scheduling.k8s.io/v1", "PriorityClass", "high", value=100)]
    live = Live(instance, *classes, *(make_node(f"n{i}", cpu="8") for i in range(n_nodes)))
    cuts = Cuts(monkeypatch, draw, n_pods // 5)
    followed = Followed(live)
    there = 0
    try:
        for number in range(n_rounds):
            cuts.share_gone = 0.3 * (number % 2)
            new = range(there, there := n_pods * (number + 1) // n_rounds)
            classed = {True: {"priorityClassName": "high"}, False: {}}
            live.apply(
                *(
                    make_pod(f"p{i}", cpu=draw.choice(("200m", "500m", "1")), **classed[draw.random() < 0.2])
                    for i in new
                ),
                deployment(cpu=f"{200 + 100 * (number % 2)}m"),  # rolls out
                make_pod(f"big{number}", cpu="7600m", priorityClassName="high"),  # evicts others
            )
            live.run()
            for pod in draw.sample(new, len(new) // 5):
                live.core.delete_namespaced_pod(f"p{pod}", "default", grace_period_seconds=0)
            live.core.patch_node(f"n{draw.randrange(n_nodes)}", {"spec": {"unschedulable": number % 2 == 0}})
            live.apply(make_node(f"late{number}", cpu="4"))
            followed.catch_up()
    finally:
        followed.follower.end()
    counts = followed.settle()
    assert set(live.verbs) == {"GET"}
    assert cuts.n >= n_rounds and cuts.n_gone and followed.follower.n_relisted
    assert counts["agree"] + counts["tie"] > n_pods // 4 - 10, (counts, cuts.n)


class Wire:
    """What a recorded scheduler sends, sent to a live cluster."""

    def __init__(self, live: Live) -> None:
        self._address, self._pool = live.address, urllib3.PoolManager()

    def send(self, method: str, path: str, body: str, *, media: str, user_agent: str) -> Any:
        headers = {"Content-Type": media, "User-Agent": user_agent}
        answer = self._pool.request(method, self._address + path, body=body.encode(), headers=headers)
        return SimpleNamespace(status_code=answer.status, content=answer.data)


@pytest.mark.parametrize(
    ("run", "n_decisions"), [pytest.param("b-bind", 12, marks=by_night), ("d-preemption", 8)]
)
def test_a_real_scheduler_that_is_followed_decides_as_ours(
    run: str, n_decisions: int, instance: Instance
) -> None:
    pods = [item for item in RECORDED[run]["objects"] if item["kind"] == "Pod"]
    live = Live(instance, *(item for item in RECORDED[run]["objects"] if item not in pods))
    followed = Followed(live)
    try:
        live.apply(*pods)
        followed.catch_up()  # in the order in which they came
        wire: Any = Wire(live)
        replay(wire, run, lambda: live.run("5s"))
        followed.catch_up()
    finally:
        followed.follower.end()
    counts = followed.settle()
    assert counts["agree"] + counts["tie"] >= n_decisions and not counts["unknown"], counts


@pytest.fixture
def outlives() -> Iterator[None]:
    """A signal that comes when the command has ended already does not end the tests."""
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.usefixtures("outlives")
def test_the_command_names_a_fault_and_says_no_secret(
    instance: Instance, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    motto = make_object("v1", "ConfigMap", "c", data={"motto": "acme-motto"}, namespace="default")
    live = Live(instance, make_node("acme-1"), make_node("acme-2"), motto, release=OLDEST)
    kubeconfig_file, record, scenario = (tmp_path / name for name in ("config", "seen", "incident.json"))
    kubeconfig_file.write_text(json.dumps(kubeconfig(live.address)))

    def until_it_has_two(pattern: str) -> None:
        end = time.monotonic() + 60
        while time.monotonic() < end:
            if record.exists() and len(set(re.findall(pattern, record.read_text()))) == 2:
                return
            time.sleep(0.1)

    def decide() -> None:
        until_it_has_two('"kind":"Node","metadata":{"name":"([^"]+)"')
        live.apply(make_pod("acme-fine", schedulerName="packer"), with_secrets("acme-web"))
        live.bind("acme-fine", "acme-1")
        live.bind("acme-web", "acme-2")
        until_it_has_two('"nodeName":"([^"]+)"')
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGTERM)

    def followed(*more: str) -> str:
        record.unlink(missing_ok=True)
        acting = threading.Thread(target=decide)
        acting.start()
        with pytest.raises(SystemExit) as ended:
            command(["follow", "--kubeconfig", str(kubeconfig_file), "--for", "100", *more])
        acting.join()
        live.core.delete_collection_namespaced_pod("default", grace_period_seconds=0)
        assert ended.value.code == 1
        captured = capsys.readouterr()
        assert f"judged by the rules of release {OLDEST.name}: it is {OLDEST.patch}" in captured.err
        return captured.out

    said = followed("--record", str(record), "--scenario", str(scenario), "--as-recorded", "-o", "json")
    *decided, last = [json.loads(line) for line in said.splitlines()]
    assert [(one["pod"], one["verdict"], one["plugin"]) for one in decided] == [
        ("default/acme-fine", decided[0]["verdict"], ""), ("default/acme-web", "infeasible", "NodeAffinity"),
    ]  # fmt: skip
    assert decided[0]["verdict"] in ("agree", "tie") and last["counts"]["infeasible"] == 1
    kept = record.read_text() + scenario.read_text() + said
    assert not [word for word in PLANTED if word in kept]
    assert core(["import-incident", str(record)]) == 1
    assert "does not fit 1" in capsys.readouterr().out
    assert core(["replay", str(scenario)]) == 0
    assert "0 cycles" in capsys.readouterr().out
    key = tmp_path / "key"
    said = followed("--redact-key", str(key), "--record", str(record), "--scenario", str(scenario))
    assert "NodeAffinity" in said
    assert "acme" not in said + record.read_text() + scenario.read_text()
    assert key.stat().st_mode & 0o077 == 0 and Renaming(key.read_bytes()).name("Pod", "acme-web") in said


@pytest.mark.usefixtures("outlives")
def test_a_playground_mirrors_it_object_by_object_and_no_secret_leaves(
    instance: Instance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    live = Live(instance, make_node("n1"), make_node("n2"), make_pod("gone", cpu="64"))
    config = tmp_path / "config"
    config.write_text(json.dumps(kubeconfig(live.address)))
    post, refused = Instance.post, 3
    sent: list[str] = []

    def cut(self: Instance, path: str, *rest: Any, **more: Any) -> Any:
        """Some answers get lost: what was sent was taken."""
        nonlocal refused
        sent.append(json.dumps(rest) if "following" in path else "")
        answer = post(self, path, *rest, **more)
        if path.endswith("following/") and refused:
            refused -= 1
            raise Refused("cut", 0)
        return answer

    monkeypatch.setattr(Instance, "post", cut)
    monkeypatch.setattr(mirror, "FIRST_PAUSE_S", 0.01)

    def followed(act: Callable[[], None], until: str) -> tuple[int, str]:
        """Follow until a batch with some words was sent; `act` comes after the list."""

        def acts() -> None:
            for words, do in (('"listed": true', act), (until, lambda: os.kill(os.getpid(), signal.SIGTERM))):
                end = time.monotonic() + 60
                while not any(words in text for text in sent[n_before:]) and time.monotonic() < end:
                    time.sleep(0.05)
                do()

        n_before = len(sent)
        acting = threading.Thread(target=acts)
        acting.start()
        into = ["--into", instance.server, "--cluster", tmp_path.name]
        status = follow.main(["--kubeconfig", str(config), "--for", "100", *into])
        acting.join()
        [cluster] = [one for one in instance.get("clusters/")["items"] if one["name"] == tmp_path.name]
        return status, cluster["id"]

    def act() -> None:
        live.apply(make_pod("fine", schedulerName="packer"), with_secrets("web"))
        live.bind("fine", "n1")
        live.bind("web", "n2")

    status, there = followed(act, '"infeasible"')
    assert status == 1 and not refused
    live.core.delete_namespaced_pod("gone", "default", grace_period_seconds=0)
    status, again = followed(lambda: live.apply(make_node("n3")), '"n3"')
    assert again == there
    assert as_told(listed(instance, there)) == as_told(live.listed()) and len(live.listed()) == 5
    said = instance.get(f"clusters/{there}/judge/")
    newest = said["items"][0]
    assert (newest["pod"], newest["verdict"]) == ("default/web", "infeasible")
    assert instance.get(f"clusters/{there}/following/")["state"] == "following"
    assert any("n2" in text for text in sent)
    assert not [word for word in PLANTED for text in sent if word in text]


def test_a_redacted_mirror_is_found_again_by_the_same_names(
    instance: Instance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    live, config = Live(instance, make_node("acme-1")), tmp_path / "config"
    config.write_text(json.dumps(kubeconfig(live.address)))
    into = ["--into", instance.server, "--cluster", "redacted", "--redact"]
    names = []
    for _ in range(2):
        assert follow.main(["--kubeconfig", str(config), "--for", "0.1", *into]) == 0
        [cluster] = [one for one in instance.get("clusters/")["items"] if one["name"] == "redacted"]
        names.append([*listed(instance, cluster["id"])])
    assert len(names[0]) == 1 and names[0] == names[1] and "acme" not in str(names)


def test_a_missing_right_is_named_once_and_nodes_and_pods_are_needed(
    instance: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    live, get, forbidden = Live(instance, make_node("n1")), _Kind._get, {"PodDisruptionBudget"}

    def refusing(kind: _Kind, query: Any, timeout_s: float) -> Any:
        if kind.kind in forbidden:
            raise _Refused(403, "403 forbidden")
        return get(kind, query, timeout_s)

    monkeypatch.setattr(_Kind, "_get", refusing)
    follower = Follower(live.api)
    said = [line["what"] for line in follower.begin() if line["type"] == NOT_KNOWN]
    follower.end()
    assert said == ["PodDisruptionBudget (no right to list poddisruptionbudgets)"]
    forbidden.add("Pod")
    with pytest.raises(follow.CannotFollow, match="pods cannot be listed: 403 forbidden"):
        list(Follower(live.api).begin())
    role = rights()
    assert {verb for rule in role["rules"] for verb in rule["verbs"]} == {"get", "list", "watch"}
    named = {name for rule in role["rules"] for name in rule["resources"]}
    assert {"nodes", "pods", "events", "poddisruptionbudgets"} <= named and not named & {
        "secrets",
        "configmaps",
    }


def test_a_cluster_that_is_not_there_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "config"
    config.write_text(json.dumps(kubeconfig("http://127.0.0.1:1")))
    assert follow.main(["--kubeconfig", str(config), "--for", "1"]) == 2
    assert "cannot be reached" in capsys.readouterr().err
    assert follow.main(["--kubeconfig", str(config), "--context", "none"]) == 2
    config.with_name("mangled").write_text("clusters: 7\ncontexts: [{name: live}]")
    assert follow.main(["--kubeconfig", str(config.with_name("mangled"))]) == 2
    assert "mangled" in capsys.readouterr().err
    assert follow.main(["--print-rights"]) == 0
    config.with_name("key").write_text("too short")
    for bad in (
        ["--redact-key", str(tmp_path / "key")],
        ["--record", str(tmp_path / "r"), "--record-size", "nan"],
    ):
        assert follow.main(["--kubeconfig", str(config), *bad]) == 2
        assert bad[-2] in capsys.readouterr().err
