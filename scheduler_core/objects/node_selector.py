"""Which nodes a pod asks for: `nodeSelector` and node affinity.

Source: staging/src/k8s.io/component-helpers/scheduling/corev1/nodeaffinity/nodeaffinity.go, v1.34.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from scheduler_core.errors import FieldError, InvalidObject, aggregate, invalid, not_supported
from scheduler_core.objects.fields import (
    SelectorError,
    integer,
    mapping,
    mappings,
    string,
    string_map,
    strings,
)
from scheduler_core.objects.labels import (
    FieldRequirement,
    FieldSelector,
    LabelSelector,
    Operator,
    Requirement,
    requirement_errors,
    requirement_of,
    selector_from_labels,
)

NAME_FIELD: Final = "metadata.name"
"""The one field of a node that selectors can see."""

_OPERATORS: Final[dict[str, Operator]] = {
    "In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!", "Gt": "gt", "Lt": "lt",
}  # fmt: skip
_FIELD_OPERATORS: Final = ("In", "NotIn")
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


@dataclass(frozen=True, slots=True)
class NodeSelectorTerm:
    """One term that is not empty: all its expressions and fields hold.

    Attributes
    ----------
    labels : LabelSelector
        What the node's labels must be.
    fields : FieldSelector
        What the node's fields must be; not asked of a node without a name.
    errors : tuple of str
        Why the term cannot be used; then it matches nothing.
    """

    labels: LabelSelector
    fields: FieldSelector
    errors: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        """Whether a node matches, as far as the term can be used."""
        if self.errors or not self.labels.matches(labels):
            return False
        return not name or self.fields.matches({NAME_FIELD: name})


@dataclass(frozen=True, slots=True)
class NodeSelector:
    """Any term holds (`LazyErrorNodeSelector`). Without terms nothing matches.

    Attributes
    ----------
    terms : tuple of NodeSelectorTerm
        Without the empty ones, which match nothing.
    name_sets : tuple of (frozenset of str or None)
        For each term as written, empty ones too, the node names it allows; None if it allows any.
    """

    terms: tuple[NodeSelectorTerm, ...] = ()
    name_sets: tuple[frozenset[str] | None, ...] = ()

    def match(self, labels: Mapping[str, str], name: str) -> bool:
        """Whether a node with these labels and this name matches.

        Raises
        ------
        SelectorError
            No term matches and at least one cannot be used.
        """
        errors: list[str] = []
        for term in self.terms:
            if term.errors:
                errors.extend(term.errors)
            elif term.matches(labels, name):
                return True
        if errors:
            raise SelectorError(aggregate(errors))
        return False

    def strict_error(self) -> str | None:
        """What strict construction says (`NewNodeSelector`), None if all terms can be used."""
        errors = [message for term in self.terms for message in term.errors]
        return aggregate(errors) if errors else None

    def pre_filter_node_names(self) -> frozenset[str] | None:
        """The nodes that can match by their name; None if a term does not ask for a name.

        Empty if every term asks for two names at once. The set has no order: sort before going through it.

        Source: pkg/scheduler/framework/plugins/nodeaffinity/node_affinity.go PreFilter, v1.34.
        """
        if not self.name_sets:
            return None
        names: frozenset[str] = frozenset()
        for name_set in self.name_sets:
            if name_set is None:
                return None
            names |= name_set
        return names


class RequiredNodeAffinity(NamedTuple):
    """What a pod's `nodeSelector` and required node affinity demand together.

    Attributes
    ----------
    labels : LabelSelector or None
        The pod's `nodeSelector`, None without one.
    selector : NodeSelector or None
        The required terms, None without them.
    """

    labels: LabelSelector | None = None
    selector: NodeSelector | None = None

    @property
    def is_everything(self) -> bool:
        """The pod demands nothing: every node matches."""
        return self.labels is None and self.selector is None

    def match(self, labels: Mapping[str, str], name: str) -> bool:
        """Whether a node matches.

        Raises
        ------
        SelectorError
            As `NodeSelector.match`; never if `nodeSelector` already fails.
        """
        if self.labels is not None and not self.labels.matches(labels):
            return False
        return self.selector is None or self.selector.match(labels, name)

    def pre_filter_node_names(self) -> frozenset[str] | None:
        """As `NodeSelector.pre_filter_node_names`."""
        return None if self.selector is None else self.selector.pre_filter_node_names()


@dataclass(frozen=True, slots=True)
class PreferredTerms:
    """Weighted terms (`PreferredSchedulingTerms`), those of weight 0 and the empty ones left out."""

    terms: tuple[tuple[int, NodeSelectorTerm], ...] = ()

    @property
    def is_empty(self) -> bool:
        return not self.terms

    def score(self, labels: Mapping[str, str], name: str) -> int:
        """Sum of the weights of the terms a node matches."""
        return sum(weight for weight, term in self.terms if term.matches(labels, name))


def node_selector_from(document: Mapping[str, Any], path: str = "") -> NodeSelector:
    """A v1 NodeSelector. What is wrong with a term is kept until it matters.

    Raises
    ------
    InvalidObject
        A field is of another type.
    """
    terms = []
    name_sets = []
    for term_path, term in mappings(document, "nodeSelectorTerms", path):
        parsed = _term(term, term_path)
        if parsed is not None:
            terms.append(parsed)
        name_sets.append(_name_set(term, term_path))
    return NodeSelector(tuple(terms), tuple(name_sets))


def required_node_affinity_from(pod_spec: Mapping[str, Any]) -> RequiredNodeAffinity:
    """`GetRequiredNodeAffinity` for a pod's spec.

    Raises
    ------
    InvalidObject
        A field is of another type (`path` relative to the spec).
    """
    labels = string_map(pod_spec, "nodeSelector", "")
    required = mapping(mapping(pod_spec, "affinity", ""), "nodeAffinity", "affinity")
    document = mapping(required, _REQUIRED, "affinity.nodeAffinity")
    try:
        selector = None if required.get(_REQUIRED) is None else node_selector_from(document)
    except InvalidObject as error:
        path = f"affinity.nodeAffinity.{_REQUIRED}.{error.path}"
        raise InvalidObject(path, error.value, error.reason) from None
    return RequiredNodeAffinity(selector_from_labels(labels) if labels else None, selector)


def preferred_terms_from(terms: Sequence[Any] | None) -> PreferredTerms:
    """A list of v1 PreferredSchedulingTerm.

    Raises
    ------
    InvalidObject
        A field is of another type.
    SelectorError
        A term that counts cannot be used, in upstream's words.
    """
    parsed = []
    errors: list[str] = []
    for path, document in mappings({"": terms}, "", ""):
        preference = mapping(document, "preference", path)
        weight = integer(document, "weight", path)
        if weight == 0:
            continue
        term = _term(preference, path)
        if term is None:
            continue
        if term.errors:
            errors.extend(term.errors)
        else:
            parsed.append((weight, term))
    if errors:
        raise SelectorError(aggregate(errors))
    return PreferredTerms(tuple(parsed))


def term_errors(document: Mapping[str, Any], path: str) -> list[FieldError]:
    """What is wrong with a term; empty if nothing is."""
    errors: list[FieldError] = []
    _term(document, path, errors)
    return errors


def _term(
    document: Mapping[str, Any], path: str, errors: list[FieldError] | None = None
) -> NodeSelectorTerm | None:
    """The term, None if it is empty; what is wrong with it is added to `errors`."""
    expressions = mappings(document, "matchExpressions", path)
    fields = mappings(document, "matchFields", path)
    if not expressions and not fields:
        return None
    errors = [] if errors is None else errors
    requirements = [_label_requirement(item, where, errors) for where, item in expressions]
    field_requirements = [_field_requirement(item, where, errors) for where, item in fields]
    if errors:
        return NodeSelectorTerm(LabelSelector(), FieldSelector(), tuple(map(str, errors)))
    return NodeSelectorTerm(
        LabelSelector().add(_present(requirements)),
        FieldSelector(tuple(item for item in field_requirements if item is not None)),
    )


def _present(requirements: Iterable[Requirement | None]) -> Iterable[Requirement]:
    return (item for item in requirements if item is not None)


def _label_requirement(
    document: Mapping[str, Any], path: str, errors: list[FieldError]
) -> Requirement | None:
    key, operator_text, values = _expression(document, path)
    operator = _OPERATORS.get(operator_text)
    if operator is None:
        errors.append(not_supported(f"{path}.operator", operator_text, tuple(_OPERATORS)))
        return None
    found = requirement_errors(key, operator, values, path)
    errors.extend(found)
    return None if found else requirement_of(key, operator, values or ())


def _field_requirement(
    document: Mapping[str, Any], path: str, errors: list[FieldError]
) -> FieldRequirement | None:
    key, operator, values = _expression(document, path)
    if operator not in _FIELD_OPERATORS:
        errors.append(not_supported(f"{path}.operator", operator, _FIELD_OPERATORS))
        return None
    if values is None or len(values) != 1:
        errors.append(invalid(f"{path}.values", values, "must have one element"))
        return None
    return FieldRequirement(key, values[0], negated=operator == "NotIn")


def _expression(document: Mapping[str, Any], path: str) -> tuple[str, str, list[str] | None]:
    values = None if document.get("values") is None else list(strings(document, "values", path))
    return string(document, "key", path), string(document, "operator", path), values


def _name_set(term: Mapping[str, Any], path: str) -> frozenset[str] | None:
    """The names all `metadata.name In` fields of a term have in common, None without such a field."""
    names: frozenset[str] | None = None
    for field_path, field in mappings(term, "matchFields", path):
        key, operator, values = _expression(field, field_path)
        if key == NAME_FIELD and operator == "In":
            names = frozenset(values or ()) if names is None else names & frozenset(values or ())
    return names
