"""Role-based access control: decides from the roles and bindings that ``registry.rbac`` sets.

``rules`` has what one rule allows, ``policy`` all roles and bindings, the grants of a user and the authorizer, and
``coverage`` which rights a user lacks who would grant them to others. Everything is in memory and pure: nothing here
reads storage or knows how roles are served.
"""
