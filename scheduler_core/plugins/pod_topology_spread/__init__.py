"""PodTopologySpread: matching pods spread evenly over zones, hosts or any other topology."""

from scheduler_core.plugins.pod_topology_spread.plugin import PodTopologySpread

__all__ = ["PodTopologySpread"]
