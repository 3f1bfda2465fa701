"""Recorders: they listen to the core's events and turn what they see into snapshots.

They keep ids, numbers and weak references, never a tensor: holding one would change the lifetimes
that are being drawn.
"""
