"""The life of objects: ``store`` prepares, validates and writes them as a ``strategy`` says.

It knows storage and API types, nothing of HTTP. ``definitions`` says what makes a resource.
"""
