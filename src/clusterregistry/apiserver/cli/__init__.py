"""The commands that any server made of this package has: ``standalone``, ``aggregated`` and ``storage``."""
