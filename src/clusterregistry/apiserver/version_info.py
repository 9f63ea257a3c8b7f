"""``/version``: which server this is.

kubectl compares ``major`` and ``minor`` with its own, so they name the Kubernetes API level that this
server behaves like; ``gitVersion`` carries the name and the version of the product behind it.
"""

from __future__ import annotations

import platform

from clusterregistry.apiserver.product import Product

_MAJOR, _MINOR = "1", "36"


def version_info(product: Product) -> dict[str, str]:
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    return {
        "major": _MAJOR,
        "minor": _MINOR,
        "emulationMajor": _MAJOR,
        "emulationMinor": _MINOR,
        "minCompatibilityMajor": _MAJOR,
        "minCompatibilityMinor": str(int(_MINOR) - 1),
        "gitVersion": f"v{_MAJOR}.{_MINOR}.0+{product.name}.{product.version}",
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "",
        "goVersion": f"python{platform.python_version()}",
        "compiler": platform.python_implementation(),
        "platform": f"{platform.system().lower()}/{machine}",
    }
