"""The texts of --help: short at first, everything with --help=all."""

from __future__ import annotations

from collections.abc import Sequence

from clusterregistry.cli.options.help import help_text
from clusterregistry.crinit import options
from clusterregistry.crinit.settings import DEFAULT_IMAGE, Mode

EVERYTHING = "--help=all"
_FIRST = frozenset({
    "kubeconfig", "host-cluster-context", "cluster-registry-namespace", "image", "replicas", "api-server-service-type",
    "storage-class", "timeout", "dry-run", "output", "keep-data",
})  # fmt: skip
"""The flags that a newcomer needs, where a command has them."""

_IMAGE = f"registry.example.com/{DEFAULT_IMAGE}"

PROGRAM = f"""\
crinit deploys a cluster registry into a Kubernetes cluster, repairs and upgrades it there, and removes it.

Usage:
  crinit standalone COMMAND NAME [flags]    a registry with its own address, certificates and users
  crinit aggregated COMMAND NAME [flags]    a registry behind the host cluster's own API, with the host's users

Commands:
  init       deploy the registry NAME; run it again to repair it, to change it, or to renew certificates
  status     show what is there and whether it works
  upgrade    change the image: --image=IMAGE
  delete     remove it, with its data (--keep-data leaves them)

Other commands:
  crinit version       print the version (--short: only the version)
  crinit completion    print a script by which the shell completes commands and flags

First steps:
  crinit standalone init my-registry --host-cluster-context=my-cluster --image={_IMAGE}
  kubectl get clusters --context my-registry

Flags of a command: crinit standalone init --help

Exit status:
  0  done
  1  `status` has found something that is not as it should be
  2  the command line is wrong; every mistake is named
  3  it failed: the output says what was made, why it failed and how to clean up
"""

_ABOUT = {
    options.INIT: """\
Deploys the registry NAME into a host cluster, and adds a context NAME to your kubeconfig. Run it again at any time: it
repairs what is missing, changes what other flags ask for, and renews certificates. Flags that describe the registry
need not be repeated.""",
    options.STATUS: "Shows the objects of the registry NAME, and whether it works.",
    options.UPGRADE: "Changes the image of the registry NAME, and waits until the new one works.",
    options.DELETE: """\
Removes the registry NAME from its host cluster, with its data, and its context from your kubeconfig. Objects that
crinit did not make stay.""",
}

_EXAMPLES = {
    options.INIT: f"""\
  # With an image that the nodes of the host cluster can pull
  crinit {{mode}} init my-registry --host-cluster-context=my-cluster --image={_IMAGE}

  # Three replicas on three members of etcd, and the controller that observes clusters
  crinit {{mode}} init my-registry --host-cluster-context=my-cluster --replicas=3 --with-controller

  # See what would be applied, and change nothing
  crinit {{mode}} init my-registry --dry-run -o yaml""",
    options.STATUS: "  crinit {mode} status my-registry --host-cluster-context=my-cluster",
    options.UPGRADE: f"  crinit {{mode}} upgrade my-registry --host-cluster-context=my-cluster --image={_IMAGE}",
    options.DELETE: """\
  # See first what would go
  crinit {mode} delete my-registry --host-cluster-context=my-cluster --dry-run

  # Leave the volumes, certificates and credentials for a later init
  crinit {mode} delete my-registry --host-cluster-context=my-cluster --keep-data""",
}


_NODE_PORT = """\

  # Where the host cluster makes no load balancers
  crinit standalone init my-registry --host-cluster-context=my-cluster --api-server-service-type=NodePort
"""


def about(arguments: Sequence[str]) -> str:
    """Returns the help for a command line: that of the program, or of the command in it."""
    command = next((word for word in arguments if word in options.COMMANDS), "")
    if not command:
        return PROGRAM
    mode = next((word for word in arguments if word in set(Mode)), "")
    return _command(command, mode, everything=EVERYTHING in arguments)


def _command(command: str, mode: str, *, everything: bool) -> str:
    shown = mode or Mode.STANDALONE
    listed = options.options_for(command)
    first = listed if everything else [each for each in listed if each.flag in _FIRST]
    title = "Flags:" if len(first) == len(listed) else "First flags:"
    examples = _EXAMPLES[command].format(mode=shown)
    if command == options.INIT and shown == Mode.STANDALONE:
        examples += f"\n{_NODE_PORT.rstrip()}"
    parts = [
        _ABOUT[command],
        f"\nUsage:\n  crinit {mode or 'standalone|aggregated'} {command} NAME [flags]",
        f"\nExamples:\n{examples}",
        f"\n{title}",
        help_text(first, 110),
    ]
    if len(first) < len(listed):
        parts.append(f"\nAll {len(listed)} flags: crinit {shown} {command} {EVERYTHING}")
    return "\n".join(parts)
