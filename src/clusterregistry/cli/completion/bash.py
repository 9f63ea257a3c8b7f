"""Completion for bash, 3.2 or newer. It needs nothing but bash itself."""

from __future__ import annotations

from collections.abc import Iterator

from clusterregistry.cli.completion.model import Command, Flag, values_by_flag

_SCRIPT = """\
# bash completion for {name}; see: {name} completion bash --help
_{name}() {{
    local cur=${{COMP_WORDS[COMP_CWORD]}} flag='' before='' path='' words='' word i
    COMPREPLY=()

    # bash cuts words at "=", unless COMP_WORDBREAKS is changed.
    if [[ $cur == = ]]; then
        flag=${{COMP_WORDS[COMP_CWORD-1]}} cur=''
    elif (( COMP_CWORD > 1 )) && [[ ${{COMP_WORDS[COMP_CWORD-1]}} == = ]]; then
        flag=${{COMP_WORDS[COMP_CWORD-2]}}
    elif [[ $cur == -*=* ]]; then
        flag=${{cur%%=*}} before=${{cur%%=*}}= cur=${{cur#*=}}
    else
        case ${{COMP_WORDS[COMP_CWORD-1]}} in
            {values}) flag=${{COMP_WORDS[COMP_CWORD-1]}} ;;
        esac
    fi

    for (( i = 1; i < COMP_CWORD; i++ )); do
        case $path/${{COMP_WORDS[i]}} in
            {paths}) path=$path/${{COMP_WORDS[i]}} ;;
        esac
    done

    if [[ -n $flag ]]; then
        case $path:$flag in
{actions}
        esac
    else
        case $path in
{commands}
        esac
        if [[ $cur != -* ]]; then
            case $path in
                {files}) _{name}_add -f "$cur" '' ;;
            esac
        fi
        _{name}_add -W "$words" "$cur" ''
        # A flag that needs a value ends in "=": the value follows without a space.
        if (( ${{#COMPREPLY[@]}} == 1 )) && [[ ${{COMPREPLY[0]}} == *= ]]; then
            compopt -o nospace 2>/dev/null
        fi
    fi
}}

# _{name}_add KIND [WORDS] CURRENT PREFIX: adds the words that compgen finds, also those with spaces.
_{name}_add() {{
    local kind=$1 list='' found; shift
    if [[ $kind == -W ]]; then list=$1; shift; else compopt -o filenames 2>/dev/null; fi
    while IFS= read -r found; do
        COMPREPLY+=("$2$found")
    done < <(if [[ $kind == -W ]]; then compgen -W "$list" -- "$1"; else compgen "$kind" -- "$1"; fi)
}}

# _{name}_add_listed WORDS CURRENT PREFIX: words with commas between them; those already typed stay.
_{name}_add_listed() {{
    local done=''
    [[ $2 == *,* ]] && done=${{2%,*}},
    _{name}_add -W "$1" "${{2##*,}}" "$3$done"
    compopt -o nospace 2>/dev/null
}}

complete -F _{name} {name}
"""


def script(program: Command) -> str:
    values = values_by_flag(program)
    needing = [meanings[0][1].spelled for meanings in values.values() if meanings[0][1].takes_value]
    paths = [path for path, _ in program.walk() if path]
    return _SCRIPT.format(
        name=program.name,
        values="|".join(needing) or "''",
        paths="|".join(paths),
        actions="\n".join(_actions(program.name, list(values.values()))),
        commands="\n".join(_commands(program)),
        files="|".join(path for path, command in program.walk() if command.takes_file) or "'-'",
    )


def _actions(name: str, flags: list[list[tuple[str, Flag]]]) -> Iterator[str]:
    """Yields what completes the value of each flag; the meaning that most commands have stands last."""
    for meanings in flags:
        for path, flag in reversed(meanings):
            yield f"            {path or '*'}:{flag.spelled}) {_values(name, flag)} ;;"


def _values(name: str, flag: Flag) -> str:
    if flag.completes_files:
        return f'_{name}_add -f "$cur" "$before"'
    if flag.completes_directories:
        return f'_{name}_add -d "$cur" "$before"'
    words = "true false" if flag.is_boolean else " ".join(flag.choices)
    if not words:
        return ":"
    return f'_{name}_add{"_listed" if flag.is_list else " -W"} \'{words}\' "$cur" "$before"'


def _commands(program: Command) -> Iterator[str]:
    """Yields the words after each command. Flags are offered only after a dash: they would hide the commands."""
    for path, command in program.walk():
        flags = " ".join(f"{flag.spelled}=" if flag.takes_value else flag.spelled for flag in command.flags)
        below = " ".join(each.name for each in command.commands)
        shown = f"[[ $cur == -* ]] && words='{flags}'"
        yield (
            f"            '{path}') words='{below}'; {shown} ;;"
            if below
            else f"            '{path}') words='{flags}' ;;"
        )
