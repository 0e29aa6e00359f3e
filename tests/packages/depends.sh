#!/bin/sh
# Prints the names of the packages that ours depend on, without ours and without versions, a word each. usage: depends.sh DEB...
set -eu
for deb; do dpkg-deb -f "$deb" Depends; echo ,; done |
    sed -e 's/([^)]*)//g' -e 's/|[^,]*//g' | tr ', ' '\n\n' | grep -v '^$\|^libtessera2$\|^tessera$\|^orthanc-tessera$' | sort -u
