"""The options of commands that speak to a registry as a person does: by a kubeconfig."""

# ruff: noqa: RUF009 - option() declares a field, it does not compute a default
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from clusterregistry.apimachinery.operator_error import OperatorError
from clusterregistry.cli.options.field import option
from clusterregistry.cli.options.value_types import FILE, TEXT
from clusterregistry.client import kubeconfig, rest_config
from clusterregistry.client.errors import ConfigError
from clusterregistry.client.rest_config import RestConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryOptions:
    """Registry."""

    kubeconfig: Path | None = option(
        None,
        kind=FILE,
        help="The kubeconfig of the registry.",
        default_shown="$KUBECONFIG, else ~/.kube/config",
        example="--kubeconfig=admin.kubeconfig",
    )
    context: str = option("", kind=TEXT, help="The context in the kubeconfig.", default_shown="the current one")


def registry_config(options: RegistryOptions, environ: Mapping[str, str], *, user_agent: str) -> RestConfig:
    """The access to the registry. Raises OperatorError."""
    try:
        found = kubeconfig.load(kubeconfig.paths(environ, explicit=str(options.kubeconfig or ""))).context(
            options.context
        )
        return rest_config.from_context(found, user_agent=user_agent, read_files=True)
    except ConfigError as error:
        remedy = (
            "name the kubeconfig of the registry, such as DATA_DIR/admin.kubeconfig, with --kubeconfig, and a context "
        )
        raise OperatorError(str(error), remedy=f"{remedy}of it with --context") from None
