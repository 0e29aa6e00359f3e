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
cmake -S . -B ../build -G Ninja -DCMAKE_BUILD_TYPE=Release -DTSR_CUDA=off >/dev/null
cmake --build ../build --target tsr_attack_files tessera_testdata >/dev/null
attack=$work/build/bin/tsr_attack_files
"$work/build/bin/tessera_testdata" "$work/data" >/dev/null
failures=0

# without NAME FILE SED ARGUMENTS...: the edit must change the file. The attack with these arguments must find nothing before
# it and something after it.
without()
{
  name=$1 file=$2 edit=$3
  shift 3
  [ -z "$only" ] || [ "$only" = "$name" ] || return 0
  if ! "$attack" "$work/data" "$work/mutants" "$@" >"$work/before" 2>&1; then
    echo "$name: found something before it was taken out: $(grep -m 1 WRONG "$work/before")"
    failures=$((failures + 1))
  fi
  cp "$file" "$work/kept"
  sed -i "$edit" "$file"
  if cmp -s "$file" "$work/kept"; then
    echo "$name: the edit of $file changes nothing"
    failures=$((failures + 1))
    return 0
  fi
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
without png app/library/verify.c 's/if (!tsr_makes_png(&source->header) || .*/if (false \&\& (false ||/; s/header->parameters, source->header.parameters, header->parameter_count) != 0)$/& )/' 400 kind='palette' mutation=header mode=named
without names io/container/section.c 's/if (byte < 32 || byte == 127) return false;/(void)byte;/' 1000 kind='series predict rans' mutation=set mode=named
[ "$failures" -eq 0 ] || exit 1
