# shellcheck shell=sh disable=SC2154 # tap.sh has set them
# Sourced after tap.sh: what is needed from npm is installed here once, by whoever comes first.
folder=$root/tests/clients
install_npm() {
    cmp -s "$folder/package.json" "$folder/node_modules/.installed" && return 0
    (cd "$folder" && npm install --no-save --ignore-scripts --no-audit --no-fund --loglevel=error) >"$work/out" 2>"$work/err" &&
        cp "$folder/package.json" "$folder/node_modules/.installed"
}
exec 8>"$folder/.npm.lock"
flock 8
install_npm || { echo "Bail out! npm cannot install what $folder/package.json names"; sed 's/^/# /' "$work/err"; exit 1; }
exec 8>&-
