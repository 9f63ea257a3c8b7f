"""Credentials for clusters by the rules of an operator: ``access.yaml`` says which cluster gets which credential.

``open_access`` reads the file and returns ``AccessRules``, which implements ``MemberAccess`` of the observer. The
object of a cluster fills placeholders and names a key; paths, commands and namespaces stand in ``access.yaml`` alone.
"""

from clusterregistry.controllers.access.configuration import AccessFileError
from clusterregistry.controllers.access.rules import AccessRules, open_access

__all__ = ["AccessFileError", "AccessRules", "open_access"]
