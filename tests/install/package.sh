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

# What README.Debian has a fresh user type, with paths of this root.
sed -i "s|/var/lib/insist|$there/var/lib/insist|; s|127.0.0.1:7878|127.0.0.1:0|" "$there/etc/insist/insist.yaml"
"$there/usr/bin/insist" listen --port 0 >"$work/receiver.out" 2>&1 &
receiver=$!
wait_for grep -qE '127.0.0.1:[0-9]+' "$work/receiver.out"
port=$(grep -oE '127.0.0.1:[0-9]+' "$work/receiver.out" | head -n 1 | cut -d: -f2)
printf '  echo: { preset: http, url: "http://127.0.0.1:%s/", allow_private: true }\n' "$port" >>"$there/etc/insist/insist.yaml"
"$there/usr/bin/insist" serve -c "$there/etc/insist/insist.yaml" >"$work/serve.out" 2>"$work/serve.err" &
daemon=$!
wait_for grep -q 'listens on' "$work/serve.out"
INSIST_SERVER=$(grep -o 'http://127.0.0.1:[0-9]*' "$work/serve.out" | head -n 1)
export INSIST_SERVER
echo hello >"$work/hello"
run "$there/usr/bin/insist" add echo --id first "$work/hello"
check "a job is taken by the daemon of the package" ended 0
delivered() { "$there/usr/bin/insist" why first | grep -q completed; }
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
