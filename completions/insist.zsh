#compdef insist
# zsh completion for insist. Commands and options are asked of the program itself, so this need not follow its changes.

_insist_presets() {
    compadd -- ${(f)"$($words[1] presets 2>/dev/null | awk '{ print $1 }')"}
}

_insist() {
    local program=$words[1] command='' i
    for ((i = 2; i < CURRENT; i++)); do
        case $words[i] in
        --server | --token | --output | -o) ((i++)) ;;
        -*) ;;
        *) command=$words[i]; break ;;
        esac
    done

    case $words[CURRENT-1] in
    -p | --policy) _insist_presets; return ;;
    -c | --config | --compare | --html) _files; return ;;
    -o | --output) compadd table json; return ;;
    --priority) compadd critical high normal; return ;;
    --severity) compadd critical warning info; return ;;
    --state) if [[ $command == alerts ]]; then compadd standing cleared all; return; fi; compadd pending running waiting completed dead cancelled; return ;;
    --scope) compadd enqueue read operate admin; return ;;
    esac

    if [[ $words[CURRENT] == -* ]]; then
        compadd -- ${(fu)"$({ $program help; [[ -z $command ]] || $program help $command } 2>/dev/null |
            grep -oE '^ +(-[a-zA-Z], )?--[a-z-]+' | grep -oE -- '--[a-z-]+')"}
    elif [[ -z $command || $command == help ]]; then
        compadd -- ${(f)"$($program help 2>/dev/null | awk '/^Commands:/ { on = 1; next } /^$/ { on = 0 } on { print $1 }')"}
    elif [[ $command == dead && $words[CURRENT-1] == dead ]]; then
        compadd list summary export
    elif [[ $command == dest && $words[CURRENT-1] == dest ]]; then
        compadd list show pause resume contingency
    elif [[ $command == incidents && $words[CURRENT-1] == incidents ]]; then
        compadd list show report note
    elif [[ $command == errors && $words[CURRENT-1] == errors ]]; then
        compadd list forget
    elif [[ $command == audit && $words[CURRENT-1] == audit ]]; then
        compadd verify
    elif [[ $command == presets ]]; then
        _insist_presets
    else
        _files
    fi
}

_insist "$@"
