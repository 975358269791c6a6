#!/bin/sh
# The man page and the completions load, and say what the program says. $INSIST is the program.
# shellcheck disable=SC2317 # check() calls the functions
. "$(dirname "$0")/../tap.sh"
set -e
folder=$work
ln -s "$(realpath "$insist")" "$folder/insist"
PATH=$folder:$PATH

commands() {
    insist help | awk '/^Commands:/ { on = 1; next } /^$/ { on = 0 } on { print $1 }'
}

options() { # [COMMAND]
    insist help "$@" | grep -oE '^ +(-[a-zA-Z], )?--[a-z-]+' | grep -oE -- '--[a-z-]+' | sort -u
}

page_is_clean() {
    command -v groff >/dev/null || { echo "groff is missing"; return 1; }
    complaints=$(groff -man -ww -z -Tutf8 docs/insist.1 2>&1)
    [ -z "$complaints" ] || { echo "$complaints"; return 1; }
}

page_has_commands() {
    [ -n "$(commands)" ] || { echo "insist help lists no command"; return 1; }
    commands | sort >"$folder/expected"
    sed -n 's/^\.SS //p' docs/insist.1 | sort | diff "$folder/expected" -
}

page_has_options() {
    [ -n "$(options)" ] || { echo "insist help lists no option"; return 1; }
    sed 's/\\-/-/g' docs/insist.1 >"$folder/page"
    for option in $(options) $(for command in $(commands); do options "$command"; done); do
        grep -qwe "$option" "$folder/page" || { echo "no $option"; return 1; }
    done
}

offers() { # SHELL EXPECTED WORD...
    shell=$1 expected=$2
    shift 2
    tests/complete.sh "$shell" "$@" >"$folder/offered" 2>&1
    grep -qxe "$expected" "$folder/offered" || { echo "offered:"; cat "$folder/offered"; return 1; }
}

offers_all_commands() { # SHELL
    commands | sort >"$folder/expected"
    [ -s "$folder/expected" ] && tests/complete.sh "$1" insist "" 2>&1 | LC_ALL=C sort | diff "$folder/expected" -
}

# The words that a command takes first are those of its usage lines.
offers_all_verbs() { # SHELL
    for command in alerts dead dest incidents errors audit subject nodes sources tenants; do
        insist help "$command" | grep -oE "^(usage:)? +insist $command \[?[a-z]+" | grep -oE '[a-z]+$' | sort -u >"$folder/expected"
        [ -s "$folder/expected" ] || { echo "no usage of $command"; return 1; }
        tests/complete.sh "$1" insist "$command" "" 2>&1 | diff "$folder/expected" - || { echo "of $command"; return 1; }
    done
}

events_stand_in_the_page() { # every name between log_event( and its first field
    cat src/*/*.c src/*/*/*.c | tr '\n' ' ' | grep -oE 'log_event\([^;]*;' | sed 's/FIELD_.*//' | grep -oE '"[a-z_]+"' | tr -d '"' | sort -u >"$folder/events"
    [ "$(wc -l <"$folder/events")" -gt 50 ] || { echo "few events found"; return 1; }
    while read -r event; do
        grep -q "\`$event\`" docs/operations.md || { echo "docs/operations.md has no \`$event\`"; return 1; }
    done <"$folder/events"
}

# [`function`](../src/file.c) in ARCHITECTURE: it is defined there. And the way of a job stays short.
functions_are_where_the_walk_says() {
    grep -oE '\[`[a-z_]+`\]\(\.\./src/[a-z_/]+\.c\)' docs/ARCHITECTURE.md | sed 's/\[`//;s/`\](\.\.\// /;s/)$//' >"$folder/walk"
    [ "$(wc -l <"$folder/walk")" -gt 20 ] || { echo "few functions found"; return 1; }
    while read -r name file; do
        grep -qE "^[a-z][a-z_ *]*\b$name\(" "$file" || { echo "$file does not define $name"; return 1; }
    done <"$folder/walk"
    of_a_job=$(grep -oE '^\|.*\[`[a-z_]+`\]\(\.\./src.*' docs/ARCHITECTURE.md | grep -oE '`[a-z_]+`' | sort -u | wc -l)
    [ "$of_a_job" -le 25 ] || { echo "the way of a job is $of_a_job functions long"; return 1; }
}

# `insist COMMAND [WORD]` as the pages have it: each command is there, and of those that take a word first, the word.
commands_of_the_pages_exist() {
    grep -hoE '\binsist [a-z]+( [a-z]+)?' README.md docs/*.md presets/README.md examples/*.yaml | sort -u >"$folder/named"
    commands >"$folder/commands"
    [ "$(wc -l <"$folder/named")" -gt 30 ] || { echo "few commands found"; return 1; }
    while read -r _ command word; do
        grep -qx "$command" "$folder/commands" || continue # a sentence about insist
        case $command in alerts | dead | dest | incidents | errors | audit) ;; *) continue ;; esac
        [ -z "$word" ] || insist help "$command" | grep -qE "^(usage:)? +insist $command .*\b$word\b" ||
            { echo "there is no insist $command $word"; return 1; }
    done <"$folder/named"
}

event_types_of_the_pages_exist() {
    grep -hoE '[?&]type=[a-z_,]+' README.md docs/*.md | cut -d= -f2 | tr ',' '\n' | sort -u >"$folder/types"
    while read -r type; do
        grep -q "\"$type\"" src/store/*.c src/store/*/*.c src/core/*/*.c || { echo "there is no event $type"; return 1; }
    done <"$folder/types"
}

check "the man page has no fault" page_is_clean
check "the man page has exactly the program's commands" page_has_commands
check "the man page has the program's options" page_has_options
for shell in bash zsh fish; do
    check "$shell completes every command" offers_all_commands $shell
    check "$shell completes every word that a command takes first" offers_all_verbs $shell
    check "$shell completes the beginning of a command" offers $shell decide insist de
    check "$shell completes a command's option" offers $shell --retry-count insist decide --re
    check "$shell completes a policy" offers $shell tiss insist decide --policy t
    check "$shell completes a scope" offers $shell work insist token printer --scope w
    check "$shell completes a command after an option with a value" offers $shell decide insist --output json d
done
check "the pages name only commands that there are" commands_of_the_pages_exist
check "the pages name only types of events that there are" event_types_of_the_pages_exist
check "every event of the log stands in docs/operations.md" events_stand_in_the_page
check "ARCHITECTURE finds its functions, and few lead through it" functions_are_where_the_walk_says
finish
