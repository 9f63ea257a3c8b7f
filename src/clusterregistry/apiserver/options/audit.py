"""Options about the audit log: what there is, what is wrong with it, and what it amounts to."""

# ruff: noqa: RUF009 - option() declares a field, it does not compute a default
from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from clusterregistry.apiserver.audit.settings import MEGABYTE, AuditSettings, Rotation
from clusterregistry.apiserver.options import checks
from clusterregistry.cli.options.field import option
from clusterregistry.cli.options.problems import Problem
from clusterregistry.cli.options.value_types import FILE, INTEGER, Kind, choice

Format = Literal["json"]
_FORMAT: Kind[Format] = choice("json")
STANDARD_OUTPUT = Path("-")


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditOptions:
    """Audit log."""

    audit_policy_file: Path | None = option(
        None,
        kind=FILE,
        help="What is recorded, and how much of it: a `Policy` of `audit.k8s.io/v1`. The file is read at start. Needs "
        "--audit-log-path.",
        default_shown="every write at the level Metadata; no reads, reviews, discovery, health or metrics",
        example="--audit-policy-file=audit-policy.yaml",
    )
    audit_log_path: Path | None = option(
        None,
        kind=FILE,
        help="Turns the audit log on: the file to which events are written, a line of JSON each; `-` is standard "
        "output. It records who changed what, unless --audit-policy-file says otherwise.",
        default_shown="no audit log",
        example="--audit-log-path=/var/log/PROGRAM/audit.log",
    )
    audit_log_format: Format = option(
        "json",
        kind=_FORMAT,
        help="The form of the events.",
        example="--audit-log-format=json",
    )
    audit_log_maxsize: int = option(
        100,
        kind=INTEGER,
        help="Megabytes that the file may have before it is renamed and a new one begun; 0 lets it grow.",
        example="--audit-log-maxsize=100",
    )
    audit_log_maxbackup: int = option(
        10,
        kind=INTEGER,
        help="How many renamed files are kept; 0 keeps all of them. With 10 files of 100 MB the log takes 1.1 GB at "
        "most.",
        example="--audit-log-maxbackup=100",
    )
    audit_log_maxage: int = option(
        30,
        kind=INTEGER,
        help="For how many days a renamed file is kept, by the time in its name; 0 keeps it for ever.",
        example="--audit-log-maxage=366",
    )


def problems(options: AuditOptions) -> list[Problem]:
    found = checks.readable_file("--audit-policy-file", options.audit_policy_file)
    if options.audit_policy_file is not None and options.audit_log_path is None:
        found.append(Problem("--audit-policy-file", "is of no use without --audit-log-path: give both"))
    if options.audit_log_path not in (None, STANDARD_OUTPUT) and options.audit_log_path.is_dir():
        found.append(Problem("--audit-log-path", f"{options.audit_log_path} is a directory, not a file"))
    for name in ("maxsize", "maxbackup", "maxage"):
        if getattr(options, f"audit_log_{name}") < 0:
            found.append(Problem(f"--audit-log-{name}", "must not be negative; 0 sets no limit"))
    return found


def settings(options: AuditOptions) -> AuditSettings | None:
    """For options without problems; None when nothing is to be recorded."""
    path, policy_file = options.audit_log_path, options.audit_policy_file
    if path is None:
        return None
    return AuditSettings(
        policy_file=None if policy_file is None else Path.cwd() / policy_file,
        path=None if path == STANDARD_OUTPUT else Path.cwd() / path,
        rotation=Rotation(
            most_bytes=options.audit_log_maxsize * MEGABYTE,
            most_backups=options.audit_log_maxbackup,
            most_days=options.audit_log_maxage,
        ),
    )
