"""``access.yaml``: its rules as values, and the reader that names every mistake at once, with line, path and remedy."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from clusterregistry.api.clusterregistry import GROUP
from clusterregistry.apimachinery.codecs import yaml_codec
from clusterregistry.apimachinery.codecs.decoded import DecodeError
from clusterregistry.apimachinery.meta import label_selector_objects
from clusterregistry.apimachinery.meta.label_selectors import EVERYTHING, LabelSelector, parse_label_selector
from clusterregistry.apimachinery.meta.names import name_errors
from clusterregistry.apimachinery.meta.selectors import SelectorError
from clusterregistry.apimachinery.operator_error import OperatorError
from clusterregistry.cli.options.problems import Problem, nearest
from clusterregistry.cli.options.value_types import DURATION
from clusterregistry.client.errors import printable
from clusterregistry.client.exec_credential import API_VERSIONS
from clusterregistry.controllers.access import places
from clusterregistry.controllers.access.placeholders import NAMES, unknown_placeholders
from clusterregistry.controllers.access.subject import Provider, Subject

API_VERSION = f"{GROUP}/v1alpha1"
KIND = "AccessConfiguration"
MAX_BYTES = 1 << 20
MAX_RULES = 1000
MAX_LISTED = 100
"""Entries of ``args`` and of ``env``."""
MAX_TEXT = 4096
MAX_SHOWN = 50
"""Mistakes that are reported at once."""
_MAX_MISTAKES = 200
"""Unknown keys beyond this number are not looked at: finding the nearest known one takes a millisecond."""

EXEC_TIMEOUT = 10.0
LONGEST_EXEC = 60.0
TOKEN_SECONDS = 3600
"""The life of a requested token, unless the rule names another."""
_TOKEN_SECONDS = range(600, 24 * 3600 + 1)

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileUse:
    """DIRECTORY/KEY.token or DIRECTORY/KEY.kubeconfig."""

    directory: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvUse:
    """A token in an environment variable of this process."""

    variable: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandUse:
    """A command that prints an ExecCredential (KEP-541). ``args`` have placeholders."""

    command: str
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    timeout: float = EXEC_TIMEOUT
    api_version: str = API_VERSIONS[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretUse:
    """A value in a Secret of the host cluster. ``name`` and ``key`` have placeholders; the namespace has none."""

    namespace: str
    name: str = "{name}"
    key: str = "token"


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRequestUse:
    """A token of a service account of the host cluster. ``service_account`` and ``audience`` have placeholders."""

    namespace: str
    service_account: str
    audience: str
    seconds: int = TOKEN_SECONDS


@dataclass(frozen=True, slots=True)
class InClusterUse:
    """The service account token of this pod, for the cluster in which it runs."""


@dataclass(frozen=True, slots=True)
class NoneUse:
    """Anonymous requests."""


Use = FileUse | EnvUse | CommandUse | SecretUse | TokenRequestUse | InClusterUse | NoneUse


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Which clusters get which credential. ``number`` counts from 1; an empty provider is any cluster."""

    number: int
    resolver: str
    """The key in ``use``."""
    use: Use
    provider: str = ""
    selector: LabelSelector = EVERYTHING

    @property
    def source(self) -> str:
        return f"rule {self.number} ({self.resolver})"

    def matches(self, subject: Subject) -> bool:
        if not self.selector.matches(subject.labels):
            return False
        return not self.provider or self.matched_provider(subject) is not None

    def matched_provider(self, subject: Subject) -> Provider | None:
        """The auth provider of the cluster that the rule names; None for a rule that names none."""
        if not self.provider:
            return None
        return next((each for each in subject.providers if each.type == self.provider), None)

    def config_of(self, subject: Subject) -> Mapping[str, str]:
        """The config that fills placeholders: that of the matched auth provider.

        For a rule that names no provider those of all, the first one winning.
        """
        provider = self.matched_provider(subject)
        if provider is not None:
            return provider.config
        return {key: value for each in reversed(subject.providers) for key, value in each.config.items()}

    def key_of(self, subject: Subject) -> str:
        """KEY of the files: the ``key`` in the config of the matched auth provider, else the cluster's name.

        A rule that names no provider uses the name alone: there the object of a cluster cannot choose another's file.
        """
        return (self.config_of(subject).get("key") if self.provider else "") or subject.name


class AccessFileError(OperatorError):
    """``access.yaml`` cannot be used; ``problems`` lists every mistake."""

    def __init__(self, path: Path, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        count = len(self.problems)
        listed = "".join(f"\n  {each}" for each in self.problems[:MAX_SHOWN])
        more = f"\n  and {count - MAX_SHOWN} more" if count > MAX_SHOWN else ""
        super().__init__(
            f"{path} has {count} mistake{'' if count == 1 else 's'}:{listed}{more}",
            remedy="correct the file and try it with `clusterregistry access check`",
        )


class AccessFileMissingError(AccessFileError):
    """``access.yaml`` cannot be read at all."""

    def __init__(self, path: Path, problem: str) -> None:
        self.problems = (Problem("", problem),)
        OperatorError.__init__(
            self, f"{path}: {problem}", remedy="name the file with --access-config, and let it be read"
        )


def load(path: Path) -> tuple[Rule, ...]:
    """The rules of a file. Raises AccessFileError with every mistake."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise AccessFileMissingError(path, f"cannot be read: {error.strerror or error}") from None
    return parse(content, path)


def parse(content: bytes, path: Path) -> tuple[Rule, ...]:
    """The rules of a file with this content. Relative paths are relative to its folder. Raises AccessFileError."""
    if len(content) > MAX_BYTES:
        raise AccessFileError(path, [Problem(str(path), f"is larger than {MAX_BYTES} bytes")])
    try:
        decoded = yaml_codec.decode(content)
    except DecodeError as error:
        raise AccessFileError(path, [Problem(str(path), printable(str(error), 300))]) from None
    reader = _Reader(path.absolute().parent)
    rules = reader.document(decoded.value)
    lines = places.lines_of(content) if reader.mistakes else {}
    problems = [Problem(str(path), each) for each in decoded.warnings]
    problems += [_problem(path, mistake, lines) for mistake in reader.mistakes]
    if problems:
        raise AccessFileError(path, problems)
    return rules


@dataclass(frozen=True, slots=True)
class _Mistake:
    path: places.Path
    message: str
    hint: str = ""


def _problem(file: Path, mistake: _Mistake, lines: Mapping[places.Path, int]) -> Problem:
    where = f"{file}:{places.line_of(lines, mistake.path)}"
    shown = places.shown(mistake.path)
    message = f"{shown}: {mistake.message}" if shown else mistake.message
    return Problem(where, printable(message, 600), mistake.hint)


_EXAMPLE = "for example `- match: {provider: files}` with `use: {file: {directory: /etc/clusters}}`"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,255}", re.ASCII)
_SECRET_KEY = re.compile(r"[A-Za-z0-9._{}-]{1,253}", re.ASCII)
_PLACEHOLDERS = "placeholders are {name}, {clusterID} and {config.KEY}"


class _Reader:
    """Reads the decoded document and collects the mistakes. What is wrong becomes a default, and is not used."""

    def __init__(self, directory: Path) -> None:
        self.mistakes: list[_Mistake] = []
        self._directory = directory
        self._uses: dict[str, Callable[[dict[str, Any], places.Path], Use]] = {
            "file": self._file,
            "env": self._env,
            "exec": self._exec,
            "secret": self._secret,
            "tokenRequest": self._token_request,
            "inCluster": lambda value, path: self._empty(InClusterUse(), value, path),
            "none": lambda value, path: self._empty(NoneUse(), value, path),
        }

    def document(self, value: Any) -> tuple[Rule, ...]:
        if not isinstance(value, dict):
            self._refuse((), f"must be a mapping with apiVersion, kind and rules; {_EXAMPLE}")
            return ()
        self._known_keys(value, (), ("apiVersion", "kind", "rules"))
        for key, wanted in (("apiVersion", API_VERSION), ("kind", KIND)):
            if value.get(key) != wanted:
                self._refuse((key,), f"must be {wanted}")
        rules = value.get("rules")
        if not isinstance(rules, list):
            self._refuse(("rules",), f"must be a list of rules; {_EXAMPLE}")
            return ()
        if len(rules) > MAX_RULES:
            self._refuse(("rules",), f"has {len(rules)} rules, the limit is {MAX_RULES}")
        found = [self._rule(rule, index) for index, rule in enumerate(rules[:MAX_RULES])]
        return tuple(rule for rule in found if rule is not None)

    def _rule(self, value: Any, index: int) -> Rule | None:
        path: places.Path = ("rules", index)
        if not isinstance(value, dict):
            self._refuse(path, "must be a mapping with match and use")
            return None
        self._known_keys(value, path, ("match", "use"))
        provider, selector = self._match(value, path)
        chosen = self._use(value.get("use"), (*path, "use"))
        if chosen is None:
            return None
        resolver, use = chosen
        if isinstance(use, InClusterUse) and not provider and selector.empty:
            message = "would send the token of this pod to every cluster: match the host by provider or selector"
            self._refuse((*path, "use", resolver), message)
        return Rule(number=index + 1, resolver=resolver, use=use, provider=provider, selector=selector)

    # What a rule matches

    def _match(self, rule: dict[str, Any], path: places.Path) -> tuple[str, LabelSelector]:
        path = (*path, "match")
        match = rule.get("match")
        if not isinstance(match, dict):
            self._refuse(path, "must be a mapping with provider or selector", "write {} for every cluster")
            return "", EVERYTHING
        self._known_keys(match, path, ("provider", "selector"))
        provider = self._text(match, "provider", path) if "provider" in match else ""
        selector = self._selector(match["selector"], (*path, "selector")) if "selector" in match else EVERYTHING
        return provider, selector

    def _selector(self, value: Any, path: places.Path) -> LabelSelector:
        if isinstance(value, dict):
            return self._selector_object(value, path)
        if not isinstance(value, str) or not value.strip():
            self._refuse(path, "must be a label selector such as env=prod", "leave it out for every cluster")
            return EVERYTHING
        try:
            return parse_label_selector(value)
        except SelectorError as error:
            self._refuse(path, str(error))
            return EVERYTHING

    def _selector_object(self, value: dict[str, Any], path: places.Path) -> LabelSelector:
        self._known_keys(value, path, ("matchLabels", "matchExpressions"))
        before = len(self.mistakes)
        self._selector_form(value, path)
        if len(self.mistakes) > before:
            return EVERYTHING
        for error in label_selector_objects.validate(value, ""):
            self._refuse(path, str(error).lstrip("."))
        if not any(value.values()):
            self._refuse(path, "selects every cluster", "leave it out for every cluster")
        return EVERYTHING if len(self.mistakes) > before else label_selector_objects.label_selector(value)

    def _selector_form(self, value: dict[str, Any], path: places.Path) -> None:
        """The types that a selector object has; its syntax is validated afterwards."""
        labels, expressions = value.get("matchLabels", {}), value.get("matchExpressions", [])
        if not isinstance(labels, dict) or not all(isinstance(each, str) for each in labels.values()):
            self._refuse((*path, "matchLabels"), "must be a mapping of texts", "put numbers and true in quotes")
        if not isinstance(expressions, list) or not all(map(_is_expression, expressions)):
            self._refuse((*path, "matchExpressions"), "must be a list of {key, operator, values}")

    # What a rule uses

    def _use(self, value: Any, path: places.Path) -> tuple[str, Use] | None:
        kinds = ", ".join(self._uses)
        if not isinstance(value, dict) or not value:
            self._refuse(path, f"must be a mapping with one of {kinds}")
            return None
        self._known_keys(value, path, tuple(self._uses))
        if len(value) > 1:
            self._refuse(path, f"has {len(value)} keys, must have exactly one of {kinds}")
        resolver = next((key for key in value if key in self._uses), "")
        if not resolver:
            return None
        details = value[resolver]
        if not isinstance(details, dict):
            self._refuse((*path, resolver), "must be a mapping")
            return None
        return resolver, self._uses[resolver](details, (*path, resolver))

    def _empty(self, use: T, value: dict[str, Any], path: places.Path) -> T:
        self._known_keys(value, path, ())
        return use

    def _file(self, value: dict[str, Any], path: places.Path) -> FileUse:
        self._known_keys(value, path, ("directory",))
        return FileUse(directory=self._directory / self._text(value, "directory", path))

    def _env(self, value: dict[str, Any], path: places.Path) -> EnvUse:
        self._known_keys(value, path, ("variable",))
        variable = self._text(value, "variable", path)
        if variable and not _VARIABLE.fullmatch(variable):
            self._refuse((*path, "variable"), "must be the name of an environment variable")
        return EnvUse(variable=variable)

    def _exec(self, value: dict[str, Any], path: places.Path) -> CommandUse:
        self._known_keys(value, path, ("command", "args", "env", "timeout", "apiVersion"))
        command = self._text(value, "command", path)
        if set("{}") & set(command):
            self._refuse((*path, "command"), "has no placeholders: only args do")
        if "/" in command:
            command = str(self._directory / command)
        version = value.get("apiVersion", API_VERSIONS[0])
        if version not in API_VERSIONS:
            self._refuse((*path, "apiVersion"), f"must be {' or '.join(API_VERSIONS)}")
        return CommandUse(
            command=command,
            args=tuple(self._arguments(value.get("args", []), (*path, "args"))),
            env=tuple(self._variables(value.get("env", []), (*path, "env"))),
            timeout=self._timeout(value.get("timeout"), (*path, "timeout")),
            api_version=str(version),
        )

    def _arguments(self, value: Any, path: places.Path) -> Iterable[str]:
        if not isinstance(value, list) or len(value) > MAX_LISTED:
            self._refuse(path, f"must be a list of at most {MAX_LISTED} texts")
            return
        for index, argument in enumerate(value):
            if not isinstance(argument, str) or len(argument) > MAX_TEXT or "\0" in argument:
                self._refuse((*path, index), f"must be a text of at most {MAX_TEXT} characters", "put it in quotes")
                continue
            self._check_placeholders(argument, (*path, index))
            yield argument

    def _variables(self, value: Any, path: places.Path) -> Iterable[tuple[str, str]]:
        if not isinstance(value, list) or len(value) > MAX_LISTED:
            self._refuse(path, f"must be a list of at most {MAX_LISTED} {{name, value}}")
            return
        for index, entry in enumerate(value):
            at = (*path, index)
            if not isinstance(entry, dict):
                self._refuse(at, "must be a mapping with name and value")
                continue
            self._known_keys(entry, at, ("name", "value"))
            name = self._text(entry, "name", at)
            if name and not _VARIABLE.fullmatch(name):
                self._refuse((*at, "name"), "must be the name of an environment variable")
            content = entry.get("value")
            if not isinstance(content, str) or "\0" in content or len(content) > MAX_TEXT:
                self._refuse((*at, "value"), "must be a text", "put it in quotes")
                continue
            yield name, content

    def _timeout(self, value: Any, path: places.Path) -> float:
        if value is None:
            return EXEC_TIMEOUT
        try:
            seconds = DURATION.parse(value) if isinstance(value, str) else float(value)
        except (TypeError, ValueError):
            seconds = 0.0
        if not 0 < seconds <= LONGEST_EXEC:
            self._refuse(path, f"must be a duration up to {LONGEST_EXEC:g}s, such as 10s")
            return EXEC_TIMEOUT
        return seconds

    def _secret(self, value: dict[str, Any], path: places.Path) -> SecretUse:
        self._known_keys(value, path, ("namespace", "name", "key"))
        key = self._template(value, "key", path, default="token")
        if key and not _SECRET_KEY.fullmatch(key):
            self._refuse((*path, "key"), "must be a key of a Secret, such as token")
        return SecretUse(
            namespace=self._namespace(value, path), name=self._template(value, "name", path, default="{name}"), key=key
        )

    def _token_request(self, value: dict[str, Any], path: places.Path) -> TokenRequestUse:
        self._known_keys(value, path, ("namespace", "serviceAccount", "audience", "expirationSeconds"))
        seconds = value.get("expirationSeconds", TOKEN_SECONDS)
        if type(seconds) is not int or seconds not in _TOKEN_SECONDS:
            limits = f"{_TOKEN_SECONDS.start} and {_TOKEN_SECONDS.stop - 1}"
            self._refuse((*path, "expirationSeconds"), f"must be a number between {limits}")
            seconds = TOKEN_SECONDS
        return TokenRequestUse(
            namespace=self._namespace(value, path),
            service_account=self._template(value, "serviceAccount", path),
            audience=self._template(value, "audience", path),
            seconds=seconds,
        )

    def _namespace(self, value: dict[str, Any], path: places.Path) -> str:
        namespace = self._text(value, "namespace", path)
        if namespace and name_errors(namespace):
            self._refuse((*path, "namespace"), "must be the name of a namespace, without placeholders")
        return namespace

    def _template(self, value: dict[str, Any], key: str, path: places.Path, *, default: str = "") -> str:
        """A text with placeholders."""
        if key not in value and default:
            return default
        text = self._text(value, key, path)
        self._check_placeholders(text, (*path, key))
        return text

    def _check_placeholders(self, text: str, path: places.Path) -> None:
        for name in unknown_placeholders(text):
            near = nearest(name, NAMES)
            self._refuse(path, f"{{{name}}} is no placeholder", f"did you mean {{{near}}}?" if near else _PLACEHOLDERS)

    # Common

    def _text(self, value: dict[str, Any], key: str, path: places.Path) -> str:
        text = value.get(key)
        if isinstance(text, str) and text.strip() and len(text) <= MAX_TEXT and text.isprintable():
            return text
        self._refuse((*path, key), "is required" if text is None else "must be a text of one line, and not empty")
        return ""

    def _known_keys(self, value: dict[str, Any], path: places.Path, known: tuple[str, ...]) -> None:
        for key in value:
            if key in known or len(self.mistakes) > _MAX_MISTAKES:
                continue
            near = nearest(key, known)
            listed = f"known keys: {', '.join(known)}" if known else "it has no keys"
            self._refuse((*path, key), "is not known", f"did you mean {near}?" if near else listed)

    def _refuse(self, path: places.Path, message: str, hint: str = "") -> None:
        self.mistakes.append(_Mistake(path, message, hint))


def _is_expression(value: Any) -> bool:
    if not isinstance(value, dict) or set(value) - {"key", "operator", "values"}:
        return False
    values = value.get("values", [])
    has_texts = isinstance(value.get("key"), str) and isinstance(value.get("operator"), str)
    return has_texts and isinstance(values, list) and all(isinstance(each, str) for each in values)
