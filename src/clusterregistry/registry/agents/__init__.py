"""What agents and joining members may do: an authorizer, admissions, and the approval of their certificates.

An agent is a user for one cluster, and so is a member that joins with a bootstrap token. Everything here decides from
the name of the user. Docs: docs/decisions/0026-agents.md.
"""
