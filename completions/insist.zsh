#compdef insist
# zsh completion for insist. Commands and options are asked of the program itself, and names of the daemon that it
# would talk to, so this need not follow their changes.

_insist_presets() {
    compadd -- ${(f)"$($words[1] presets 2>/dev/null | awk '{ print $1 }')"}
}

_insist_names() { # MEMBER COMMAND...: the values of a member that the command's answer has
    local member=$1
    shift
    compadd -- ${(fu)"$($words[1] "$@" -o json 2>/dev/null | grep -oE "\"$member\":\"[^\"\\]+\"" | cut -d'"' -f4)"}
}

_insist_verbs() {
    case $1 in
    alerts) compadd list ack ;;
    dead) compadd list summary export redrive purge redrives cancel undo ;;
    dest) compadd list show pause resume contingency ;;
    incidents) compadd list show report note ;;
    report) compadd daily weekly ;;
    errors) compadd list forget ;;
    audit) compadd verify export ;;
    subject) compadd history erase erasures ;;
    nodes) compadd list drain ;;
    sources) compadd list show ;;
    tenants) compadd list ;;
    esac
}

_insist() {
    local program=$words[1] command='' at=0 i
    for ((i = 2; i < CURRENT; i++)); do
        case $words[i] in
        --server | --token | --output | -o) ((i++)) ;;
        -*) ;;
        *) command=$words[i]; at=$((CURRENT - i)); break ;;
        esac
    done

    case $words[CURRENT-1] in
    -p | --policy) _insist_presets; return ;;
    -d | --destination) _insist_names name dest list; return ;;
    -t | --tenant) _insist_names tenant tenants --all; return ;;
    -c | --config | --compare | --html | --payload | --out | --archive) _files; return ;;
    -o | --output) compadd table json; return ;;
    --priority) compadd critical high normal; return ;;
    --severity) compadd critical warning info; return ;;
    --by) compadd code tenant destination fingerprint; return ;;
    -s | --state) if [[ $command == alerts ]]; then compadd standing cleared all; else compadd pending running waiting completed dead cancelled; fi; return ;;
    --scope) compadd enqueue read work operate admin; return ;;
    esac

    if [[ $words[CURRENT] == -* ]]; then
        compadd -- ${(fu)"$({ $program help; [[ -z $command ]] || $program help $command } 2>/dev/null |
            grep -oE '^ +(-[a-zA-Z], )?--[a-z-]+' | grep -oE -- '--[a-z-]+')"}
        return
    fi
    case $command:$at in
    :0 | help:1) compadd -- ${(f)"$($program help 2>/dev/null | awk '/^Commands:/ { on = 1; next } /^$/ { on = 0 } on { print $1 }')"} ;;
    alerts:1 | dead:1 | dest:1 | incidents:1 | errors:1 | report:1 | audit:1 | subject:1 | nodes:1 | sources:1 | tenants:1) _insist_verbs $command ;;
    help:2) _insist_verbs $words[CURRENT-1] ;;
    dest:2 | add:1) _insist_names name dest list ;;
    job:1 | why:1 | retry:1 | resend:1 | cancel:1 | prioritize:1) _insist_names id jobs ;;
    incidents:2) _insist_names id incidents ;;
    nodes:2) _insist_names name nodes ;;
    sources:2) _insist_names name sources ;;
    prioritize:2) compadd critical high normal ;;
    presets:1) _insist_presets ;;
    add:* | check:* | backup:* | audit:*) _files ;;
    esac
}

_insist "$@"
