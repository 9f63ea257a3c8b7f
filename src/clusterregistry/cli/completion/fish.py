"""Completion for fish, 3.0 or newer."""

from __future__ import annotations

from collections.abc import Iterator

from clusterregistry.cli.completion.model import Command, Flag, summary

_FUNCTION = """\
# fish completion for {name}; see: {name} completion fish --help
function __{name}_at
    set -l path
    for word in (commandline -opc)[2..-1]
        switch "$path/$word"
            case {paths}
                set path "$path/$word"
        end
    end
    test "$path" = "$argv[1]"
end

complete -c {name} -f
"""


def script(program: Command) -> str:
    paths = " ".join(f"'{path}'" for path, _ in program.walk() if path)
    return _FUNCTION.format(name=program.name, paths=paths) + "\n".join(_lines(program)) + "\n"


def _lines(program: Command) -> Iterator[str]:
    for path, command in program.walk():
        at = f"complete -c {program.name} -n \"__{program.name}_at '{path}'\""
        for each in command.commands:
            yield f"{at} -a {each.name} -d {_quoted(each.help)}"
        if command.takes_file:
            yield f"{at} -F"
        for flag in command.flags:
            yield f"{at} {_flag(flag)} -d {_quoted(summary(flag.help))}"


def _flag(flag: Flag) -> str:
    spelled = f"-s {flag.name}" if len(flag.name) == 1 else f"-l {flag.name}"
    if flag.is_boolean:  # a value may follow "=", and fish has no way to declare that
        return spelled
    if not flag.takes_value:
        return spelled
    if flag.completes_files:
        return f"{spelled} -r -F"
    if flag.completes_directories:
        return f"{spelled} -x -a '(__fish_complete_directories)'"
    if flag.is_list:
        return f"{spelled} -x -a \"(__fish_complete_list , 'printf %s\\\\\\n {' '.join(flag.choices)}')\""
    return f"{spelled} -x -a '{' '.join(flag.choices)}'" if flag.choices else f"{spelled} -x"


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
