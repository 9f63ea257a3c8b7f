"""Credentials from a command that the kubeconfig names, as managed clusters have them."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from typing import Any

from clusterregistry.apimachinery.operator_error import OperatorError

_PATIENCE = 60.0


def credentials(plugin: Mapping[str, Any]) -> Mapping[str, Any]:
    """The ``status`` of the ExecCredential that the command prints. Raises OperatorError."""
    command = str(plugin.get("command") or "")
    arguments = [str(argument) for argument in plugin.get("args") or []]
    try:
        done = subprocess.run(  # noqa: S603 - the user's own kubeconfig names it, as for kubectl
            [command, *arguments], env=_environment(plugin), check=True, stdout=subprocess.PIPE, timeout=_PATIENCE
        )
        status = json.loads(done.stdout)["status"]
    except OSError as error:
        raise _failed(command, plugin, error.strerror or str(error)) from None
    except subprocess.SubprocessError as error:
        raise _failed(command, plugin, str(error)) from None
    except (ValueError, KeyError, TypeError):
        raise _failed(command, plugin, "it does not print an ExecCredential with a status") from None
    if not isinstance(status, dict):
        raise _failed(command, plugin, "it does not print an ExecCredential with a status")
    return status


def _environment(plugin: Mapping[str, Any]) -> dict[str, str]:
    asked = {
        "apiVersion": plugin.get("apiVersion") or "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "spec": {"interactive": False},
    }
    added = {str(each["name"]): str(each["value"]) for each in plugin.get("env") or []}
    return {**os.environ, "KUBERNETES_EXEC_INFO": json.dumps(asked), **added}


def _failed(command: str, plugin: Mapping[str, Any], why: str) -> OperatorError:
    hint = str(plugin.get("installHint") or "")
    return OperatorError(
        f'the kubeconfig\'s command "{command}" gives no credentials: {why}',
        remedy=hint or "try the same context with kubectl: what helps there helps here",
    )
