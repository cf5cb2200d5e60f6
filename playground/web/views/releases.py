"""Which release of Kubernetes a cluster follows, and its feature gates."""

from dataclasses import dataclass

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from playground.clusters.errors import ClusterError
from playground.clusters.services.config import set_release
from playground.engine.releases import GateOutline, ReleaseOutline, release_outlines, title_of
from playground.web.access import get_cluster
from playground.web.problems import problems_of

ON, OFF = "on", "off"


@dataclass(frozen=True)
class GateRow:
    """A gate of the release a page shows, and how it is switched."""

    gate: GateOutline
    switched: bool | None

    @property
    def is_flipped(self) -> bool:
        """Whether its default is another than in the release before."""
        return self.gate.before is not None and self.gate.before is not self.gate.default

    @property
    def is_on(self) -> bool:
        """What holds."""
        return self.gate.default if self.switched is None else self.switched


@require_http_methods(["GET", "HEAD", "POST"])
def release(request: HttpRequest, cluster_id: str) -> HttpResponse:
    """Choose a release and switch its gates; the page of another release than the cluster's only shows it."""
    cluster = get_cluster(request, cluster_id)
    outlines = release_outlines()
    wanted = request.POST.get("release") or request.GET.get("release") or cluster.kubernetes_release
    shown = next((one for one in outlines if one.name == wanted), None)
    problems = []
    status = 200
    if request.method == "POST":
        gates = _posted_gates(request, shown)
        try:
            set_release(cluster=cluster, name=wanted, gates=gates)
        except ClusterError as error:
            problems, status = problems_of(error, ""), error.status
        else:
            messages.success(request, f"{title_of(cluster.release)} is followed from the next cycle on.")
            return redirect("web:release", cluster.public_id)
    shown = shown or next(one for one in outlines if one.name == cluster.kubernetes_release)
    is_own = shown.name == cluster.kubernetes_release
    switched = cluster.feature_gates if is_own else {}
    rows = [GateRow(gate, switched.get(gate.name)) for gate in shown.gates]
    context = {
        "cluster": cluster,
        "tab": "config",
        "sub": "release",
        "releases": outlines,
        "shown": shown,
        "is_own": is_own,
        "open_gates": [row for row in rows if not row.gate.locked],
        "locked_gates": [row for row in rows if row.gate.locked],
        "problems": problems,
    }
    return render(request, "config/release.html", context, status=status)


def _posted_gates(request: HttpRequest, shown: ReleaseOutline | None) -> dict[str, bool]:
    """The gates that were switched: `gate:NAME` is on or off, empty leaves it at its default."""
    gates = {}
    for gate in shown.gates if shown else ():
        value = request.POST.get(f"gate:{gate.name}", "")
        if value in (ON, OFF):
            gates[gate.name] = value == ON
    return gates
