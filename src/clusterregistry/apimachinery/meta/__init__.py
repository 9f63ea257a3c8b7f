"""What all kinds share: object metadata, Status and its errors, field errors, selectors, schemas.

Wire objects are plain dicts in the API's own camelCase. Nothing here may name a particular kind.
"""
