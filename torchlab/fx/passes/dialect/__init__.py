"""Passes for the operators of one set."""
