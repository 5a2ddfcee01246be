#!/bin/sh
# Builds the Debian packages into OUT: the source package and the binary packages, from the source archive of this tree.
#
#   packaging/debian/build.sh [--any] OUT      --any: also with uncommitted changes
#
# Needs debhelper 13 and dpkg-dev.
set -eu
any=
if [ "${1-}" = --any ]; then any=--any; shift; fi
out=${1:?usage: packaging/debian/build.sh [--any] OUT}
root=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$out"
out=$(cd "$out" && pwd)

archive=$("$root/scripts/dist.sh" $any "$out")
version=$(basename "$archive" .tar.gz)
version=${version#mimalloc-}
mv "$archive" "$out/mimalloc-compact_$version.orig.tar.gz"
rm "$archive.sha256"
rm -rf "$out/mimalloc-compact-$version"
tar -C "$out" -xf "$out/mimalloc-compact_$version.orig.tar.gz"
mv "$out/mimalloc-$version" "$out/mimalloc-compact-$version"

# A source package has this directory at its top.  The license is that of the tree, in the form of Debian's file.
tree=$out/mimalloc-compact-$version
mkdir "$tree/debian"
cp -R "$root/packaging/debian/." "$tree/debian"
rm "$tree/debian/build.sh"
owner=$(sed -n 's/^Copyright (c) //p' "$root/LICENSE")
sed -n '/^Permission/,$p' "$root/LICENSE" | sed 's/^$/./; s/^/ /' > "$tree/debian/license"
sed -e "s/@COPYRIGHT@/$owner/" -e "/@LICENSE@/{r $tree/debian/license
d}" "$root/packaging/debian/copyright" > "$tree/debian/copyright"
rm "$tree/debian/license"

cd "$tree"
dpkg-buildpackage -us -uc "-j${JOBS:-2}"
