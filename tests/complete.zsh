# For complete.sh: types the words into an interactive zsh, presses Tab, and prints what its completion adds.
zmodload zsh/zpty
folder=$(mktemp -d)
trap 'rm -rf $folder' EXIT
ln -s $PWD/completions/insist.zsh $folder/_insist # as it is installed
zpty shell zsh -f -i
zpty -w shell "PROMPT=; fpath=($folder \$fpath)"
zpty -w shell 'autoload -Uz compinit; compinit -u -D
bindkey "^I" complete-word
begun() { print -r -- "<offered>" }
ended() { print -r -- "</offered>"; exit }
compprefuncs=(begun)
comppostfuncs=(ended)
compadd() {
    local -a hits
    builtin compadd -A hits "$@"
    (($#hits)) && print -rl -- $hits
}
print rea""dy'
while zpty -r shell line; do
    [[ $line == *ready* ]] && break
done
zpty -w -n shell "$*"$'\t'
on=
while zpty -r shell line; do
    line=${${line%$'\n'}%$'\r'}
    case $line in
    *'</offered>'*) break ;;
    *'<offered>'*) on=yes ;;
    *) [[ -n $on ]] && print -r -- $line ;;
    esac
done
zpty -d shell
