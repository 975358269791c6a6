#!/bin/sh
# Measures the decision: nanoseconds a call of the library, and lines a second of `insist decide --batch`, which runs on
# one thread. INSIST and INSIST_BUILD name another program and folder than build/insist and build; LINES the number of lines.
set -eu
cd "$(dirname "$0")/.."
insist=${INSIST:-build/insist}
build=${INSIST_BUILD:-build}
lines=${LINES:-1000000}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"${CC:-cc}" -O2 -Wall -Wextra -Iinclude -o "$work/decide" bench/decide.c -L"$build" -linsist
ln -s "$(realpath "$build/libinsist.so")" "$work/libinsist.so.0"
export LD_LIBRARY_PATH="$work"
for preset in tiss email sifen provisioning; do
    "$work/decide" time $preset
done

"$work/decide" lines "$lines" >"$work/questions"
for _ in 1 2 3 4 5; do
    start=$(date +%s%N)
    "$insist" decide --batch <"$work/questions" >"$work/answers"
    end=$(date +%s%N)
    echo $((lines * 1000000 / ((end - start) / 1000)))
done | sort -n >"$work/rates"
[ "$(wc -l <"$work/answers")" = "$lines" ] || { echo "decide.sh: not every line was answered" >&2; exit 1; }
echo "insist decide --batch < $lines lines > file: $(sed -n 3p "$work/rates") lines/s median, $(tail -n 1 "$work/rates") best of 5"
