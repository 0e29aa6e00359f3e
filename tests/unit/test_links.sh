#!/bin/sh
# Functions that a top folder calls are in that folder or in one below it, by the object files.
# The library shares no variable that can be written between its files.
# Usage: test_links.sh NM LIBRARY ROOT
set -u
cd "$3" || exit 2
{
    find transform entropy kernels io app -name '*.c' -o -name '*.cc' -o -name '*.cu' | sed 's|^|file |'
    "$1" -A "$2" 2>/dev/null
} | awk '
    BEGIN { rank["transform"] = 0; rank["entropy"] = 1; rank["kernels"] = rank["io"] = 2; rank["app"] = 3 }
    $1 == "file" { n = split($2, part, "/"); top[part[n]] = part[1]; next }
    {
        n = split($1, part, ":"); object = part[n - 1] != "" ? part[n - 1] : part[n - 2]; sub(/\.o$/, "", object)
        if (!(object in top)) next
        if ($(NF - 1) ~ /^[TDBRVW]$/) { defined[$NF] = top[object]; known++ }
        if ($(NF - 1) == "U") wanted[object " " $NF] = top[object]
    }
    END {
        for (key in wanted) {
            split(key, part, " ")
            if (!(part[2] in defined)) continue
            links++
            from = wanted[key]; to = defined[part[2]]
            if (rank[to] > rank[from] || (rank[to] == rank[from] && to != from)) { print part[1] " of " from "/ calls " part[2] " of " to "/"; bad = 1 }
        }
        if (known < 100 || links < 100) { print "only " known + 0 " symbols and " links + 0 " links: is this the library?"; exit 1 }
        exit bad
    }' || exit 1
"$1" --format=sysv "$2" 2>/dev/null | awk -F '|' '
    { gsub(/ /, "") }
    $1 ~ /^tsr_/ && $3 ~ /^[BCDGS]$/ && $7 !~ /^\.(data\.rel\.ro|tbss|tdata)/ { print $1 " is a variable that all files can write"; bad = 1 }
    END { exit bad }' || exit 1
echo "the links point down"
