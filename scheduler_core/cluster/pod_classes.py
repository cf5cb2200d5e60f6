"""Classes of pods: a selector cannot tell apart two pods of one namespace with the same labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from scheduler_core.cluster.vocabulary import Vocabulary
from scheduler_core.objects.labels import LabelSelector

Anchor = tuple[str, str]
"""A (label key, value) a pod must carry to be selected."""


def anchors_of(selector: LabelSelector) -> tuple[Anchor, ...] | None:
    """Labels of which a selected pod carries exactly one; None when the selector asks for no given value."""
    if selector.is_nothing:
        return ()
    for requirement in selector.requirements:
        if requirement.operator in ("in", "=", "=="):
            return tuple((requirement.key, value) for value in dict.fromkeys(requirement.values))
    return None


class PodClasses:
    """Pod classes of a vocabulary, found by the labels they carry."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._interned = vocabulary.pod_classes
        self._labels: list[Mapping[str, str]] = []
        self._by_label: dict[Anchor, list[int]] = {}

    def __len__(self) -> int:
        return len(self._interned)

    def namespace(self, class_id: int) -> str:
        return self._interned[class_id][0]

    def labels(self, class_id: int) -> Mapping[str, str]:
        if class_id >= len(self._labels):
            self._catch_up()
        return self._labels[class_id]

    def candidates(self, anchors: tuple[Anchor, ...] | None) -> Iterable[int]:
        """Classes a selector with these anchors may select."""
        self._catch_up()
        if anchors is None:
            return range(len(self._labels))
        return [class_id for anchor in anchors for class_id in self._by_label.get(anchor, ())]

    def _catch_up(self) -> None:
        for class_id in range(len(self._labels), len(self._interned)):
            items = self._interned[class_id][1]
            self._labels.append(dict(items))
            for item in items:
                self._by_label.setdefault(item, []).append(class_id)
