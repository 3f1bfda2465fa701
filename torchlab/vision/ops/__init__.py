"""Operators and layers for vision."""
