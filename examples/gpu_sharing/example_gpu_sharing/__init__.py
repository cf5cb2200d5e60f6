"""Sharing GPUs: one plugin that keeps the devices, and the six policies the FGD paper compares.

After Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent",
USENIX ATC 2023, and its simulator (hkust-adsl/kubernetes-scheduler-simulator). `python -m example_gpu_sharing` runs
the paper's experiment.
"""

from example_gpu_sharing.devices import GpuDevices
from example_gpu_sharing.fgd import FGD
from example_gpu_sharing.policies import (
    BestFit,
    DotProd,
    GpuClustering,
    GpuPacking,
    Random,
)

POLICIES = (Random, DotProd, GpuClustering, GpuPacking, BestFit, FGD)
"""In the paper's order."""

__all__ = [
    "FGD",
    "POLICIES",
    "BestFit",
    "DotProd",
    "GpuClustering",
    "GpuDevices",
    "GpuPacking",
    "Random",
]
