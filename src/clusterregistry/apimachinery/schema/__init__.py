"""Schemas of kinds, compiled once to functions that validate and prune objects."""
