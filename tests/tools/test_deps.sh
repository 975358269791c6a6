#!/bin/sh
# tools/deps on systems that are played here: apt-get, dpkg-query, id and sudo are small scripts in a folder of their own.
# shellcheck disable=SC2317 # check() calls the functions
. "$(dirname "$0")/../tap.sh"
set -e
folder=$work
bin=$folder/bin

stub() { # NAME, its script on standard input
    { echo '#!/bin/sh'; cat; } >"$bin/$1"
    chmod 755 "$bin/$1"
}

# A system where nothing is missing, nothing is started and the user is root.
system() {
    rm -rf "$bin" "$folder/policy" "$folder/state"
    mkdir -p "$bin" "$folder/state"
    : >"$folder/calls"
    for tool in sh env grep cut cat tee chmod rm sed touch; do
        ln -s "$(command -v "$tool")" "$bin/$tool"
    done
    for tool in cc make pkg-config python3 curl valgrind gcovr nginx groff chromium node npm promtool faketime redis-server rabbitmq-server amqp-get zsh fish javac dh dpkg-buildpackage lintian; do
        echo 'exit 0' | stub "$tool"
    done
    echo 'echo 14.0.6' | stub clang
    echo 'echo 0' | stub id
    echo 'echo installed' | stub dpkg-query
    echo "echo \"\$*\" >> $folder/calls; ls_policy=\$(cat $folder/policy 2>/dev/null); [ -z \"\$ls_policy\" ] || touch $folder/state/denied" | stub apt-get
}

deps() {
    code=0
    PATH=$bin POLICY_RC_D=$folder/policy /bin/sh tools/deps "$@" >"$folder/out" 2>&1 || code=$?
}

missing() { # PACKAGE: dpkg-query does not know it
    echo "case \"\$*\" in *' $1') echo unknown ok not-installed; exit 1 ;; *) echo installed ;; esac" | stub dpkg-query
}

silent_when_complete() {
    system && deps test
    [ "$code" = 0 ] && [ ! -s "$folder/out" ] && [ ! -s "$folder/calls" ]
}

installs_what_is_missing() {
    system && missing libyaml-dev && deps build
    [ "$code" = 0 ] && grep -qx 'deps: installing libyaml-dev' "$folder/out" &&
        grep -q 'install -y --no-install-recommends libyaml-dev$' "$folder/calls" && ! grep -q update "$folder/calls"
}

updates_stale_lists() {
    system && missing libyaml-dev
    stub apt-get <<END
echo "\$*" >> $folder/calls
case "\$*" in *update*) touch $folder/state/fresh ;; *) [ -e $folder/state/fresh ] ;; esac
END
    deps build
    [ "$code" = 0 ] && [ "$(grep -c install "$folder/calls")" = 2 ] && [ "$(grep -c update "$folder/calls")" = 1 ]
}

says_when_it_cannot() {
    system && missing libyaml-dev && echo 'exit 100' | stub apt-get && deps build
    [ "$code" = 1 ] && grep -q 'could not install: libyaml-dev' "$folder/out"
}

starts_no_server() {
    system && missing libyaml-dev && deps build
    [ -e "$folder/state/denied" ] && [ ! -e "$folder/policy" ]
}

keeps_a_policy() {
    system && missing libyaml-dev && echo mine >"$folder/policy" && deps build
    [ "$code" = 0 ] && [ "$(cat "$folder/policy")" = mine ]
}

uses_sudo() {
    system && missing libyaml-dev && echo 'echo 1000' | stub id
    echo "echo sudo \"\$*\" >> $folder/calls; exec \"\$@\"" | stub sudo
    deps build
    [ "$code" = 0 ] && grep -q '^sudo .*apt-get' "$folder/calls"
}

says_without_sudo() {
    system && missing libyaml-dev && echo 'echo 1000' | stub id && deps build
    [ "$code" = 1 ] && grep -q 'As root, run: apt-get' "$folder/out" && [ ! -s "$folder/calls" ]
}

another_nginx_will_do() {
    system && missing nginx-light && deps test
    [ "$code" = 0 ] && [ ! -s "$folder/calls" ]
}

elsewhere_it_lists() {
    system && rm "$bin/apt-get" "$bin/pkg-config" && deps build
    [ "$code" = 1 ] && grep -q 'pkg-config is missing' "$folder/out" && grep -q libyaml-dev "$folder/out" && ! grep -q ':cc' "$folder/out"
}

refuses_other_words() {
    system && deps everything
    [ "$code" = 2 ]
}

check "silent when nothing is missing" silent_when_complete
check "installs what is missing, and says so" installs_what_is_missing
check "asks for new lists when the old ones do not do" updates_stale_lists
check "says so when it cannot" says_when_it_cannot
check "no server is started, and the policy goes away again" starts_no_server
check "a policy that is there stays" keeps_a_policy
check "uses sudo when not root" uses_sudo
check "says what to do when there is no sudo" says_without_sudo
check "a program from another package will do" another_nginx_will_do
check "on other systems it lists the packages" elsewhere_it_lists
check "refuses other words" refuses_other_words
finish
