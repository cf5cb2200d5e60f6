"""Opens a site made by `make_site` with the tree of today, and says what it found, as JSON.

Its database is the one of `DATABASE_URL`; its argument the file of facts that belongs to it.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

PAGES_A_ROUTE = 2
# A teaching scenario that was not shared yet is run when its page is opened.
NOT_WALKED = ("/static/", "/account/logout", "/gallery/")
LINK = re.compile(r'(?:href|hx-get|src)="(/[^"#?]*)')


def walked(client: Any, starts: list[str]) -> dict[str, int]:
    """The status of all the starts and of the pages that are linked to, a few of each kind; no streams."""
    from django.urls import Resolver404, resolve

    found: dict[str, int] = {}
    visits: Counter[str] = Counter()
    waiting = list(starts)
    while waiting:
        path = waiting.pop(0)
        if path in found or path.startswith(NOT_WALKED) or path.endswith("/ticks/"):
            continue
        try:
            route = resolve(path).route
        except Resolver404:
            found[path] = 404
            continue
        visits[route] += 1
        if visits[route] > PAGES_A_ROUTE and path not in starts:
            continue
        answer = client.get(path)
        found[path] = answer.status_code
        if answer.status_code == 200 and not answer.streaming and "html" in answer["Content-Type"]:
            waiting += LINK.findall(answer.content.decode())
    return found


def main() -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = "playground.settings"
    os.environ |= {
        "PLAYGROUND_MODE": "team",
        "PLAYGROUND_SECRET_KEY": "upgrade",
        "PLAYGROUND_HOSTS": "testserver",
        "PLAYGROUND_HTTPS": "0",
        "PLAYGROUND_WRITE_RATE": "100000/min",
        "PLAYGROUND_REQUEST_RATE": "100000/min",
        "CELERY_BROKER_URL": "memory://",
    }
    import django

    django.setup()
    from django.core.management import call_command
    from django.test import Client

    from playground.scenarios import services as scenarios
    from playground.scenarios.models import Comparison, Scenario, Verification
    from playground.scenarios.services import errands
    from tests.upgrade.make_site import PASSWORD, TOKEN, Site, go_on, held

    # No worker is here: what a page waits for is run where it waits.
    errands.wait = lambda errand, wait_s: errands.run_errand(errand_id=errand.pk)
    call_command("migrate", verbosity=0)
    facts = json.loads(Path(sys.argv[1]).read_text())
    said: dict[str, Any] = {"held": held()}

    site = Site()
    clusters: dict[str, str] = facts["clusters"]
    by_token = Client(headers={"Authorization": f"Bearer {TOKEN}"})
    said["token"] = {
        path: by_token.get(path).status_code
        for name in ("mine", "team", "branch")
        for path in (f"/api/v1/clusters/{clusters[name]}/", f"/k8s/{clusters[name]}/api/v1/pods")
    }
    said["pages"] = {}
    said["starts"] = []
    for username, names in (("alice", ("mine", "team", "branch")), ("bob", ("left", "fork", "team"))):
        person = Client(raise_request_exception=False)
        assert person.login(username=username, password=PASSWORD)
        starts = ["/"]
        for public_id in (clusters[name] for name in names):
            starts.append(f"/c/{public_id}/")
            numbers = (line.partition(" ")[0] for line in facts["cycles"][public_id])
            starts += [f"/c/{public_id}/cycles/{number}/" for number in numbers]
        starts += [f"/s/{facts['shares'][name]}/" for name in ("public", "team", "made")]
        if username == "alice":
            starts += [f"/compare/{public_id}/" for public_id in facts["comparison_states"]]
        said["pages"] |= {f"{username} {path}": code for path, code in walked(person, starts).items()}
        said["starts"] += [f"{username} {path}" for path in starts]
    site.sent.clear()  # what opening pages made ready, and the rest of the gallery

    for scenario in Scenario.objects.filter(public_id__in=facts["decisions"]).order_by("pk"):
        verification = scenarios.request_verification(scenario=scenario)
        scenarios.verify_now(verification_id=verification.pk)
    site.sent.clear()
    said["proofs"] = {
        row.scenario.public_id: row.is_proof
        for row in Verification.objects.select_related("scenario").order_by("pk")
    }
    for comparison in Comparison.objects.filter(state="queued"):
        scenarios.compare_now(comparison_id=comparison.pk)
    said["comparison_states"] = held()["comparison_states"]
    said["after"] = go_on(site, facts["clusters"])
    print(json.dumps(said))


if __name__ == "__main__":
    main()
