"""InterPodAffinity: pods that want, or do not want, to share a topology domain."""

from scheduler_core.plugins.inter_pod_affinity.plugin import InterPodAffinity

__all__ = ["InterPodAffinity"]
