"""Our own teaching scenarios, shared like everybody's."""

from __future__ import annotations

import hashlib
from typing import Any

from django.db import transaction

from playground.clusters.errors import NotFound
from playground.clusters.models import Cluster
from playground.engine.scenarios import gallery_documents
from playground.scenarios.models import Scenario
from playground.scenarios.services.forking import fork
from playground.scenarios.services.shares import share


def share_gallery() -> int:
    """Share what is not shared yet; the number shared."""
    documents = gallery_documents()
    shared = dict(
        Scenario.objects.filter(gallery_name__in=documents).values_list("gallery_name", "share_key")
    )
    n_new = 0
    for name, document in documents.items():
        if shared.get(name) != gallery_key(name, document):
            share_one(name, document)
            n_new += 1
    return n_new


def share_one(name: str, document: bytes) -> Scenario:
    """Share one of them; a new edition takes the old one's place, whose link stays."""
    with transaction.atomic():
        Scenario.objects.filter(gallery_name=name).exclude(share_key=gallery_key(name, document)).update(
            gallery_name=""
        )
        return share(
            document=document,
            visibility=Scenario.Visibility.PUBLIC,
            gallery_name=name,
            share_key=gallery_key(name, document),
        ).scenario


def gallery_key(name: str, document: bytes) -> str:
    """Every edition of a teaching scenario is a share of its own, words included."""
    return hashlib.sha256(b"gallery/" + name.encode() + b"/" + document).hexdigest()


def gallery_scenario(name: str) -> Scenario:
    """The share of a teaching scenario, made if it is not there yet.

    Raises
    ------
    NotFound
    """
    documents = gallery_documents()
    if name not in documents:
        raise NotFound(f'there is no scenario "{name}" in the gallery', kind="Scenario", name=name)
    known = Scenario.objects.filter(share_key=gallery_key(name, documents[name])).first()
    return known or share_one(name, documents[name])


def open_gallery_scenario(*, name: str, owner: Any = None) -> Cluster:
    """A new cluster that begins as a teaching scenario does.

    Raises
    ------
    NotFound
    """
    return fork(scenario=gallery_scenario(name), owner=owner)
