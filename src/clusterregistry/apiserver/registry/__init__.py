"""The generic registry: stores, lists and watches the objects of a resource.

``resource`` defines a resource, ``store`` reads and writes its objects, ``list`` lists them, ``broadcaster`` sends
changes to watches, ``errors`` turns storage errors into API errors. It knows storage and API types, nothing of HTTP.
"""
