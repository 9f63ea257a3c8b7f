"""The options of commands that speak to a registry as a person does: by a kubeconfig."""

# ruff: noqa: RUF009 - option() declares a field, it does not compute a default
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from clusterregistry.apimachinery.operator_error import OperatorError
from clusterregistry.cli.options.field import option
from clusterregistry.cli.options.value_types import FILE, TEXT
from clusterregistry.client.errors import ConfigError
from clusterregistry.client.rest_config import RestConfig
from clusterregistry.controllers.registry_config import find_config


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeconfigOptions:
    """Registry."""

    kubeconfig: Path | None = option(
        None,
        kind=FILE,
        help="The kubeconfig of the registry.",
        default_shown="$KUBECONFIG, else the service account of the pod, else ~/.kube/config",
        example="--kubeconfig=admin.kubeconfig",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryOptions(KubeconfigOptions):
    """Registry."""

    context: str = option("", kind=TEXT, help="The context in the kubeconfig.", default_shown="the current one")


def registry_config(options: RegistryOptions, environ: Mapping[str, str], *, user_agent: str) -> RestConfig:
    """The access to the registry. Raises OperatorError."""
    return config_of_context(environ, file=options.kubeconfig, context=options.context, user_agent=user_agent)


def config_of_context(
    environ: Mapping[str, str], *, file: Path | None, context: str, user_agent: str, flag: str = "--context"
) -> RestConfig:
    """The same where ``flag`` names the context. Raises OperatorError."""
    try:
        return find_config(environ, file=file, context=context, user_agent=user_agent)
    except ConfigError as error:
        remedy = (
            "name the kubeconfig of the registry, such as DATA_DIR/admin.kubeconfig, with --kubeconfig, and a context "
        )
        raise OperatorError(str(error), remedy=f"{remedy}of it with {flag}") from None
