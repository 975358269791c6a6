# bash completion for insist. Commands and options are asked of the program itself, and names of the daemon that it
# would talk to, so this need not follow their changes.

_insist_commands() {
    "$1" help 2>/dev/null | awk '/^Commands:/ { on = 1; next } /^$/ { on = 0 } on { print $1 }'
}

_insist_options() { # PROGRAM [COMMAND]
    {
        "$1" help 2>/dev/null
        [ -z "$2" ] || "$1" help "$2" 2>/dev/null
    } | grep -oE '^ +(-[a-zA-Z], )?--[a-z-]+' | grep -oE -- '--[a-z-]+' | sort -u
}

_insist_names() { # PROGRAM MEMBER COMMAND...: the values of a member that the command's answer has
    local program=$1 member=$2
    shift 2
    "$program" "$@" -o json 2>/dev/null | grep -oE "\"$member\":\"[^\"\\]+\"" | cut -d'"' -f4 | sort -u
}

_insist_offer() { # WORDS, one a line
    local IFS=$'\n'
    mapfile -t COMPREPLY < <(compgen -W "$1" -- "${COMP_WORDS[COMP_CWORD]}")
}

_insist_states() {
    if [[ $1 == alerts ]]; then printf '%s\n' standing cleared all; else printf '%s\n' pending running waiting completed dead cancelled; fi
}

_insist_verbs() {
    case $1 in
    alerts) printf '%s\n' list ack ;;
    dead) printf '%s\n' list summary export redrive purge redrives cancel undo ;;
    dest) printf '%s\n' list show pause resume contingency ;;
    incidents) printf '%s\n' list show report note ;;
    errors) printf '%s\n' list forget ;;
    report) printf '%s\n' daily weekly ;;
    audit) printf '%s\n' verify export ;;
    subject) printf '%s\n' history erase erasures ;;
    nodes) printf '%s\n' list drain ;;
    sources) printf '%s\n' list show ;;
    tenants) echo list ;;
    esac
}

_insist() {
    local program=${COMP_WORDS[0]} word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} command='' at=0 i
    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
        --server | --token | --output | -o) ((i++)) ;;
        -*) ;;
        *)
            command=${COMP_WORDS[i]}
            at=$((COMP_CWORD - i)) # 1: the first word behind the command
            break
            ;;
        esac
    done

    case $previous in
    -p | --policy) _insist_offer "$("$program" presets 2>/dev/null | awk '{ print $1 }')"; return ;;
    -d | --destination) _insist_offer "$(_insist_names "$program" name dest list)"; return ;;
    -t | --tenant) _insist_offer "$(_insist_names "$program" tenant tenants --all)"; return ;;
    -c | --config | --compare | --html | --payload | --out | --archive) mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
    -o | --output) _insist_offer $'table\njson'; return ;;
    --priority) _insist_offer $'critical\nhigh\nnormal'; return ;;
    --severity) _insist_offer $'critical\nwarning\ninfo'; return ;;
    --by) _insist_offer $'code\ntenant\ndestination\nfingerprint'; return ;;
    -s | --state) _insist_offer "$(_insist_states "$command")"; return ;;
    --scope) _insist_offer $'enqueue\nread\nwork\noperate\nadmin'; return ;;
    esac

    if [[ $word == -* ]]; then
        _insist_offer "$(_insist_options "$program" "$command")"
        return
    fi
    case $command:$at in
    : | :0 | help:1) _insist_offer "$(_insist_commands "$program")" ;;
    alerts:1 | dead:1 | dest:1 | incidents:1 | errors:1 | report:1 | audit:1 | subject:1 | nodes:1 | sources:1 | tenants:1) _insist_offer "$(_insist_verbs "$command")" ;;
    help:2) _insist_offer "$(_insist_verbs "$previous")" ;;
    dest:2 | add:1) _insist_offer "$(_insist_names "$program" name dest list)" ;;
    job:1 | why:1 | retry:1 | resend:1 | cancel:1 | prioritize:1) _insist_offer "$(_insist_names "$program" id jobs)" ;;
    incidents:2) _insist_offer "$(_insist_names "$program" id incidents)" ;;
    nodes:2) _insist_offer "$(_insist_names "$program" name nodes)" ;;
    sources:2) _insist_offer "$(_insist_names "$program" name sources)" ;;
    prioritize:2) _insist_offer $'critical\nhigh\nnormal' ;;
    presets:1) _insist_offer "$("$program" presets 2>/dev/null | awk '{ print $1 }')" ;;
    add:* | check:* | backup:* | audit:*) mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
    *) COMPREPLY=() ;;
    esac
}

complete -F _insist insist
