"""ImageLocality: nodes that already hold a pod's images."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, ClassVar

import numpy as np

from scheduler_core.cluster.node_table import NodeColumns, Rows
from scheduler_core.framework.interface import MAX_NODE_SCORE, Handle, Reads, ScorePlugin, Scores
from scheduler_core.objects.fields import mapping, string
from scheduler_core.objects.pod import Pod

_MIN_THRESHOLD_BYTES = 23 * 1024 * 1024
_MAX_CONTAINER_THRESHOLD_BYTES = 1000 * 1024 * 1024


class ImageLocality(ScorePlugin[None]):
    """Scores rows by the size of the pod's images they hold, scaled by how far each image has spread.

    Source: pkg/scheduler/framework/plugins/imagelocality/image_locality.go, v1.34

    Examples
    --------
    >>> from scheduler_core.framework.example import scores
    >>> there = {"status": {"images": [{"names": ["db:v1"], "sizeBytes": 500_000_000}]}}
    >>> scores(ImageLocality, {"containers": [{"name": "c", "image": "db:v1"}]}, n1=there, n2=there, n3={})
    {'n1': 30, 'n2': 30, 'n3': 0}
    """

    name: ClassVar[str] = "ImageLocality"
    draw: ClassVar[tuple[str, int] | None] = ("L", 7)
    default_weight: ClassVar[int | None] = 1
    score_reads: ClassVar[Reads] = Reads.CLUSTER

    def __init__(self, args: Any, handle: Handle) -> None:
        super().__init__(args, handle)
        self._with_volumes = handle.release.has("ImageVolumesScored")
        self._volumes_raise_the_top = handle.release.has("ImageVolumesRaiseTheTop")

    def sign(self, pod: Pod) -> Hashable:
        return pod.images, self._volume_images(pod)

    def _volume_images(self, pod: Pod) -> tuple[str, ...]:
        """Images of volumes: they count in the sum; in what a pod could reach at most from 1.37 on."""
        if not (self._with_volumes and pod.volumes):
            return ()
        return tuple(
            string(mapping(volume, "image", "spec.volumes"), "reference", "spec.volumes.image")
            for volume in pod.volumes
            if volume.get("image") is not None
        )

    def score(self, state: None, pod: Pod, nodes: NodeColumns, rows: Rows) -> Scores:
        snapshot = self.handle.snapshot
        n_nodes = len(snapshot.order)
        table = snapshot.nodes
        sizes = None
        of_volumes = self._volume_images(pod)
        for image in (*pod.images, *of_volumes):
            name = normalized_image_name(image)
            holders = table.image_nodes.get(name)
            if not holders:
                continue
            if sizes is None:
                sizes = np.zeros(table.capacity, np.int64)
            spread = float(len(holders)) / float(n_nodes)
            sizes[list(holders)] += int(float(table.image_size_bytes[name]) * spread)
        if sizes is None:
            return np.zeros(len(rows), np.int64)
        n_images = len(pod.images) + (len(of_volumes) if self._volumes_raise_the_top else 0)
        top = _MAX_CONTAINER_THRESHOLD_BYTES * n_images
        clipped = np.clip(sizes[rows], _MIN_THRESHOLD_BYTES, top)
        return MAX_NODE_SCORE * (clipped - _MIN_THRESHOLD_BYTES) // (top - _MIN_THRESHOLD_BYTES)


def normalized_image_name(name: str) -> str:
    """The name with `:latest` when it carries no tag.

    Source: image_locality.go normalizedImageName, v1.34
    """
    return f"{name}:latest" if name.rfind(":") <= name.rfind("/") else name
