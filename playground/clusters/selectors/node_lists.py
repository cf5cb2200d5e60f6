"""Nodes in lists, found by parts of their names or by labels."""

from dataclasses import dataclass
from typing import Final

from playground.clusters.models import Cluster, Node

PAGE_SIZE: Final = 100


@dataclass(frozen=True)
class NodePage:
    """A page of nodes, from 1, and how many were found."""

    nodes: list[Node]
    n_found: int
    page: int
    n_pages: int


def node_page(cluster: Cluster, words: str, *, page: int = 1, limit: int = PAGE_SIZE) -> NodePage:
    """One page of the nodes that have all the words, by name. Two queries.

    Parameters
    ----------
    words
        Each a part of the name, or a label ``key=value``.
    """
    found = Node.objects.filter(cluster=cluster).defer("manifest")
    parts = words.split()
    for part in parts:
        if "=" not in part:
            found = found.filter(name__contains=part)
    wanted = [part.partition("=")[::2] for part in parts if "=" in part]
    if wanted:
        # Labels have dots and slashes in their keys, and databases differ in how they ask for those.
        labels = found.order_by("name").values_list("name", "labels")
        names = [name for name, has in labels if all(has.get(key) == value for key, value in wanted)]
        n_found = len(names)
        found = Node.objects.filter(cluster=cluster).defer("manifest")
    else:
        names, n_found = None, found.count()
    n_pages = max(1, -(-n_found // limit))
    page = min(max(1, page), n_pages)
    first = (page - 1) * limit
    if names is not None:
        found = found.filter(name__in=names[first : first + limit])
        first = 0
    return NodePage(list(found.order_by("name")[first : first + limit]), n_found, page, n_pages)


__all__ = ["NodePage", "node_page"]
