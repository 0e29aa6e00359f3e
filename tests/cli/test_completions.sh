# Completions, asked of real shells.
. "${0%/*}/steps.sh"
PAGES=$(cd "$BIN/../pages" && pwd)
for tool in bash zsh fish; do
    command -v $tool >/dev/null && continue
    echo "skipped: $tool is missing"
    exit 77
done
mkdir 'a folder' folder
touch one.tsr two.pgm 'three parts.tsr' folder/four.tsr
verbs=$("$TESSERA" help | sed -n 's/^  \([a-z]*\) .*/\1/p')

# by_bash LINE: what bash offers at the end of the line, one a line. Words are split as bash splits them.
by_bash()
{
    bash --norc -c '. "$1"; words=(); rest=$2
        while [[ $rest =~ ^(=|[^=\ ]+|\ +)(.*)$ ]]; do
            [[ ${BASH_REMATCH[1]} == \ * ]] || words+=("${BASH_REMATCH[1]}")
            last=${BASH_REMATCH[1]} rest=${BASH_REMATCH[2]}
        done
        [[ $last == \ * ]] && words+=("")
        COMP_WORDS=("${words[@]}") COMP_CWORD=$((${#words[@]} - 1))
        _tessera
        printf "%s\n" "${COMPREPLY[@]}"' bash "$PAGES/tessera.bash" "$1"
}
by_fish()
{
    HOME=$PWD XDG_CONFIG_HOME=$PWD fish --no-config -c "source '$PAGES/tessera.fish'; complete -C '$1'" | cut -f 1
}
# zsh completes only on a terminal: in a pseudo-terminal a widget prints what compadd is given. What is typed before the
# line editor reads it would be the terminal's to edit.
cat >ask.zsh <<'END'
zmodload zsh/zpty
zpty asked zsh -f -i
zpty -w asked 'PROMPT= RPROMPT=; stty -echo; fpath=('${(q)1}' $fpath); autoload -Uz compinit; compinit -u -D; compdef _tessera tessera'
zpty -w asked 'compadd() { local -a found; builtin compadd -O found "$@" 2>/dev/null; local one; for one in $found; do print -r -- "<$one>"; done; builtin compadd "$@"; }'
zpty -w asked 'zstyle ":completion:*" list-prompt ""; LISTMAX=10000; zle -C ask complete-word _main_complete; bindkey "^I" ask'
zpty -w asked 'zle-line-init() { print -n LINE"-"READY; }; zle -N zle-line-init'
zpty -r -m asked line '*LINE-READY*' || exit 1
zpty -w -n asked "$2"$'\t'
zpty -w asked $'\x15print ENDED'
zpty -r -m asked line '*ENDED*'
print -r -- $line
zpty -d asked
END
mkdir functions
cp "$PAGES/tessera.zsh" functions/_tessera
by_zsh()
{
    TERM=dumb zsh -f ask.zsh "$PWD/functions" "$1" | tr -d '\r' | sed -n 's/.*<\(.*\)>.*/\1/p'
}

# offers SHELL LINE WORD...: each word is among what the shell offers.
offers()
{
    shell=$1 line=$2
    shift 2
    "by_$shell" "$line" | sed -e 's/ *$//' -e 's|/$||' -e 's/=$//' -e 's/\\ / /g' | sort -u >offered
    for word in "$@"; do grep -qxF -e "$word" offered || bad "$shell does not offer '$word' for '$line', but: $(head -20 offered | tr '\n' ' ')"; done
}
# refuses WORD...: none of them was offered last.
refuses()
{
    for word in "$@"; do grep -qxF -e "$word" offered && bad "$shell offers '$word' for '$line'"; done
}

for shell in bash zsh fish; do
    # shellcheck disable=SC2086 # words
    offers $shell 'tessera ' $verbs help
    offers $shell 'tessera ver' verify
    refuses compress
    # shellcheck disable=SC2086 # words
    offers $shell 'tessera help ' $verbs
    offers $shell 'tessera compress --p' --path --psnr --progress
    refuses --to --engine
    offers $shell 'tessera export --' --to --output
    refuses --path
    offers $shell 'tessera compress --path ' predict transform
    refuses two.pgm
    offers $shell 'tessera compress --coder r' rans
    refuses cavlc
    offers $shell 'tessera export --to ' native jpeg-ls jpeg-lossless rle j2k htj2k
    offers $shell 'tessera compress --report t' two.pgm
    offers $shell 'tessera compress ' two.pgm folder
    offers $shell 'tessera test ' one.tsr folder 'three parts.tsr'
    [ $shell = fish ] || refuses two.pgm # fish offers other names behind those of the ending
done
offers bash 'tessera compress --path=p' predict
offers bash 'tessera compress --update=' hash
offers bash 'tessera compress --qp ' ''
refuses two.pgm
offers bash 'tessera compress -- -' ''
refuses --path
offers bash 'tessera decompress -o t' two.pgm
# Every option of every verb's help is offered by every shell.
for verb in $verbs; do
    "$TESSERA" help "$verb" | sed -n 's/^  [-a-zA-Z0-9 ,]*\(--[a-z-]*\).*/\1/p' >wanted
    # shellcheck disable=SC2046 # words
    for shell in bash fish zsh; do offers $shell "tessera $verb --" $(cat wanted); done
done
finish
