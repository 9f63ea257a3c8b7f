"""Role based access control: decides from roles and bindings, which somebody else keeps and hands in.

``rules`` says what one rule allows, ``policy`` holds all roles and bindings, ``grants`` is what one user has of them,
``authorizer`` answers the port, and ``covering`` tells which rights somebody lacks who wants to give them away. All of
it is in memory and pure: nothing here reads storage or knows how roles are served.
"""
