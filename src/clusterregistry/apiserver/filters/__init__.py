"""The filters around every request, one a file. ``chain`` has their order.

A filter takes the next handler and returns a handler (``endpoints.request.Filter``). It knows requests and responses,
not resources.
"""
