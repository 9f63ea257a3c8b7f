"""Who owns which field, and merging what is applied: the part of Kubernetes that is called server-side apply.

A pure library: it takes objects as wire dicts and a schema, and gives back objects and field sets. It must
not read or write anything, know HTTP, or raise for any object that passed decoding.

Read it from the bottom up: ``elements`` and ``field_sets`` are the vocabulary; ``comparing``, ``owning``,
``merging``, ``removing`` and ``checking`` each walk values along a schema for one purpose;
``managed_fields`` keeps the entries of an object; ``ownership`` puts it all together. The whole is explained
in ``docs/architecture/apply.md``.
"""
