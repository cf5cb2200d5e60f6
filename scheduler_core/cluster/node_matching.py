"""Selectors over many nodes: each requirement is asked once per distinct label value, then gathered."""

from __future__ import annotations

import numpy as np

from scheduler_core.cluster.node_table import Bool, NodeColumns, Rows
from scheduler_core.objects.labels import FieldSelector, LabelSelector, Requirement
from scheduler_core.objects.node_selector import NodeSelector, NodeSelectorTerm, RequiredNodeAffinity


def matching_requirement(requirement: Requirement, nodes: NodeColumns, rows: Rows) -> Bool:
    """Which rows' labels meet one requirement, shape (len(rows),)."""
    key = requirement.key
    column = nodes.label_column(key)
    interned = nodes.vocabulary.label_values[key]
    if requirement.operator in ("in", "=", "=="):
        # Looked up the other way round: a host name may have as many values as there are nodes.
        answers = np.zeros(len(interned) + 1, np.bool_)
        answers[[found for value in requirement.values if (found := interned.find(value)) >= 0]] = True
        return answers[column[rows]]
    # One more place at the end answers for nodes without the label: their value id is -1.
    answers = np.empty(len(interned) + 1, np.bool_)
    for value_id, value in enumerate(interned.values):
        answers[value_id] = requirement.matches({key: value})
    answers[-1] = requirement.matches({})
    return answers[column[rows]]


def matching_labels(selector: LabelSelector, nodes: NodeColumns, rows: Rows) -> Bool:
    """Which rows' labels a selector matches, shape (len(rows),)."""
    if selector.is_nothing:
        return np.zeros(len(rows), np.bool_)
    mask = np.ones(len(rows), np.bool_)
    for requirement in selector.requirements:
        mask &= matching_requirement(requirement, nodes, rows)
    return mask


def matching_fields(selector: FieldSelector, nodes: NodeColumns, rows: Rows) -> Bool:
    """Which rows' fields (`metadata.name` is the only one there is) a selector matches."""
    mask = np.ones(len(rows), np.bool_)
    for requirement in selector.requirements:
        if requirement.field == "metadata.name":
            mask &= nodes.is_named(requirement.value, rows) != requirement.negated
        else:
            mask &= requirement.matches({})
    return mask


def matching_term(term: NodeSelectorTerm, nodes: NodeColumns, rows: Rows) -> Bool:
    """Which rows one node selector term matches; a term that cannot be used matches none."""
    if term.errors:
        return np.zeros(len(rows), np.bool_)
    mask = matching_fields(term.fields, nodes, rows)
    if term.labels.is_nothing or term.labels.requirements:
        mask &= matching_labels(term.labels, nodes, rows)
    return mask


def matching_node_selector(selector: NodeSelector, nodes: NodeColumns, rows: Rows) -> Bool:
    """Which rows any term matches."""
    mask = None
    for term in selector.terms:
        matched = matching_term(term, nodes, rows)
        mask = matched if mask is None else mask | matched
    return np.zeros(len(rows), np.bool_) if mask is None else mask


def matching_required_affinity(affinity: RequiredNodeAffinity, nodes: NodeColumns, rows: Rows) -> Bool:
    """Which rows a pod's nodeSelector and required node affinity allow; errors count as no."""
    mask = np.ones(len(rows), np.bool_)
    if affinity.labels is not None:
        mask &= matching_labels(affinity.labels, nodes, rows)
    if affinity.selector is not None:
        mask &= matching_node_selector(affinity.selector, nodes, rows)
    return mask
