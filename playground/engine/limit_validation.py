"""What an API server refuses of ResourceQuotas and LimitRanges.

Source: pkg/apis/core/validation/validation.go (ValidateResourceQuota, ValidateLimitRange), v1.34
Differs: names of resources are not checked.
"""

from collections.abc import Mapping
from typing import Any, Final

from scheduler_core.errors import InvalidObject
from scheduler_core.objects.fields import mapping, mappings, string, strings
from scheduler_core.objects.quantity import Quantity, QuantityError, quantity_from

Document = Mapping[str, Any]

_COMPUTE: Final = (
    *("cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"),
    *("ephemeral-storage", "requests.ephemeral-storage", "limits.ephemeral-storage"),
)
_SCOPES: Final[Mapping[str, tuple[str, ...]]] = {
    "BestEffort": ("pods",),
    "NotBestEffort": ("pods", *_COMPUTE),
    "Terminating": ("pods", *_COMPUTE),
    "NotTerminating": ("pods", *_COMPUTE),
    "PriorityClass": ("pods", *_COMPUTE),
    "CrossNamespacePodAffinity": ("pods", *_COMPUTE),
    "VolumeAttributesClass": ("persistentvolumeclaims", "requests.storage"),
}
"""The scopes there are, and which of the standard resources each may go with."""
_STANDARD: Final = (
    *(
        "pods",
        *_COMPUTE,
        "configmaps",
        "persistentvolumeclaims",
        "replicationcontrollers",
        "requests.storage",
    ),
    *("resourcequotas", "secrets", "services", "services.loadbalancers", "services.nodeports"),
)
_APART: Final = (("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating"))
_EXISTS_ONLY: Final = tuple(
    name for name in _SCOPES if name not in ("PriorityClass", "VolumeAttributesClass")
)
_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist")


def check_quota(manifest: Document) -> None:
    """Check a ResourceQuota: its amounts and its scopes.

    Raises
    ------
    InvalidObject
    """
    spec = mapping(manifest, "spec", "")
    hard = mapping(spec, "hard", "spec")
    for name, value in hard.items():
        _amount(value, f"spec.hard[{name}]")
    scopes = list(strings(spec, "scopes", "spec"))
    _check_scopes(scopes, scopes, hard, "spec.scopes")
    selector = mapping(spec, "scopeSelector", "spec")
    place = "spec.scopeSelector.matchExpressions"
    selected = []
    for own, item in mappings(selector, "matchExpressions", "spec.scopeSelector"):
        name, operator = string(item, "scopeName", own), string(item, "operator", own)
        selected.append(name)
        values = strings(item, "values", own)
        if name in _EXISTS_ONLY and operator != "Exists":
            raise InvalidObject(
                f"{own}.operator",
                operator,
                f"must be 'Exists' when scope is any of {', '.join(_EXISTS_ONLY)}",
            )
        if operator not in _OPERATORS:
            raise InvalidObject(f"{own}.operator", operator, "not a valid selector operator")
        if operator in ("In", "NotIn") and not values:
            raise InvalidObject(
                f"{own}.values", None, "must be at least one value when `operator` is 'In' or 'NotIn'"
            )
        if operator in ("Exists", "DoesNotExist") and values:
            raise InvalidObject(
                f"{own}.values", values, "must be no value when `operator` is 'Exists' or 'DoesNotExist'"
            )
    _check_scopes(selected, selected, hard, f"{place}.scopeName")


def _check_scopes(names: list[str], shown: Any, hard: Document, place: str) -> None:
    for name in names:
        if name not in _SCOPES:
            raise InvalidObject(place, shown, "unsupported scope")
        if any(resource in _STANDARD and resource not in _SCOPES[name] for resource in hard):
            raise InvalidObject(place, shown, "unsupported scope applied to resource")
    if any(set(pair) <= set(names) for pair in _APART):
        raise InvalidObject(place, shown, "conflicting scopes")


def check_limit_range(manifest: Document) -> None:
    """Check a LimitRange: its amounts, and that they are in order.

    Raises
    ------
    InvalidObject
    """
    types = set()
    for place, item in mappings(mapping(manifest, "spec", ""), "limits", "spec"):
        type_ = string(item, "type", place)
        if not type_:
            raise InvalidObject(f"{place}.type", None, "is required")
        if type_ in types:
            raise InvalidObject(f"{place}.type", type_, "is there twice")
        types.add(type_)
        said = {
            key: {
                name: _amount(value, f"{place}.{key}[{name}]")
                for name, value in mapping(item, key, place).items()
            }
            for key in ("min", "defaultRequest", "default", "max", "maxLimitRequestRatio")
        }
        if type_ == "Pod":
            for key in ("default", "defaultRequest"):
                if said[key]:
                    raise InvalidObject(
                        f"{place}.{key}", dict(item[key]), "may not be specified when `type` is 'Pod'"
                    )
        if type_ == "PersistentVolumeClaim" and not any("storage" in said[key] for key in ("min", "max")):
            raise InvalidObject(
                f"{place}.limits",
                None,
                "either minimum or maximum storage value is required, but neither was provided",
            )
        _check_order(said, place)


_ORDER: Final = (
    ("min", "max", "min value {} is greater than max value {}", "min"),
    ("min", "defaultRequest", "min value {} is greater than default request value {}", "defaultRequest"),
    ("defaultRequest", "max", "default request value {} is greater than max value {}", "defaultRequest"),
    (
        *("defaultRequest", "default"),
        *("default request value {} is greater than default limit value {}", "defaultRequest"),
    ),
    ("min", "default", "min value {} is greater than default value {}", "default"),
    ("default", "max", "default value {} is greater than max value {}", "default"),
)
"""What may not be above what, the words for it, and which of the two is at fault."""


def _check_order(said: Mapping[str, Mapping[str, Quantity]], place: str) -> None:
    for low, high, words, blamed in _ORDER:
        for name, amount in said[low].items():
            other = said[high].get(name)
            if other is not None and amount.cmp(other) > 0:
                at_fault = amount if blamed == low else other
                raise InvalidObject(f"{place}.{blamed}[{name}]", str(at_fault), words.format(amount, other))
    for name, ratio in said["maxLimitRequestRatio"].items():
        if ratio.cmp(quantity_from(1)) < 0:
            raise InvalidObject(
                f"{place}.maxLimitRequestRatio[{name}]", str(ratio), f"ratio {ratio} is less than 1"
            )


def _amount(value: Any, place: str) -> Quantity:
    try:
        amount = quantity_from(value)
    except QuantityError as error:
        raise InvalidObject(place, value, str(error)) from None
    if amount.cmp(quantity_from(0)) < 0:
        raise InvalidObject(place, value, "must be greater than or equal to 0")
    return amount
