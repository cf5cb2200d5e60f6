"""Karpenter's provisioning and consolidation as a model: not proved against recorded decisions."""
