"""The entry point of this package: the managed fields of the objects of one kind.

There are two kinds of writes. An update (create, PUT, JSON, merge and strategic merge patch) comes with the new
object: its manager owns every field that the update changes. An apply comes with a configuration, which is merged
into the live object: its manager owns every field of the configuration, and the apply fails if it would change a
field of another manager, unless it is forced.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from clusterregistry.apimachinery.fieldmanager.apply import Applier
from clusterregistry.apimachinery.fieldmanager.managed_fields import Endpoint
from clusterregistry.apimachinery.fieldmanager.update import Updater
from clusterregistry.apimachinery.fieldmanager.versions import Object, Versions, View

__all__ = ["FieldManager", "View"]


class FieldManager(Updater):
    """Maintains the managed fields of objects that are written in one version through one endpoint.

    ``record_update`` is inherited.
    """

    def __init__(  # noqa: PLR0913 - the properties of an endpoint, all by keyword
        self,
        views: Mapping[str, View],
        *,
        api_version: str,
        kind: str,
        subresource: str,
        reset_fields: frozenset[str],
        blank: Object | None = None,
        now: Callable[[], str],
    ) -> None:
        """``reset_fields`` are the fields that this endpoint does not write, such as ``spec`` or ``status.conditions``.

        A new object is compared with ``blank``: the fields that are equal in both have no manager.
        """
        endpoint = Endpoint(api_version, kind, subresource, now)
        versions = Versions(views, api_version=api_version, reset_fields=reset_fields)
        super().__init__(versions, endpoint, blank=blank or {})
        self._applier = Applier(versions, endpoint, updater=self)

    def apply(self, live: Object | None, configuration: Object, *, manager: str, force: bool) -> Object:
        """Returns the live object (None: there is none) with the configuration applied and new managed fields.

        Changes neither argument. Raises InvalidConfigurationError and, unless forced, ConflictsError.
        """
        return self._applier.apply(live, configuration, manager=manager, force=force)
