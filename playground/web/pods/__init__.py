"""Pods: submitted, listed, their stories, and those of their groups."""
