"""The handlers of resources, one verb a file.

``request`` and ``request_info`` are the request, ``options`` reads the query, ``negotiation`` picks the representation,
``decoder`` decodes bodies and ``encoding`` encodes responses. The verbs call ``registry.store`` and know nothing of the
storage. Filters authorize requests; handlers get the objects that a user may see, and check the right to create where a
PUT or an apply creates (``request.require``).
"""
