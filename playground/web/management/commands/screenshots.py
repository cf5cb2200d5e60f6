"""``manage.py screenshots DIR``: every page in light, dark and phone width, on a seeded cluster."""

from __future__ import annotations

import os
from argparse import ArgumentParser
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.urls import reverse

from playground.clusters import selectors, services
from playground.clusters.choices import CycleOutcome
from playground.clusters.demo import create_demo
from playground.clusters.services import questions
from playground.scenarios.services.gallery import gallery_scenario
from playground.scenarios.services.moments import compute_moments
from playground.web import rare_cycles
from playground.web.in_thread import served
from playground.web.rare_cycles import RARE_CYCLES, run_until
from playground.web.screenshots import browser, shoot

if TYPE_CHECKING:
    from playground.clusters.row_types import Cluster, Cycle, Question

N_SEEDS = 20
MOST_CYCLES = 500
TAUGHT = "tie-break-4-fewest-victims"
IMPORTANT = """
apiVersion: v1
kind: Pod
metadata: {name: vip-0}
spec:
  priorityClassName: business-critical
  containers: [{name: main, image: "vip:1", resources: {requests: {cpu: "4", memory: 4Gi}}}]
"""

TRIED = """
apiVersion: v1
kind: Pod
metadata: {name: tried-0}
spec:
  containers: [{name: main, image: "web:1", resources: {requests: {cpu: 500m, memory: 1Gi}}}]
"""


class Command(BaseCommand):
    """Make the demo and clusters with rare cycles, run them, photograph every page, delete them again."""

    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        """DIR and how much of each page."""
        parser.add_argument("directory", type=Path, metavar="DIR")
        parser.add_argument("--whole", action="store_true", help="whole pages, not the first screen")
        parser.add_argument("--only", default="", help="names of pages, separated by commas")

    def handle(self, *args: Any, **options: Any) -> None:
        """Take the pictures."""
        # Playwright's synchronous interface runs an event loop in this thread, which also asks the database.
        os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
        call_command("migrate", verbosity=0)
        made: list[Cluster] = []
        try:
            with served() as place, browser() as started:
                settings.PLAYGROUND_OWN_URL = url = f"http://{place}"
                made.append(create_demo())
                self._run(made[0])
                pages = page_list(made[0]) + answered(made[0])
                for name in RARE_CYCLES:
                    made.append(rare_cycles.make(name))
                    pages += rare_pages(name, made[-1])
                if options["only"]:
                    wanted = set(options["only"].split(","))
                    pages = [page for page in pages if page[0] in wanted]
                for file in shoot(started, url, pages, options["directory"], whole=options["whole"]):
                    self.stdout.write(str(file))
        except RuntimeError as error:
            raise CommandError(str(error)) from None
        finally:
            for cluster in made:
                services.delete_cluster(cluster=cluster)

    def _run(self, cluster: Cluster) -> None:
        """Until idle; then an important pod makes room for itself, and the moment after that is shown."""
        run_until(cluster, "idle")
        services.apply_documents(cluster=cluster, text=IMPORTANT)
        run_until(cluster, "cycle")


def page_list(cluster: Cluster) -> list[tuple[str, str]]:
    """Name and path of every page; a cycle page for each outcome the cluster has."""
    base = f"/c/{cluster.public_id}/"
    pages = [
        ("home", "/"),
        ("about", "/about/"),
        ("not-found", f"{base}no-such-page/"),
        ("new", "/new/"),
        ("new-pools", "/new/pools/"),
        ("new-import", "/new/import/"),
        ("board", f"{base}?node=node-b3"),
        ("heat", f"{base}?view=heat"),
        ("table", f"{base}?view=table"),
        ("cycles", f"{base}cycles/"),
        ("pods", f"{base}pods/"),
        ("nodes", f"{base}nodes/"),
        ("changes", f"{base}changes/"),
        ("pod-form", f"{base}pods/new/"),
        ("object", f"{base}objects/Node/-/node-b3/"),
        ("import", f"{base}import/"),
        ("pools", f"{base}pools/"),
        ("config", f"{base}config/"),
        ("release", f"{base}config/release/"),
        ("extender-new", f"{base}config/extenders/new/"),
        ("settings", f"{base}cluster/"),
        ("schedulers", f"{base}schedulers/"),
        ("objects", reverse("web:objects", args=[cluster.public_id])),
        ("objects-of-kind", reverse("web:objects-of-kind", args=[cluster.public_id, "Namespace"])),
        ("luck", reverse("web:luck", args=[cluster.public_id])),
        ("gallery", reverse("scenarios:gallery")),
        ("scenarios", reverse("scenarios:mine")),
        ("scenario-new", reverse("scenarios:new")),
        ("compare", reverse("scenarios:compare-ask")),
        ("replay", reverse("scenarios:replay", args=[cluster.public_id])),
        ("share", reverse("scenarios:share", args=[cluster.public_id])),
    ]
    for outcome in CycleOutcome.values:
        cycle = _telling(cluster, outcome)
        if cycle is not None:
            pages.append((f"cycle-{outcome}", f"{base}cycles/{cycle.number}/"))
            pages.append((f"story-{outcome}", f"{base}pods/{cycle.pod_namespace}/{cycle.pod_name}/"))
        if cycle is not None and outcome == CycleOutcome.BOUND:
            pages.append(("weights", reverse("web:weights", args=[cluster.public_id, cycle.number])))
        if cycle is not None and outcome == CycleOutcome.UNSCHEDULABLE:
            pod = (cluster.public_id, cycle.pod_namespace, cycle.pod_name)
            pages.append(("board-pod", f"{base}?pod={cycle.pod_namespace}/{cycle.pod_name}"))
            pages.append(("explain", reverse("web:explain", args=pod)))
            pages.append(("why-not", reverse("web:cycle-why", args=[cluster.public_id, cycle.number])))
    return pages


def _telling(cluster: Cluster, outcome: str) -> Cycle | None:
    """Of the cycles that ended so, one with the most feasible nodes."""
    found = selectors.cycles(cluster, outcome=outcome, limit=MOST_CYCLES).cycles
    return max(found, key=lambda cycle: (cycle.n_feasible, -cycle.number), default=None)


def rare_pages(name: str, cluster: Cluster) -> list[tuple[str, str]]:
    """Name and path of the cycle, the pod's story and the board of a cluster with a rare cycle."""
    base = f"/c/{cluster.public_id}/"
    pod = "default/web-0"
    return [
        (f"cycle-{name}", f"{base}cycles/{cluster.next_cycle - 1}/"),
        (f"story-{name}", f"{base}pods/{pod}/"),
        (f"board-{name}", f"{base}?pod={pod}"),
    ]


def answered(cluster: Cluster) -> list[tuple[str, str]]:
    """Name and path of pages that show an answer: each question is asked and answered here."""
    unplaced = selectors.cycles(cluster, outcome=CycleOutcome.UNSCHEDULABLE, limit=MOST_CYCLES).cycles
    pod = unplaced[-1] if unplaced else None
    bound = _telling(cluster, CycleOutcome.BOUND)
    if pod is None or bound is None:
        return []
    pending = {"namespace": pod.pod_namespace, "name": pod.pod_name}
    pages = []
    for name, kind, params in (
        ("answered-edits", "what-would-it-take", pending),
        ("answered-why-not", "why-not", {**pending, "node": "node-a4"}),
        ("answered-why-not-then", "why-not", {"cycle": bound.number, "node": "node-a1"}),
        ("answered-weights", "weights", {"cycle": bound.number}),
        ("answered-try", "try", {"manifest": questions.admitted_pod(cluster=cluster, text=TRIED)}),
    ):
        cluster.refresh_from_db()  # asked of the newest moment, or the answer says that it is an old one
        question = answer(cluster, kind, params)
        pages.append((name, reverse("web:question", args=[cluster.public_id, question.public_id])))
    cluster.refresh_from_db()
    luck = answer(cluster, "seeds", {"seeds": N_SEEDS})
    first = luck.params["first"]
    questions.run_seeds(question_id=luck.pk, seeds=range(first, first + N_SEEDS))
    last = cluster.next_cycle - 1
    compute_moments(cluster_id=cluster.pk, cycle=last, generation=cluster.generation)
    pages += [
        ("answered-luck", reverse("web:luck", args=[cluster.public_id])),
        ("answered-replay", f"{reverse('scenarios:replay', args=[cluster.public_id])}?cycle={last}"),
        ("scenario", reverse("scenarios:page", args=[gallery_scenario(TAUGHT).public_id])),
    ]
    return pages


def answer(cluster: Cluster, kind: str, params: dict[str, Any]) -> Question:
    """Ask, and be the worker that answers."""
    question = questions.ask(cluster=cluster, kind=kind, params=params)
    questions.answer(question_id=question.pk)
    return question
