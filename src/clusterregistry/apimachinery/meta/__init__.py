"""The parts that all kinds share: object metadata, Status and its errors, field errors, names, selectors, times.

Wire objects are plain dicts in the API's own camelCase. Nothing here may name a particular kind.
"""
