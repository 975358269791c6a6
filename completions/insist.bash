# bash completion for insist. Commands and options are asked of the program itself, so this need not follow its changes.

_insist_commands() {
    "$1" help 2>/dev/null | awk '/^Commands:/ { on = 1; next } /^$/ { on = 0 } on { print $1 }'
}

_insist_options() { # PROGRAM [COMMAND]
    {
        "$1" help 2>/dev/null
        [ -z "$2" ] || "$1" help "$2" 2>/dev/null
    } | grep -oE '^ +(-[a-zA-Z], )?--[a-z-]+' | grep -oE -- '--[a-z-]+' | sort -u
}

_insist() {
    local program=${COMP_WORDS[0]} word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} command='' i
    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
        --server | --token | --output | -o) ((i++)) ;;
        -*) ;;
        *)
            command=${COMP_WORDS[i]}
            break
            ;;
        esac
    done

    case $previous in
    -p | --policy) mapfile -t COMPREPLY < <(compgen -W "$("$program" presets 2>/dev/null | awk '{ print $1 }')" -- "$word"); return ;;
    -c | --config | --compare | --html) mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
    -o | --output) mapfile -t COMPREPLY < <(compgen -W "table json" -- "$word"); return ;;
    --priority) mapfile -t COMPREPLY < <(compgen -W "critical high normal" -- "$word"); return ;;
    --severity) mapfile -t COMPREPLY < <(compgen -W "critical warning info" -- "$word"); return ;;
    --state)
        [[ $command != alerts ]] || { mapfile -t COMPREPLY < <(compgen -W "standing cleared all" -- "$word"); return; }
        mapfile -t COMPREPLY < <(compgen -W "pending running waiting completed dead cancelled" -- "$word")
        return
        ;;
    --scope) mapfile -t COMPREPLY < <(compgen -W "enqueue read operate admin" -- "$word"); return ;;
    esac

    local words
    if [[ $word == -* ]]; then
        words=$(_insist_options "$program" "$command")
    elif [[ -z $command || $command == help ]]; then
        words=$(_insist_commands "$program")
    elif [[ $command == dead && $previous == dead ]]; then
        words="list summary export"
    elif [[ $command == dest && $previous == dest ]]; then
        words="list show pause resume contingency"
    elif [[ $command == incidents && $previous == incidents ]]; then
        words="list show report note"
    elif [[ $command == errors && $previous == errors ]]; then
        words="list forget"
    elif [[ $command == audit && $previous == audit ]]; then
        words="verify"
    elif [[ $command == presets ]]; then
        words=$("$program" presets 2>/dev/null | awk '{ print $1 }')
    else
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        return
    fi
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}

complete -F _insist insist
