"""Schemas of kinds, compiled once to functions that validate, prune and recognise objects."""
