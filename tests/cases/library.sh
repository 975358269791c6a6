#!/bin/sh
# The library as others see it: its symbols, and the examples.
. "$(dirname "$0")/../tap.sh"
case $build in
*variant*) echo "1..0 # skip the examples are built against the plain library"; exit 0 ;;
esac
check "the library is built" test -e "$build/libinsist.so"
ln -s "$build/libinsist.so" "$work/libinsist.so.0" # the name that programs look for
flags="-Iinclude -L$build -Wl,-rpath,$work"

check "only insist_ names are exported" sh -c "! nm -D --defined-only '$build/libinsist.so' | awk '{print \$3}' | grep -v '^insist_'"
declared=$(grep -o 'insist_[a-z_]*(' include/insist.h | tr -d '(' | sort -u)
# shellcheck disable=SC2086 # one argument a name
check "every declared function is exported" sh -c "nm -D --defined-only '$build/libinsist.so' | awk '{print \$3}' | sort >'$work/names';
    for name in \$*; do grep -qx \$name '$work/names' || { echo \$name; exit 1; }; done" - $declared
check "the header is C99 and pedantic" sh -c "echo '#include <insist.h>' | ${CC:-cc} -std=c99 -Wall -Wextra -pedantic -Werror -Iinclude -fsyntax-only -x c -"
check "the header is C++98 and pedantic" sh -c "echo '#include <insist.h>' | ${CXX:-c++} -std=c++98 -Wall -Wextra -Wno-long-long -pedantic -Werror -Iinclude -fsyntax-only -x c++ -"

# shellcheck disable=SC2086
run ${CC:-cc} -std=c99 -Wall -Wextra -Werror $flags -o "$work/c" examples/decide.c -linsist
check "the C example builds" ended 0
# shellcheck disable=SC2086
run ${CXX:-c++} -std=c++17 -Wall -Wextra -Werror $flags -o "$work/cpp" examples/decide.cpp -linsist
check "the C++ example builds" ended 0
for program in "$work/c" "$work/cpp" "python3 examples/decide.py $build/libinsist.so"; do
    name=$(basename "${program%% *}")
    run $program tiss CLM-2025-001 'TIMEOUT - Connection timeout after 30s' 1
    check "$name: a retry" ended 0 'retry 2 of 5'
    run $program tiss CLM-2025-001 'INVALID_PATIENT_DATA' 0
    check "$name: a permanent error" ended 0 dead permanent
    run $program tiss CLM-2025-001 '' 0
    check "$name: a blank error" ended 2 blank
    run $program tis CLM-2025-001 x 0
    check "$name: an unknown preset" ended 2 tiss
done
finish
