"""Who may see which cluster."""

from django.conf import settings
from django.db.models import QuerySet
from django.http import Http404, HttpRequest

from playground.clusters.models import Cluster
from playground.clusters.selectors.overview import clusters_of


def visible_clusters(request: HttpRequest) -> QuerySet[Cluster]:
    """The clusters of the person logged in; in embedded mode (one person, no login) those of nobody."""
    if not settings.EMBEDDED and not request.user.is_authenticated:
        return Cluster.objects.none()
    return clusters_of(request.user)


def get_cluster(request: HttpRequest, cluster_id: str) -> Cluster:
    """Return the cluster, or answer 404: somebody else's cluster does not exist for you."""
    cluster = visible_clusters(request).filter(public_id=cluster_id).first()
    if cluster is None:
        raise Http404(f'There is no cluster "{cluster_id}".')
    return cluster
