#!/usr/bin/env bash
# Gets the allocators that ours is compared with, as shared libraries for LD_PRELOAD.
#
#   bench/fetch-peers.sh DIR [NAME...]     makes DIR/libNAME.so for each NAME, by default for all of them:
#
#   mimalloc2 mimalloc3 snmalloc rpmalloc  built here, optimised and without checks, from the sources that Rust crates
#                                          carry (needs cargo, a C and a C++ compiler)
#   jemalloc tcmalloc tbbmalloc            the files of Debian packages, unpacked and not installed; a copy of the
#                                          installed library where a package cannot be had
#
# A library that is there and works is kept, so a second run only makes what is missing. One that cannot be made is
# reported and skipped; the exit code is the number of those.
set -u

all_names="mimalloc2 mimalloc3 snmalloc rpmalloc jemalloc tcmalloc tbbmalloc"
crates='libmimalloc-sys = "=0.1.49"
snmalloc-sys = "=0.7.6"
rpmalloc-sys = "=0.2.3"'
cflags="-O3 -DNDEBUG -fPIC -shared"

if [ $# -lt 1 ] || [ "${1#-}" != "$1" ]; then
  sed -n '2,12s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
mkdir -p "$1" || exit 2
dir=$(cd "$1" && pwd)
shift
names=${*:-$all_names}
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
log=$temp/log

# ---- sources and packages, each fetched once, when it is first needed

fetch_crates() {
  [ -d "$temp/crates/vendor" ] && return
  mkdir -p "$temp/crates/src" && touch "$temp/crates/src/lib.rs"
  printf '[package]\nname = "peers"\nversion = "0.0.0"\nedition = "2021"\n[dependencies]\n%s\n' "$crates" \
    >"$temp/crates/Cargo.toml"
  (cd "$temp/crates" && cargo vendor --quiet vendor)
}

# Unpacks a Debian package, and prints where.
unpack() {
  local into=$temp/packages/$1
  if [ ! -d "$into/tree" ]; then
    mkdir -p "$into" && (cd "$into" && apt-get download -qq "$1" >&2 && dpkg -x ./*.deb tree) || return 1
  fi
  echo "$into/tree"
}

# Copies a shared library: from a Debian package if it can be had, else the installed one.
copy_library() {
  local package=$1 soname=$2 to=$3 from=
  local tree
  tree=$(unpack "$package") && from=$(find "$tree" -name "$soname" | head -n 1)
  [ -n "$from" ] ||
    from=$(PATH=$PATH:/sbin:/usr/sbin ldconfig -p | awk -v name="$soname" '$1 == name { print $NF; exit }')
  [ -n "$from" ] && cp -L "$from" "$to"
}

# ---- one function per library: $1 is the file to make

make_mimalloc() {
  local source=$temp/crates/vendor/libmimalloc-sys/c_src/mimalloc/$2
  fetch_crates && cc $cflags -DMI_MALLOC_OVERRIDE=1 -DMI_SHARED_LIB -DMI_SHARED_LIB_EXPORT -fvisibility=hidden \
    -ftls-model=initial-exec -I"$source/include" "$source/src/static.c" -o "$1" -lpthread
}
make_mimalloc2() { make_mimalloc "$1" v2; }
make_mimalloc3() { make_mimalloc "$1" v3; }

make_snmalloc() {
  local source=$temp/crates/vendor/snmalloc-sys/upstream/src
  fetch_crates && c++ -std=c++20 $cflags -mcx16 -DSNMALLOC_USE_WAIT_ON_ADDRESS=1 -I"$source" \
    "$source/snmalloc/override/malloc.cc" "$source/snmalloc/override/new.cc" -o "$1" -lpthread -latomic
}

make_rpmalloc() {
  fetch_crates && cc -std=gnu11 $cflags -DENABLE_PRELOAD=1 -DENABLE_OVERRIDE=1 -ftls-model=initial-exec \
    "$temp/crates/vendor/rpmalloc-sys/rpmalloc/rpmalloc/rpmalloc.c" -o "$1" -lpthread -ldl
}

make_jemalloc() { copy_library libjemalloc2 libjemalloc.so.2 "$1"; }
make_tcmalloc() { copy_library libtcmalloc-minimal4 libtcmalloc_minimal.so.4 "$1"; }

# Two libraries: the proxy, which replaces malloc, must find the allocator next to itself.
make_tbbmalloc() {
  copy_library libtbbmalloc2 libtbbmalloc_proxy.so.2 "$1" || return 1
  copy_library libtbbmalloc2 libtbbmalloc.so.2 "$dir/libtbbmalloc.so.2" || return 1
  local patchelf=patchelf tree
  command -v patchelf >/dev/null || { tree=$(unpack patchelf) && patchelf=$tree/usr/bin/patchelf; } || return 1
  "$patchelf" --force-rpath --set-rpath '$ORIGIN' "$1"
}

# ---- does a library load, and does malloc lead to it?

works() {
  local lib=$1
  [ -s "$lib" ] || return 1
  LD_PRELOAD=$lib /bin/ls / >"$temp/ls" 2>&1 || { echo "/bin/ls fails with it"; return 1; }
  if grep -q 'cannot be preloaded' "$temp/ls"; then cat "$temp/ls"; return 1; fi
  LD_DEBUG=bindings LD_PRELOAD=$lib /bin/ls / 2>&1 >/dev/null | grep -q "binding file /bin/ls .* to $lib .*\`malloc'" ||
    { echo "malloc of /bin/ls is another one"; return 1; }
}

failed=0
for name in $names; do
  lib=$dir/lib$name.so
  case " $all_names " in
    *" $name "*) ;;
    *) echo "$name: unknown; the names are: $all_names"; failed=$((failed + 1)); continue ;;
  esac
  if works "$lib" >"$log" 2>&1; then
    echo "$name: kept"
  elif "make_$name" "$lib" >"$log" 2>&1 && works "$lib" >>"$log" 2>&1; then
    echo "$name: made"
  else
    rm -f "$lib"
    echo "$name: FAILED, skipped"
    sed 's/^/  | /' "$log" | tail -n 5
    failed=$((failed + 1))
  fi
done
exit "$failed"
