#!/bin/sh
# Makes the source archive of a release: OUT/mimalloc-VERSION.tar.gz, which unpacks into the directory mimalloc-VERSION, and its
# checksum in OUT/mimalloc-VERSION.tar.gz.sha256.  Prints the path of the archive.  The version is that of level 2 in
# include/mimalloc.h.
#
#   scripts/dist.sh OUT             from a clean checkout only
#   scripts/dist.sh --any OUT       also with uncommitted changes, which are then part of the archive
#   scripts/dist.sh --sign KEY OUT  also a signature by this key of gpg, OUT/mimalloc-VERSION.tar.gz.asc
#
# The same commit gives the same bytes (with the same tar and gzip).  An unpacked archive can make the archive again.
set -eu

any=no
key=
while :; do
  case ${1-} in
    --any) any=yes; shift ;;
    --sign) key=${2:?usage: scripts/dist.sh [--any] [--sign KEY] OUT}; shift 2 ;;
    *) break ;;
  esac
done
out=${1:?usage: scripts/dist.sh [--any] [--sign KEY] OUT}
mkdir -p "$out"
out=$(cd "$out" && pwd)
cd "$(dirname "$0")/.."

number=$(sed -n 's/^ *# *define  *MI_MALLOC_VERSION  *\(2[0-9]*\).*/\1/p' include/mimalloc.h)
name=mimalloc-$((number / 10000)).$((number / 100 % 100)).$((number % 100))
listed=$(mktemp)
files=$(mktemp)
trap 'rm -f "$listed" "$files"' EXIT

# A repository around the unpacked archive is not ours.
if [ -e .git ] && git rev-parse HEAD > /dev/null 2>&1; then
  if [ "$any" = no ] && [ -n "$(git status --porcelain)" ]; then
    echo "dist.sh: there are uncommitted changes; commit them, or take them along with --any" >&2
    exit 1
  fi
  time=$(git log -1 --format=%ct)
  git ls-files -z --cached --others --exclude-standard > "$listed"
else
  time=$(stat -c %Y include/mimalloc.h)
  find . \( -path ./build -o -path ./.git -o -name __pycache__ \) -prune -o \( -type f -o -type l \) -printf '%P\0' > "$listed"
fi

# A deleted file is still listed until the deletion is committed.
xargs -0 sh -c 'for f; do if [ -e "$f" ]; then printf "%s\0" "$f"; fi; done' sh < "$listed" | LC_ALL=C sort -z -u > "$files"

LC_ALL=C tar --create --null --no-recursion --verbatim-files-from --files-from="$files" --transform="s,^,$name/,S" \
  --owner=0 --group=0 --numeric-owner --mode=go+u,go-w --mtime="@$time" --format=ustar |
  gzip -9n > "$out/$name.tar.gz"
(cd "$out" && sha256sum "$name.tar.gz" > "$name.tar.gz.sha256")
if [ -n "$key" ]; then
  rm -f "$out/$name.tar.gz.asc"
  gpg --batch --local-user "$key" --armor --detach-sign "$out/$name.tar.gz"
fi
echo "$out/$name.tar.gz"
