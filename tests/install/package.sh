#!/bin/sh
# `make deb`: the packages are as Debian wants them, and can be installed, upgraded and purged, in a root folder of their own.
# shellcheck disable=SC2317 # check() calls the functions
. "$(dirname "$0")/../tap.sh"
unset MAKEFLAGS MFLAGS MAKELEVEL INSIST_SERVER INSIST_TOKEN
daemon= receiver=
trap 'kill $daemon $receiver 2>/dev/null; rm -rf "$work"' EXIT
version=$(cat VERSION)

run env DEB_BUILD_OPTIONS=noautodbgsym make -s deb
check "make deb" ended 0 "insist_${version}_" "libinsist0_$version" "libinsist-dev_$version"
debs=$root/build/deb
run lintian --fail-on error --no-tag-display-limit --allow-root "$debs"/*.deb
check "lintian finds no error" ended 0
image_has_all() { # what the package depends on is what an image must install
    [ "$(. /etc/os-release && echo "${VERSION_ID:-}")" = 12 ] || return 0
    dpkg-deb -f "$debs/insist_${version}_$(dpkg --print-architecture).deb" Depends | tr ',' '\n' | awk '{ print $1 }' | grep '^lib' |
        grep -vxE 'libc6|libcrypt1' >"$work/needed"
    while read -r name; do
        grep -qw -- "$name" packaging/Containerfile || { echo "packaging/Containerfile: $name"; return 1; }
    done <"$work/needed"
    [ -s "$work/needed" ]
}
check "the image has every library of the program" image_has_all

# A root of its own, where the maintainer's scripts are told of it (DPKG_ROOT) instead of being run inside.
there=$work/root
mkdir -p "$there/var/lib/dpkg/updates" "$there/var/lib/dpkg/info" "$there/etc" "$there/usr/sbin" "$there/var/log"
: >"$there/var/lib/dpkg/status"
printf 'root:x:0:0::/root:/bin/sh\n' >"$there/etc/passwd"
printf 'root:x:0:\n' >"$there/etc/group"
dpkg_there() {
    dpkg --root="$there" --log="$work/dpkg.log" --force-script-chrootless,depends,not-root,confold "$@"
}
package() { echo "$debs/${1}_${version}_$(dpkg --print-architecture).deb"; }
installed() { [ "$(dpkg-query --admindir="$there/var/lib/dpkg" -W -f '${db:Status-Status}' insist)" = "$1" ]; }
run dpkg_there -i "$(package insist)" "$(package libinsist0)" "$(package libinsist-dev)"
check "installed" ended 0
check "dpkg says so" installed installed
check "the user is there" grep -q '^insist:' "$there/etc/passwd"
check "the state folder is there" test -d "$there/var/lib/insist"
unit=$there/lib/systemd/system/insist.service
[ -e "$unit" ] || unit=$there/usr/lib/systemd/system/insist.service
exposure() { # FILE...: of 10, smaller is better
    systemd-analyze security --offline=true --no-pager "$@" 2>/dev/null | grep -oE 'Overall exposure level for [^:]*: [0-9.]+' | grep -oE '[0-9.]+$'
}
small() {
    seen=$(exposure "$unit")
    echo "exposure $seen"
    awk -v seen="$seen" 'BEGIN { exit !(seen != "" && seen <= 1.5) }'
}
check "the unit exposes little" small
check "and its service has a watchdog and tells when it is ready" sh -c "grep -qx 'Type=notify' '$unit' && grep -q '^WatchdogSec=' '$unit'"
known() { ! systemd-analyze verify --root="$there" "$unit" 2>&1 | grep -iE 'unknown|failed to parse|invalid'; }
check "systemd knows every word of it" known
run "$there/usr/bin/insist" check -c "$there/etc/insist/insist.yaml"
check "the configuration is valid" ended 0

# What README.Debian has a fresh user type, with paths and ports of this root; `sudo` and `systemctl` are the test's own.
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
port=$(free_port)
sed -i "s|/var/lib/insist|$there/var/lib/insist|; s|127.0.0.1:7878|127.0.0.1:0|" "$there/etc/insist/insist.yaml"
"$there/usr/bin/insist" serve -c "$there/etc/insist/insist.yaml" >"$work/serve.out" 2>"$work/serve.err" &
daemon=$!
wait_for grep -q 'listens on' "$work/serve.out"
INSIST_SERVER=$(grep -o 'http://127.0.0.1:[0-9]*' "$work/serve.out" | head -n 1)
export INSIST_SERVER
mkdir "$work/bin"
printf '#!/bin/sh\nexec "$@"\n' >"$work/bin/sudo"
printf '#!/bin/sh\n[ "$*" = "reload insist" ] && kill -HUP %s\n' "$daemon" >"$work/bin/systemctl"
chmod +x "$work/bin/sudo" "$work/bin/systemctl"
sed -n '/^The first delivery/,/^A program/s/^    //p' "$there/usr/share/doc/insist/README.Debian" |
    sed "s|/etc/insist|$there/etc/insist|; s|7879|$port|g" >"$work/typed"
check "the first delivery takes five commands" test "$(wc -l <"$work/typed")" = 5
typed() { # LINE...: in one shell, where the configuration is
    (cd "$there/etc/insist" && for line in "$@"; do sed -n "${line}p" "$work/typed"; done >"$work/now" && PATH="$work/bin:$there/usr/bin:$PATH" sh -e "$work/now")
}
sed -n 1p "$work/typed" | sed 's/ &$//; s/^/exec /' >"$work/listen" # in the background, and known by its number
PATH="$there/usr/bin:$PATH" sh "$work/listen" >"$work/receiver.out" 2>&1 &
receiver=$!
wait_for grep -qE '127.0.0.1:[0-9]+' "$work/receiver.out"
run typed 2 3
check "the destination is written and valid, and the daemon told" ended 0
wait_for grep -q 'reloaded' "$work/serve.err"
run typed 4
check "a job is taken by the daemon of the package" ended 0
delivered() { typed 5 | grep -q completed; }
check "and delivered" until_true delivered
kill -TERM $daemon
wait $daemon

run dpkg_there -i "$(package insist)"
check "upgraded" ended 0
check "what the user wrote is as it was" grep -q 'preset: http, url' "$there/etc/insist/insist.yaml"
run dpkg_there -r insist
check "removed" ended 0
check "the configuration stays" test -e "$there/etc/insist/insist.yaml"
run dpkg_there -P insist
check "purged" ended 0
check "the configuration is gone" test ! -e "$there/etc/insist/insist.yaml"
check "the store is not" test -e "$there/var/lib/insist/insist.db"
finish
