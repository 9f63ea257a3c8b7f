"""Managed fields and server-side apply, after structured-merge-diff.

A pure library: it takes objects as wire dicts and a schema, and returns objects and field sets. It must
not read or write anything, know HTTP, or raise for any object that passed decoding.

``field_manager`` is the entry point; ``update`` and ``apply`` are the two kinds of writes, ``versions`` is what both
share. ``path_element`` and ``field_set`` are the vocabulary. ``compare``, ``to_field_set``, ``merge``, ``prune`` and
``validate`` each walk values along a schema for one purpose. ``managed_fields`` are the entries of an object.
``docs/architecture/apply.md`` explains the whole.
"""
