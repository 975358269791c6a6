#!/bin/sh
# `make install` puts everything where it belongs, what it puts there works, and `make uninstall` takes it all away.
# shellcheck disable=SC2317 # check() calls the functions
. "$(dirname "$0")/../tap.sh"
set -e
unset MAKEFLAGS MFLAGS MAKELEVEL # this is not a part of the make that called
stage=$work/stage
mkdir "$stage"

version=$(cat VERSION)
cc=${CC:-cc}
usr=$stage/usr

files() {
    (cd "$stage" && find . ! -type d | sort)
}

expected() {
    {
        echo ./usr/bin/insist
        echo ./usr/include/insist.h
        echo ./usr/lib/libinsist.a
        echo ./usr/lib/libinsist.so
        echo ./usr/lib/libinsist.so.0
        echo "./usr/lib/libinsist.so.$version"
        echo ./usr/lib/pkgconfig/insist.pc
        echo ./usr/share/bash-completion/completions/insist
        echo ./usr/share/fish/vendor_completions.d/insist.fish
        echo ./usr/share/man/man1/insist.1
        echo ./usr/share/zsh/site-functions/_insist
        for preset in presets/*.yaml; do
            echo "./usr/share/insist/$preset"
        done
    } | sort
}

same_files() {
    expected >"$stage.expected"
    files | diff -u "$stage.expected" - || { rm -f "$stage.expected"; return 1; }
    rm -f "$stage.expected"
}

package() {
    PKG_CONFIG_PATH=$usr/lib/pkgconfig pkg-config --define-variable=prefix="$usr" --define-variable=libdir="$usr/lib" "$@" insist
}

# What the header declares, and what the library gives away.
declared() {
    tr '\n' ' ' <include/insist.h | grep -o 'INSIST_API [^(;]*(' | grep -o 'insist_[a-z0-9_]*($' | tr -d '(' | sort
}

exported() {
    nm -D --defined-only "$usr/lib/libinsist.so" | awk '$2 != "A" { print $3 }' | sort
}

given_by_archive() {
    nm -g --defined-only "$usr/lib/libinsist.a" | awk 'NF == 3 { print $3 }' | sort
}

same_symbols() { # LISTER
    declared >"$stage.declared"
    [ -s "$stage.declared" ] || { echo "the header declares nothing"; return 1; }
    "$1" | diff -u "$stage.declared" - || { rm -f "$stage.declared"; return 1; }
    rm -f "$stage.declared"
}

compile_shared() {
    # shellcheck disable=SC2046 # flags are words
    "$cc" -std=c11 -Wall -Wextra -Werror -o "$stage/shared" tests/install/consumer.c $(package --cflags --libs) &&
        LD_LIBRARY_PATH=$usr/lib "$stage/shared"
}

compile_static() {
    # shellcheck disable=SC2046
    "$cc" -std=c11 -o "$stage/static" tests/install/consumer.c $(package --cflags) "$usr/lib/libinsist.a" \
        $(package --static --libs-only-l | sed 's/-linsist//') && "$stage/static"
}

compile_as_cxx() {
    command -v c++ >/dev/null || return 0
    printf '#include <insist.h>\nint main() { return insist_version()[0] == 0; }\n' >"$stage/consumer.cc"
    # shellcheck disable=SC2046
    c++ -Wall -Wextra -Werror -o "$stage/cxx" "$stage/consumer.cc" $(package --cflags --libs) && LD_LIBRARY_PATH=$usr/lib "$stage/cxx"
}

says_version() {
    "$usr/bin/insist" version | grep -F "$version"
}

nothing_left() {
    [ -z "$(files)" ] || { files; return 1; }
}

clean_stage() {
    rm -f "$stage/shared" "$stage/static" "$stage/cxx" "$stage/consumer.cc"
}

check "make install succeeds" make -s install DESTDIR="$stage" PREFIX=/usr
check "installs exactly what it should" same_files
check "the program runs" says_version
check "pkg-config knows the version" package --exact-version="$version"
check "the shared library's name" sh -c "readelf -d '$usr/lib/libinsist.so' | grep -F '[libinsist.so.0]'"
check "the shared library exports what the header declares, no more" same_symbols exported
check "the archive gives what the header declares, no more" same_symbols given_by_archive
check "a program builds and runs with the shared library" compile_shared
check "a program builds and runs with the archive" compile_static
check "the header is C++ too" compile_as_cxx
clean_stage
check "installing again over it succeeds" make -s install DESTDIR="$stage" PREFIX=/usr
check "make uninstall succeeds" make -s uninstall DESTDIR="$stage" PREFIX=/usr
check "make uninstall leaves nothing" nothing_left
finish
