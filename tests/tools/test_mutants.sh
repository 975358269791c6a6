#!/bin/sh
# The changes that tests must notice still fit the code: tests/mutants.
. "$(dirname "$0")/../tap.sh"

check "nearly all changes of tests/mutants/list fit the code" tests/mutants/run --check
finish
