"""Makes the database of a used site, and writes it down as SQL: what the upgrade tests begin with.

Run it on the tree whose database is wanted, on an empty SQLite or PostgreSQL (`DATABASE_URL`):

    PLAYGROUND_DATA=$(mktemp -d) python -m tests.upgrade.make_site tests/upgrade/data/22dc818

It writes ``{path}.sqlite.sql.xz`` or ``{path}.postgresql.sql.xz`` and, beside it, ``{path}.{database}.json``:
what the site held, and where the pods of `NEXT` went when that very tree went on with it.
"""

from __future__ import annotations

import json
import lzma
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

START_NS = 1_800_000_000_000_000_000
TOKEN = "ksp_the-token-of-alice-in-the-upgrade-tests"
PASSWORD = "a long enough sentence"
CONFIG = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [
        {
            "schedulerName": "default-scheduler",
            "plugins": {"permit": {"enabled": [{"name": "ManualApproval"}]}},
        },
        {
            "schedulerName": "packing",
            "pluginConfig": [
                {
                    "name": "NodeResourcesFit",
                    "args": {
                        "scoringStrategy": {
                            "type": "MostAllocated",
                            "resources": [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}],
                        }
                    },
                }
            ],
        },
    ],
}


def node(name: str, cpu: str, zone: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"topology.kubernetes.io/zone": zone}},
        "status": {"allocatable": {"cpu": cpu, "memory": "16Gi", "pods": "110"}},
    }


def pod(name: str, cpu: str, *, approval: bool = False, **spec: Any) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name, "namespace": "default", "labels": {"app": name[:3]}}
    if approval:
        metadata["annotations"] = {
            "playground.dev/approval": "required",
            "playground.dev/approval-timeout": "24h",
        }
    requests = {"cpu": cpu, "memory": "256Mi"}
    container = {"name": "c", "image": "web:1", "resources": {"requests": requests}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [container], **spec},
    }


OBJECTS: list[dict[str, Any]] = [
    {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "high"},
        "value": 1000,
    },
    *(node(f"n{i}", cpu, zone) for i, (cpu, zone) in enumerate((("4", "a"), ("4", "b"), ("8", "c")))),
    {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}},
    },
    {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "shop", "namespace": "default"},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": "shop"}},
            "template": {
                "metadata": {"labels": {"app": "shop"}},
                "spec": pod("x", "500m", topologySpreadConstraints=[])["spec"],
            },
        },
    },
    *(pod(f"web-{i}", "1") for i in range(4)),
    *(pod(f"bat-{i}", "2500m", schedulerName="packing") for i in range(2)),
    pod("giant", "64"),
    pod("asked", "250m", approval=True),
]
LATER = [pod("urgent", "7", priorityClassName="high"), node("n3", "4", "a"), pod("web-4", "1")]
# Each fits one node only, so that where it goes does not hang on how a tie is broken.
NEXT = [
    node("next-1", "32", "d"),
    pod("next-a", "250m", nodeSelector={"topology.kubernetes.io/zone": "d"}),
    pod("next-b", "20", nodeSelector={"topology.kubernetes.io/zone": "d"}),
    node("next-2", "70", "e"),
]
STEPS = [{"run": "idle"}, {"apply": [pod("late", "1")]}, {"run": "idle"}]


def scenario(name: str, seed: int, config: dict[str, Any] | None = None) -> str:
    objects = [item for item in OBJECTS if "annotations" not in item["metadata"]]
    document: dict[str, Any] = {
        "apiVersion": "scheduling.playground/v1",
        "kind": "Scenario",
        "name": name,
        "title": f"The scenario {name}",
        "seed": seed,
        "objects": objects,
        "steps": STEPS,
    }
    if config:
        document["config"] = config
    return json.dumps(document)


class Site:
    """A site whose workers are this process: what is sent is done when `work` is called."""

    def __init__(self) -> None:
        from playground.clusters import wake
        from playground.clusters.services.memory import EngineMemory

        self.sent: list[tuple[str, dict[str, Any]]] = []
        self.memory = EngineMemory()
        wake.send = lambda task, **how: bool(self.sent.append((task, how))) or True
        wake.send_group = lambda task, many: bool(self.sent.extend((task, dict(how)) for how in many)) or True

    def work(self) -> None:
        from playground.celery import app

        app.loader.import_default_modules()
        for _ in range(500):
            if not self.sent:
                return
            task, how = self.sent.pop(0)
            how.pop("countdown_s", None)
            app.tasks[task](**how)
        raise SystemExit("the work does not end")

    def run(self, cluster: Any, until: str = "idle") -> None:
        from playground.clusters import services

        services.request_run(cluster=cluster, until=until)
        self.work()
        cluster.refresh_from_db()


def fill(site: Site) -> dict[str, Any]:
    """Everything a site of this day may hold; the names the tests need."""
    from django.test import Client

    from playground.accounts import teams
    from playground.accounts.models import AccessToken, User
    from playground.accounts.tokens import digest_of
    from playground.clusters import kinds, services
    from playground.clusters.services import questions
    from playground.scenarios import services as scenarios

    alice = User.objects.create_user("alice", password=PASSWORD, is_staff=True, is_superuser=True)
    bob = User.objects.create_user("bob", password=PASSWORD)
    team = teams.create_team(name="platform", owner=alice)
    teams.set_member(team=team, username="bob", role="viewer")
    AccessToken.objects.create(user=alice, name="laptop", digest=digest_of(TOKEN), hint=TOKEN[:10])
    Client().force_login(alice)

    mine = services.create_cluster(name="alices", owner=alice, seed=7, start_ns=START_NS, config=CONFIG)
    services.apply_documents(cluster=mine, objects=OBJECTS)
    site.run(mine)
    services.apply_documents(cluster=mine, objects=LATER)
    site.run(mine)
    site.run(mine, "400s")
    services.decide_permit(cluster=mine, namespace="default", name="asked", decision="allow")
    services.delete_object(cluster=mine, kind=kinds.by_kind("Pod"), namespace="default", name="web-4")
    services.set_cordon(cluster=mine, node="n3", unschedulable=True)
    site.run(mine)

    teams_own = services.create_cluster(name="the team's", team=team, seed=8, start_ns=START_NS)
    services.create_mock_extender(cluster=teams_own, name="not-n0", rules=[{"deny": {"nodes": ["n0"]}}])
    services.apply_documents(cluster=teams_own, objects=OBJECTS)
    site.run(teams_own)

    left = services.create_cluster(name="left in the middle", owner=bob, seed=9, start_ns=START_NS)
    services.apply_documents(cluster=left, objects=OBJECTS)
    site.run(left, "cycle")
    site.work()

    public = scenarios.share(document=scenario("public", 3), owner=alice, visibility="public").scenario
    of_team = scenarios.share(
        document=scenario("teams", 4), owner=alice, visibility="team", team=team
    ).scenario
    site.work()
    scenarios.share_gallery(at_most=2)
    site.work()
    made = scenarios.make_from_cluster(cluster=mine, owner=alice, title="From a cluster").scenario
    site.work()
    forked = scenarios.fork(scenario=public, owner=bob)
    for _ in STEPS:
        scenarios.do_next_step(cluster=forked)
        site.work()
        forked.refresh_from_db()
    branched = scenarios.branch(cluster=mine, cycle=5, owner=alice, name="a branch")
    site.run(branched)

    comparison = scenarios.request_comparison(
        a={"kind": "scenario", "id": public.public_id},
        b={"kind": "scenario", "id": of_team.public_id},
        owner=alice,
    )
    of_clusters = scenarios.request_comparison(
        a={"kind": "cluster", "id": mine.public_id}, b={"kind": "cluster", "id": branched.public_id}
    )
    scenarios.request_luck(scenario=public, n_seeds=5)
    scenarios.request_optimum(cluster=branched, time_limit_s=5)
    scenarios.request_verification(scenario=made)
    questions.ask(cluster=mine, kind="seeds", params={"seeds": 5})
    questions.ask(cluster=mine, kind="what-would-it-take", params={"namespace": "default", "name": "giant"})
    site.work()
    # What no worker had got to when the site was stopped.
    services.apply_documents(cluster=left, objects=LATER)
    services.request_run(cluster=left)
    waiting = scenarios.request_comparison(
        a={"kind": "scenario", "id": made.public_id}, b={"kind": "scenario", "id": public.public_id}
    )
    site.sent.clear()
    return {
        "clusters": {
            "mine": mine.public_id,
            "team": teams_own.public_id,
            "left": left.public_id,
            "fork": forked.public_id,
            "branch": branched.public_id,
        },
        "shares": {"public": public.public_id, "team": of_team.public_id, "made": made.public_id},
        "comparisons": {
            "shares": comparison.public_id,
            "clusters": of_clusters.public_id,
            "waiting": waiting.public_id,
        },
    }


def held() -> dict[str, Any]:
    """What the site holds that must still be there afterwards."""
    from playground.clusters.models import Cluster, Cycle, Pod
    from playground.scenarios.models import Comparison, Scenario

    return {
        "cycles": {
            cluster.public_id: [
                f"{number} {namespace}/{name} {outcome} {where}".rstrip()
                for number, namespace, name, outcome, where in Cycle.objects.filter(cluster=cluster)
                .order_by("number")
                .values_list("number", "pod_namespace", "pod_name", "outcome", "node")
            ]
            for cluster in Cluster.objects.order_by("pk")
        },
        "pods": {
            cluster.public_id: {
                f"{namespace}/{name}": where
                for namespace, name, where in Pod.objects.filter(cluster=cluster)
                .order_by("namespace", "name")
                .values_list("namespace", "name", "node_name")
            }
            for cluster in Cluster.objects.order_by("pk")
        },
        "decisions": dict(Scenario.objects.order_by("pk").values_list("public_id", "decisions_digest")),
        "comparison_states": dict(Comparison.objects.order_by("pk").values_list("public_id", "state")),
    }


def go_on(site: Site, public_ids: dict[str, str]) -> dict[str, dict[str, str]]:
    """Give every cluster the same new work, and do it; where its pods are then."""
    from playground.clusters import services
    from playground.clusters.models import Cluster

    for name in ("mine", "team", "left", "branch"):
        cluster = Cluster.objects.get(public_id=public_ids[name])
        services.apply_documents(cluster=cluster, objects=NEXT)
        services.request_run(cluster=cluster)
        site.work()
    return {public_ids[name]: held()["pods"][public_ids[name]] for name in ("mine", "team", "left", "branch")}


def dumped() -> tuple[str, str]:
    """The database as SQL that one connection can run, without a client's own commands; and its kind."""
    from django.db import connection

    if connection.vendor == "sqlite":
        connection.ensure_connection()
        return "sqlite", "\n".join(connection.connection.iterdump())
    text = subprocess.run(
        [
            *("pg_dump", "--inserts", "--rows-per-insert=100", "--no-owner", "--no-privileges"),
            *("--no-comments", os.environ["DATABASE_URL"]),
        ],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    # Lines of one release: a client's commands, and a setting that older servers do not know.
    dropped = ("\\restrict ", "\\unrestrict ", "SET transaction_timeout")
    return "postgresql", "\n".join(line for line in text.splitlines() if not line.startswith(dropped))


def main() -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = "playground.settings"
    os.environ.setdefault("PLAYGROUND_MODE", "team")
    os.environ.setdefault("PLAYGROUND_SECRET_KEY", "upgrade")
    os.environ.setdefault("PLAYGROUND_HOSTS", "testserver")
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    site = Site()
    names = fill(site)
    kind, text = dumped()
    path = sys.argv[1]
    Path(f"{path}.{kind}.sql.xz").write_bytes(lzma.compress(text.encode(), preset=9))
    facts = {**names, **held(), "after": go_on(site, names["clusters"])}
    Path(f"{path}.{kind}.json").write_text(json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    main()
