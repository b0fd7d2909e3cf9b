"""`elea completion`: what a shell needs to complete the command: verbs, options, and the values of options."""

from __future__ import annotations

import argparse
from typing import Final, NamedTuple

__all__ = ["add_arguments", "run"]

SHELLS: Final = ("bash", "zsh", "fish")

EPILOG: Final = """\
  bash   elea completion bash > ~/.local/share/bash-completion/completions/elea
  zsh    elea completion zsh > "${fpath[1]}/_elea"
  fish   elea completion fish > ~/.config/fish/completions/elea.fish"""


class Option(NamedTuple):
    """An option of a verb."""

    names: list[str]
    values: list[str]
    takes_file: bool
    takes_value: bool
    help: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `elea completion`."""
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("shell", choices=SHELLS, help="which shell")


def run(args: argparse.Namespace) -> int:
    """Prints the script."""
    from elea.cli import VERBS, parser_of

    verbs = {name: (text, *_words(parser_of(name))) for name, text in VERBS.items()}
    print({"bash": _bash, "zsh": _zsh, "fish": _fish}[args.shell](verbs))
    return 0


Verbs = dict[str, tuple[str, list[Option], list[str]]]


def _words(parser: argparse.ArgumentParser) -> tuple[list[Option], list[str]]:
    """The options of a verb, and the words its first argument can be."""
    options: list[Option] = []
    first: list[str] = []
    for action in parser._actions:
        values = [str(one) for one in action.choices or ()]
        if action.option_strings:
            takes_file = action.metavar in ("FILE", "DIR")
            text = (action.help or "").replace("%%", "%")
            options.append(Option(list(action.option_strings), values, takes_file, action.nargs != 0, text))
        elif values and not first:
            first = values
    return options, first


def _bash(verbs: Verbs) -> str:
    cases, values = [], []
    for name, (_, options, first) in verbs.items():
        words = " ".join([*first, *(one for option in options for one in option.names)])
        cases.append(f"        {name}) words='{words}' ;;")
        for option in options:
            if option.values:
                names = "|".join(f"{name}:{one}" for one in option.names)
                values.append(f"        {names}) words='{' '.join(option.values)}' ;;")
            elif option.takes_value:
                names = "|".join(f"{name}:{one}" for one in option.names)
                values.append(f"        {names}) compopt -o default; return ;;")
    return f"""_elea() {{
    local words='' cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}} verb=${{COMP_WORDS[1]}}
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W '{" ".join(verbs)} --help --version' -- "$cur"))
        return
    fi
    case "$verb:$prev" in
{chr(10).join(values)}
    esac
    [ -n "$words" ] || case "$verb" in
{chr(10).join(cases)}
    esac
    COMPREPLY=($(compgen -W "$words" -- "$cur"))
    [ ${{#COMPREPLY[@]}} -gt 0 ] || compopt -o default
}}
complete -F _elea elea"""


def _zsh(verbs: Verbs) -> str:
    listed = "\n".join(f"        '{name}:{_quoted(text)}'" for name, (text, _, _) in verbs.items())
    cases = []
    for name, (_, options, first) in verbs.items():
        specs = [f"'1:what:({' '.join(first)})'"] if first else []
        for option in options:
            more = (
                f":value:({' '.join(option.values)})"
                if option.values
                else ":value:_files"
                if option.takes_value
                else ""
            )
            specs += [f"'{one}[{_quoted(option.help)}]{more}'" for one in option.names]
        cases.append(f"        {name}) _arguments {' '.join(specs)} '*:argument:_files' ;;")
    return f"""#compdef elea
_elea() {{
    local -a verbs
    verbs=(
{listed}
    )
    if (( CURRENT == 2 )); then
        _describe verb verbs
        return
    fi
    local verb=$words[2]
    shift words; (( CURRENT-- ))
    case $verb in
{chr(10).join(cases)}
    esac
}}
_elea "$@\""""


def _fish(verbs: Verbs) -> str:
    lines = ["complete -c elea -n __fish_use_subcommand -f -l version -d 'print the version and end'"]
    for name, (text, options, first) in verbs.items():
        lines.append(f"complete -c elea -n __fish_use_subcommand -f -a {name} -d '{_quoted(text)}'")
        of_verb = f"complete -c elea -n '__fish_seen_subcommand_from {name}'"
        if first:
            lines.append(f"{of_verb} -f -a '{' '.join(first)}'")
        for option in options:
            names = " ".join(f"-l {one[2:]}" if one.startswith("--") else f"-s {one[1:]}" for one in option.names)
            more = f" -x -a '{' '.join(option.values)}'" if option.values else " -r" if option.takes_value else ""
            lines.append(f"{of_verb} {names}{more} -d '{_quoted(option.help)}'")
    return "\n".join(lines)


def _quoted(text: str) -> str:
    """Text that a shell takes as it is inside of quotes and brackets."""
    return text.replace("'", "’").replace("[", "(").replace("]", ")").replace(":", " ")
