"""Hint functions of the in-tree plugins: when a pod that one rejected is worth another try.

Pure functions of the pod and the changed object; a plugin's `events` registers them.
"""
