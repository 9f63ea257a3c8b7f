"""Completion for zsh, by its own ``_arguments``."""

from __future__ import annotations

from clusterregistry.cli.completion.model import Command, Flag, summary

_SCRIPT = """\
#compdef {name}
# zsh completion for {name}; see: {name} completion zsh --help
_{name}() {{
    local context state line path_='' word
    local -a specs commands
    typeset -A opt_args

    for word in ${{words[2,CURRENT-1]}}; do
        case $path_/$word in
            ({paths}) path_=$path_/$word ;;
        esac
    done

    case $path_ in
{cases}
    esac

    _arguments -S : $specs && return
    [[ $state == commands ]] && _describe -t commands command commands
}}

if [[ $funcstack[1] == _{name} ]]; then
    _{name} "$@"
else
    compdef _{name} {name}
fi
"""

_BRACKETS = str.maketrans("[]", "()")
"""A text ends at a bracket."""


def script(program: Command) -> str:
    return _SCRIPT.format(
        name=program.name,
        paths="|".join(path for path, _ in program.walk() if path),
        cases="\n".join(_case(path, command) for path, command in program.walk()),
    )


def _case(path: str, command: Command) -> str:
    specs = [f"'{number}: :'" for number in range(1, path.count("/") + 1)]
    if command.commands:
        specs.append(f"'{path.count('/') + 1}:command:->commands'")
    elif command.takes_file:
        specs.append("'*:file:_files'")
    specs += [_spec(flag) for flag in command.flags]
    commands = " ".join(_quoted(f"{each.name}:{each.help}") for each in command.commands)
    return f"        ('{path}')\n            commands=({commands})\n            specs=({_indented(specs)}) ;;"


def _indented(specs: list[str]) -> str:
    return "\n                ".join(["", *specs, ""])


def _spec(flag: Flag) -> str:
    text = summary(flag.help) or flag.name
    shown = f"[{text.translate(_BRACKETS)}]"
    if flag.is_boolean:
        return _quoted(f"{flag.spelled}=-{shown}::BOOL:(true false)")
    if not flag.takes_value:
        return _quoted(f"{flag.spelled}{shown}")
    return _quoted(f"{flag.spelled}={shown}:{flag.metavar}:{_action(flag)}")


def _action(flag: Flag) -> str:
    if flag.completes_files:
        return "_files"
    if flag.completes_directories:
        return "_files -/"
    if flag.is_list:
        return f"_sequence compadd - {' '.join(flag.choices)}"
    return f"({' '.join(flag.choices)})" if flag.choices else " "


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
