#!/bin/sh
# What a shell offers for the last word of a command line, a line each, by the completions of this tree.
#   tests/complete.sh bash|fish|zsh WORD...
# The shell is the real one; of zsh it is an interactive one behind a terminal, since nothing less completes.
set -eu
shell=$1
shift
cd "$(dirname "$0")/.."

case $shell in
bash)
    bash -c 'source completions/insist.bash; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _insist; printf "%s\n" "${COMPREPLY[@]}"' - "$@"
    ;;
fish)
    # shellcheck disable=SC2016 # fish's own
    fish --no-config -c 'source completions/insist.fish; complete -C "$argv" | string replace -r "\t.*" ""' -- "$@"
    ;;
zsh)
    zsh -f tests/complete.zsh "$@"
    ;;
*)
    echo "usage: tests/complete.sh bash|fish|zsh WORD..." >&2
    exit 2
    ;;
esac | sort -u
