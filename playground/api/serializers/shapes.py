"""What answers are made of, in one word a field."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from drf_spectacular.utils import PolymorphicProxySerializer, extend_schema_field
from rest_framework import serializers

from playground.api.serializers.answers import MANIFEST, Answer, Choice, Manifest

Field = serializers.Field[Any, Any, Any, Any]


def text(words: str = "", **how: Any) -> serializers.CharField:
    return serializers.CharField(help_text=words or None, **how)


def word(*choices: str, words: str = "", **how: Any) -> Choice:
    """One of some words."""
    return Choice(list(choices), help_text=words or None, **how)


def whole(words: str = "", **how: Any) -> serializers.IntegerField:
    return serializers.IntegerField(help_text=words or None, **how)


def number(words: str = "", **how: Any) -> serializers.FloatField:
    return serializers.FloatField(help_text=words or None, **how)


def flag(words: str = "", **how: Any) -> serializers.BooleanField:
    return serializers.BooleanField(help_text=words or None, **how)


def moment(words: str = "", **how: Any) -> serializers.DateTimeField:
    return serializers.DateTimeField(help_text=words or None, **how)


def many(child: Field, words: str = "", **how: Any) -> serializers.ListField:
    return serializers.ListField(child=child, help_text=words or None, **how)


def texts(words: str = "", **how: Any) -> serializers.ListField:
    return many(serializers.CharField(), words, **how)


def by_name(child: Field, words: str = "", **how: Any) -> serializers.DictField:
    """An object whose keys are names."""
    return serializers.DictField(child=child, help_text=words or None, **how)


@extend_schema_field({"oneOf": [MANIFEST, {"type": "array", "items": MANIFEST}]})
class Manifests(serializers.Field[Any, Any, Any, Any]):
    """One such object, or several."""


@extend_schema_field({"type": ["integer", "number", "string"]})
class Figure(serializers.Field[Any, Any, Any, Any]):
    """A number, or an amount in words."""


def one_of(name: str, shapes: Iterable[type[Answer]], **how: Any) -> Any:
    """One of several shapes, told apart by the fields they have."""
    return PolymorphicProxySerializer(
        component_name=name, serializers=list(shapes), resource_type_field_name=None, **how
    )


__all__ = [
    "Figure",
    "Manifest",
    "Manifests",
    "by_name",
    "flag",
    "many",
    "moment",
    "number",
    "one_of",
    "text",
    "texts",
    "whole",
    "word",
]
