"""What a pod asks of GPUs. As in the authors' simulator it stands in annotations: kube's own plugins see none of it."""

from functools import lru_cache
from typing import NamedTuple

COUNT = "alibabacloud.com/gpu-count"
"""Annotation of a pod, and allocatable of a node: devices."""
MILLI = "alibabacloud.com/gpu-milli"
"""Annotation of a pod: thousandths of each device it asks for."""
MODEL = "alibabacloud.com/gpu-card-model"
"""Label of a node; annotation of a pod, where it may name several, joined by `|`."""
INDEX = "alibabacloud.com/gpu-index"
"""Annotation of a pod that was given its devices before: their numbers, joined by `-`."""

WHOLE = 1000
"""Milli of a whole device."""


class GpuRequest(NamedTuple):
    """`count` devices with `milli` free of each, on a node of one of `models` (any where there are none)."""

    count: int
    milli: int
    models: tuple[str, ...] = ()

    @property
    def is_share(self):
        return self.count == 1 and self.milli < WHOLE

    @property
    def total(self):
        return self.count * self.milli


def request_of(pod):
    """The pod's GpuRequest, None for a pod that asks for no GPU.

    Raises
    ------
    ValueError
        Names the annotation and what it says.
    """
    annotations = pod.manifest["metadata"].get("annotations")
    if not annotations or COUNT not in annotations:
        return None
    return _request(annotations[COUNT], annotations.get(MILLI, str(WHOLE)), annotations.get(MODEL, ""))


@lru_cache(maxsize=4096)
def _request(count, milli, models):
    n_devices = _whole_number(COUNT, count, 0, 64)
    if not n_devices:
        return None
    return GpuRequest(
        n_devices, _whole_number(MILLI, milli, 1, WHOLE), tuple(filter(None, models.split("|")))
    )


def _whole_number(key, text, least, most):
    text = str(text)
    if not (text.isascii() and text.isdecimal() and least <= int(text) <= most):
        raise ValueError(f'annotation {key}: "{text}" is not a whole number from {least} to {most}')
    return int(text)


def given_devices(pod, n_devices):
    """Devices an annotation says the pod was given; None where it says none the node has."""
    text = (pod.manifest["metadata"].get("annotations") or {}).get(INDEX, "")
    parts = str(text).split("-")
    if all(part.isascii() and part.isdecimal() and int(part) < n_devices for part in parts):
        return tuple(int(part) for part in parts)
    return None
