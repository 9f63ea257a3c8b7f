"""Authentication: establishes the user of a request.

``interface`` is the port, each authenticator is one module, and ``union`` defines their order. Authenticators decide on
the identity only; ``authz`` decides what the user may do. They never read a body, never write, and know neither routes
nor resources.
"""
