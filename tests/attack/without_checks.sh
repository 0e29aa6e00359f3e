#!/bin/sh
# Removes one check after another from a copy of the reader. The attack on files must then find something. So each check is
# needed, and the attack would notice if one was lost.
# usage: without_checks.sh WORK [NAME]      WORK: a folder of its own; some minutes on two cores
set -eu
tree=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$1"
work=$(cd "$1" && pwd)
only=${2:-}
rm -rf "$work/tree" "$work/mutants"
mkdir -p "$work/tree" "$work/mutants"
(cd "$tree" && tar -c --exclude='./build*' --exclude=./.git --exclude=./.deps --exclude=./.carry .) | tar -x -C "$work/tree"
cd "$work/tree"
attack=$work/build/bin/tsr_attack_files
failures=0

build()
{
  cmake -S . -B ../build -G Ninja -DCMAKE_BUILD_TYPE=Release -DTSR_CUDA=off >/dev/null
  cmake --build ../build --target tsr_attack_files tessera_testdata >/dev/null
  "$work/build/bin/tessera_testdata" "$work/data" >/dev/null
}

# without NAME FILE EDITS ARGUMENTS...: EDITS are expressions of sed, one a line, and each of them must change the file. The
# attack with these arguments must find nothing before them and something after them.
edit_each()
{
  printf '%s\n' "$edits" >"$work/edits"
  while IFS= read -r edit; do
    cp "$file" "$work/unedited"
    sed -i "$edit" "$file"
    cmp -s "$file" "$work/unedited" || continue
    echo "$name: this edit of $file changes nothing: $edit"
    return 1
  done <"$work/edits"
}

without()
{
  name=$1 file=$2 edits=$3
  shift 3
  [ -z "$only" ] || [ "$only" = "$name" ] || return 0
  cp "$file" "$work/kept"
  if [ "$pass" = edits ]; then
    edit_each || failures=$((failures + 1))
    cp "$work/kept" "$file"
    return 0
  fi
  if ! "$attack" "$work/data" "$work/mutants" "$@" >"$work/before" 2>&1; then
    echo "$name: found something before it was taken out: $(grep -m 1 WRONG "$work/before")"
    failures=$((failures + 1))
  fi
  edit_each
  if ! cmake --build ../build --target tsr_attack_files >"$work/log" 2>&1; then
    echo "$name: does not compile, see $work/log"
    failures=$((failures + 1))
  elif "$attack" "$work/data" "$work/mutants" "$@" >"$work/after" 2>&1; then
    echo "$name: NOT FOUND"
    failures=$((failures + 1))
  else
    echo "$name: found: $(grep -m 1 -E 'WRONG|CRASHES|HANGS|members lost' "$work/after" | cut -c 1-150)"
  fi
  cp "$work/kept" "$file"
  cmake --build ../build --target tsr_attack_files >/dev/null
}

all_checks()
{
  pass=$1
  without sections io/container/section_reader.c '/if (found + seal != tsr_read_u64/d' 60 kind='pnm predict rans' mode=left
  without footer io/container/section_reader.c '/tsr_read_u32(bytes + 16) == /d' 400 kind='verbatim' mutation=flip mode=left
  without signature io/container/section_reader.c '/note_damage(s, "signature")/d' 4000 kind='verbatim' mutation=flip mode=left
  without copy io/container/section_reader.c 's/if (!is_ours || tsr_hash64_of(copy.index, copy.index_size) != index_hash)/if (false)/' 1000 kind='verbatim' mutation=flip mode=left
  without end io/container/section_reader.c '/note_damage(s, "end of the file")/s/note_damage(s, "end of the file")/(void)0/' 41 kind='png predict huffman' mutation=splice
  without id io/container/check_sections.c 's/if (tsr_hasher_result64(&id) == r->chosen.header.id) return TSR_OK;/return TSR_OK;/' 200 kind='pnm predict rans' mode=checked
  without id_of_a_series io/container/check_sections.c 's/if (damaged > 0 || r->placed < r->members/if (true || damaged > 0/' 400 kind='series predict rans' mode=checked
  without original app/library/decode.c 's/if (header->exact \&\& !\*identical)/if (false)/' 100 kind='dicom predict rans' mode=named
  without original_of_a_text app/library/decode.c 's/if (header->exact \&\& !\*identical)/if (false)/' 100 kind='verbatim' mode=named
  without restored app/library/decode.c 's/if (!header->exact \&\&/if (false \&\&/' 100 kind='dicom_lossy predict rans' mode=named
  without png app/library/verify.c 's/if (!tsr_makes_png(&source->header) || .*/if (false \&\& (false ||/
s/header->parameters, source->header.parameters, header->parameter_count) != 0)$/& )/' 400 kind='palette' mutation=header mode=named
  without png_form io/recipe/png_parameters.c 's/header->parameters.TSR_PNG_FORM. > (.*) ||$/false ||/' 400 kind='png_anew' mutation=header mode=named
  without names io/container/section.c "s/if (name\[end++\] == '.0') return false;/end++;/" 4000 kind='series predict rans' mutation=set mode=named
}

all_checks edits # before anything is built
[ "$failures" -eq 0 ] || exit 1
build
all_checks attack
[ "$failures" -eq 0 ] || exit 1
