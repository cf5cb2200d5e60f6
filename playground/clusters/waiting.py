"""Which clusters wait for a worker."""

from django.db.models import Case, F, Q, QuerySet, When
from django.db.models.functions import Now

from playground.clusters.models import Cluster, Run


def busy() -> QuerySet[Cluster]:
    """Clusters that want cycles now: a run is open, or pods can be tried at 1x.

    With `waits_since`, the end of the last visit; None also if that was before the database's clock went back.
    """
    return Cluster.objects.filter(
        Q(pk__in=Run.objects.filter(state__in=Run.OPEN).values("cluster_id"))
        | Q(clock_mode=Cluster.ClockMode.REALTIME, next_deadline_ns__lte=F("now_ns")),
        parked_reason="",
    ).annotate(waits_since=Case(When(driven_at__lte=Now(), then=F("driven_at"))))
