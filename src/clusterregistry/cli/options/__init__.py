"""Options stated once, as fields of dataclasses.

Flags, environment variables, files, help and reference pages follow from them.
"""
