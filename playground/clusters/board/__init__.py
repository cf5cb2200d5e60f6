"""Nodes, pods and clusters for pages and lists."""
