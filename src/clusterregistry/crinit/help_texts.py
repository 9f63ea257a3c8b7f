"""The texts of --help."""

from __future__ import annotations

from clusterregistry.crinit import flags

PROGRAM = """\
crinit deploys a cluster registry into a Kubernetes cluster, looks after it there, and removes it.

Usage:
  crinit standalone COMMAND NAME [flags]    a registry with its own address, certificates and users
  crinit aggregated COMMAND NAME [flags]    a registry behind the host cluster's own API, with the host's users

Commands:
  init       deploy the registry NAME; run it again to repair it, to change it, or to renew certificates
  status     tell what is there and whether it works
  upgrade    change the image: --image=IMAGE
  delete     remove it, with its data (--keep-data leaves them)

First steps:
  crinit standalone init my-registry --host-cluster-context=my-cluster
  kubectl get clusters --context my-registry

Flags of a command: crinit standalone init --help

Exit status:
  0  done
  1  `status` has found something that is not as it should be
  2  the command line is wrong; every mistake is named
  3  it did not work: what was made, why it failed and how to clean up is told
"""


def command(name: str) -> str:
    return "\n".join([f"Usage:\n  crinit standalone|aggregated {name} NAME [flags]\n\nFlags:", *flags.help_lines(name)])
