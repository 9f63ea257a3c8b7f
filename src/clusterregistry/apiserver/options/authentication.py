"""Options about authentication."""

# ruff: noqa: RUF009 - option() declares a field, it does not compute a default
from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from clusterregistry.cli.options.field import option
from clusterregistry.cli.options.value_types import BOOLEAN, FILE


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthenticationOptions:
    """Authentication."""

    client_ca_file: Path | None = option(
        None,
        kind=FILE,
        help="Certificate authorities, PEM, whose client certificates are accepted: the common name is the user, each "
        "organization a group. The generated CA (DATA_DIR/ca.crt) is accepted besides, unless --generate-admin is "
        "false. Read again when it changes.",
        default_shown="the generated CA only",
        example="--client-ca-file=/etc/kubernetes/pki/ca.crt",
    )
    token_auth_file: Path | None = option(
        None,
        kind=FILE,
        help='Users with static tokens, one a line: `token,user,uid,"group1,group2"`. Roles grant rights to them, '
        "such as `view` bound to a group. Read again when it changes; 10 MiB at most.",
        default_shown="no tokens",
        example="--token-auth-file=tokens.csv",
    )
    anonymous_auth: bool = option(
        True,
        kind=BOOLEAN,
        help="Whether requests without credentials are let in as `system:anonymous`, who may only read health and "
        "version. When false they get a 401. Always false with the mode AlwaysAllow.",
        example="--anonymous-auth=false",
    )
