"""``python -m clusterregistry.crinit``: the same as the ``crinit`` script."""

from clusterregistry.crinit.entry import run

run()
