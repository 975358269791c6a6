#!/bin/sh
# The program is built so that a mistake in it is hard to use: what the compiler, the linker and systemd can do for it.
# shellcheck disable=SC2317 # check() calls the functions
. "$(dirname "$0")/../tap.sh"
set -e

# What the flags of the build give a source, asked of the compiler that has them. The file is as a shell reads it.
defined() { # NAME VALUE
    flags=$(sed 's/ -Wl,.*//' "$build/flags")
    echo '#include <stdlib.h>' | eval "$flags -dM -E -" | grep -qx "#define $1 $2"
}

machine_is_x86() {
    case $(uname -m) in x86_64 | i?86) ;; *) return 1 ;; esac
}

# Every object, and not the program: the C library's own first instructions are in that, and Debian's are without.
objects_have_cet() {
    machine_is_x86 || return 0
    find "$build/obj" -name '*.o' ! -path '*/tests/*' ! -name insist.o >"$work/objects"
    [ "$(wc -l <"$work/objects")" -gt 100 ] || { echo "few objects in $build/obj"; return 1; }
    while read -r object; do
        readelf -nW "$object" 2>/dev/null | grep -q 'IBT, SHSTK' || { echo "$object is without"; return 1; }
    done <"$work/objects"
}

stack_is_probed() { # gcc writes into the debug information what it was told
    machine_is_x86 || return 0
    readelf --debug-dump=info "$build/obj/main.o" 2>/dev/null | grep DW_AT_producer | grep -q -e -fstack-clash-protection
}

calls() { # SYMBOL: one that only the protected form of a call needs
    readelf -W --dyn-syms "$insist" | grep -q "UND $1@"
}

has_pie() { readelf -hW "$insist" | grep -q 'Type: *DYN'; }
is_bound_at_start() { readelf -dW "$insist" | grep -q 'BIND_NOW\|FLAGS_1.*NOW' && readelf -lW "$insist" | grep -q GNU_RELRO; }
stack_is_data() { readelf -lW "$insist" | grep GNU_STACK | grep -q ' RW '; }

unit_is_confined() {
    command -v systemd-analyze >/dev/null || return 0
    cp debian/insist.service "$work/insist.service"
    systemd-analyze security --offline=true --threshold=20 "$work/insist.service" >"$work/security" 2>&1 ||
        { grep -v '✓' "$work/security" | tail -30; return 1; }
}

check "what is copied is measured, also where the size is known only as it runs" defined __USE_FORTIFY_LEVEL 3
check "such calls are in the program" calls __memcpy_chk
check "every jump's target and every return is marked for the processor to check" objects_have_cet
check "a large frame on the stack is probed page by page" stack_is_probed
check "the stack is guarded" calls __stack_chk_fail
check "its addresses are random" has_pie
check "what the loader filled in is read-only afterwards" is_bound_at_start
check "nothing on the stack runs" stack_is_data
check "the unit gives the daemon only what it needs" unit_is_confined
finish
