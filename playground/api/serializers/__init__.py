"""Shapes: what requests must be, and what answers are (for the OpenAPI document)."""
