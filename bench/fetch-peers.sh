#!/usr/bin/env bash
# Gets the allocators that ours is compared with, as shared libraries for LD_PRELOAD.
#
#   bench/fetch-peers.sh DIR [NAME...]     makes DIR/libNAME.so for each NAME, by default for all but the secure modes:
#
#   mimalloc2 mimalloc3 snmalloc rpmalloc  built here, optimised and without checks, from the sources that Rust crates
#   gtcmalloc hardened                     carry (needs cargo, a C and a C++ compiler); gtcmalloc is Google's tcmalloc,
#                                          the newer one, and takes a minute; hardened is hardened_malloc
#   mimalloc2-secure mimalloc3-secure      their secure modes; only when named, they are for test/bugs/run.py
#   jemalloc tcmalloc tbbmalloc scudo      the files of Debian packages, unpacked and not installed; a copy of the
#                                          installed library where a package cannot be had; tcmalloc is gperftools'
#
# A library that is there and works is kept, so a second run only makes what is missing, or what is of another version
# than this script wants. One that cannot be made is reported and skipped; the exit code is the number of those.
# DIR/versions.txt says which versions they are: lines of NAME VERSION. The version is `unknown` for a library that was
# there before its line; remove the library to have it made again.
#
# gtcmalloc has its per-CPU caches only where the C library leaves restartable sequences to it; DIR/libgtcmalloc.env
# says so to the runner, which sets what it finds in such a file. Otherwise it has the slower caches per thread.
#
# Not to be had this way: Mesh (no crate, no Debian package) and Hoard (no Debian package).
set -u

default_names="mimalloc2 mimalloc3 snmalloc rpmalloc gtcmalloc hardened jemalloc tcmalloc tbbmalloc scudo"
all_names="$default_names mimalloc2-secure mimalloc3-secure"
crates='libmimalloc-sys = "=0.1.49"
snmalloc-sys = "=0.7.6"
rpmalloc-sys = "=0.2.3"
libtcmalloc-sys = "=0.1.14"
hardened-malloc-sys = "=16.0.2026071503"'
# What these crates carry. Where the library has no release number, the crate's.
wanted_versions='mimalloc2 2.3.2
mimalloc3 3.3.2
mimalloc2-secure 2.3.2
mimalloc3-secure 3.3.2
snmalloc 0.7.6
rpmalloc 0.2.3+b097fd0
gtcmalloc libtcmalloc-sys-0.1.14
hardened 16.0.2026071503'
cflags="-O3 -DNDEBUG -fPIC -shared"
llvm=19

if [ $# -lt 1 ] || [ "${1#-}" != "$1" ]; then
  sed -n '2,/^set -u$/s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
mkdir -p "$1" || exit 2
dir=$(cd "$1" && pwd)
shift
names=${*:-$default_names}
need=$(dirname "$0")/../scripts/need.sh
"$need" gcc g++
command -v cargo >/dev/null || "$need" cargo-web:cargo # Debian 12's cargo is too old for some of the crates
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
log=$temp/log

# ---- DIR/versions.txt

# The second word of the line of $1, in the lines of stdin.
version_of() { awk -v name="$1" '$1 == name { print $2 }'; }

known_version() { version_of "$1" 2>/dev/null <"$dir/versions.txt"; }

write_version() {
  { grep -v "^$1 " "$dir/versions.txt" 2>/dev/null; echo "$1 $2"; } | sort >"$temp/versions"
  cp "$temp/versions" "$dir/versions.txt"
}

# Debian's version without the epoch and the revision.
upstream_version() { sed 's/^[0-9]*://; s/-[^-]*$//; s/[+~].*//'; }

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

# Copies a shared library: from a Debian package if it can be had, else the installed one. Says the version in
# $temp/version.
copy_library() {
  local package=$1 file=$2 to=$3 from= version tree
  if tree=$(unpack "$package") && from=$(find "$tree" -name "$file" | head -n 1) && [ -n "$from" ]; then
    version=$(dpkg-deb -f "$temp/packages/$package"/*.deb Version)
  else
    from=$(PATH=$PATH:/sbin:/usr/sbin ldconfig -p | awk -v name="$file" '$1 == name { print $NF; exit }')
    [ -n "$from" ] || from=$(dpkg -L "$package" | grep "/$file\$" | head -n 1)
    version=$(dpkg-query -W -f '${Version}' "$package") || version=unknown
  fi
  echo "$version" | upstream_version >"$temp/version"
  [ -n "$from" ] && cp -L "$from" "$to"
}

# ---- one function per library: $1 is the file to make

# make_mimalloc FILE DIRECTORY [FLAGS]
make_mimalloc() {
  local source=$temp/crates/vendor/libmimalloc-sys/c_src/mimalloc/$2
  fetch_crates && cc $cflags ${3-} -DMI_MALLOC_OVERRIDE=1 -DMI_SHARED_LIB -DMI_SHARED_LIB_EXPORT -fvisibility=hidden \
    -ftls-model=initial-exec -I"$source/include" "$source/src/static.c" -o "$1" -lpthread
}
make_mimalloc2() { make_mimalloc "$1" v2; }
make_mimalloc3() { make_mimalloc "$1" v3; }
make_mimalloc2_secure() { make_mimalloc "$1" v2 -DMI_SECURE=4; }
make_mimalloc3_secure() { make_mimalloc "$1" v3 "-DMI_SECURE=4 -DMI_FREE_IS_CHECKED=1"; }

make_snmalloc() {
  local source=$temp/crates/vendor/snmalloc-sys/upstream/src cx16=
  [ "$(uname -m)" != x86_64 ] || cx16=-mcx16
  fetch_crates && c++ -std=c++20 $cflags $cx16 -ftls-model=initial-exec -fvisibility=hidden -fno-rtti \
    '-DSNMALLOC_EXPORT=__attribute__((visibility("default")))' -DSNMALLOC_USE_WAIT_ON_ADDRESS=1 -I"$source" \
    "$source/snmalloc/override/malloc.cc" "$source/snmalloc/override/new.cc" -static-libstdc++ -o "$1" -lpthread -latomic
}

make_rpmalloc() {
  fetch_crates && cc -std=gnu11 $cflags -DENABLE_PRELOAD=1 -DENABLE_OVERRIDE=1 -ftls-model=initial-exec \
    "$temp/crates/vendor/rpmalloc-sys/rpmalloc/rpmalloc/rpmalloc.c" -o "$1" -lpthread -ldl
}

# The crate holds the whole library, and the list of its files for a use without the names malloc and free; these are in
# tcmalloc.cc. Not through an archive: weak definitions would win over what the archive holds, and turn off the caches
# per CPU.
make_gtcmalloc() {
  fetch_crates || return 1
  local source=$temp/crates/vendor/libtcmalloc-sys objects=$temp/gtcmalloc
  mkdir -p "$objects"
  { grep -o '"c_src/[^"]*\.\(cc\|S\)"' "$source/build.rs" | tr -d '"' | grep -v '_bridge\.cc\|win32_'
    echo c_src/tcmalloc/tcmalloc/tcmalloc.cc; } |
    CFLAGS="${cflags% -shared} -w -std=c++17 -ftls-model=initial-exec -DTCMALLOC_INTERNAL_8K_PAGES" \
      SOURCE=$source/c_src OBJECTS=$objects xargs -P "$(nproc)" -I FILE sh -c '
        c++ $CFLAGS -I"$SOURCE/abseil-cpp" -I"$SOURCE/tcmalloc" -c "$SOURCE/../FILE" \
          -o "$OBJECTS/$(echo FILE | tr / _).o"' || return 1
  c++ -shared "$objects"/*.o -o "$1" -lpthread && echo GLIBC_TUNABLES=glibc.pthread.rseq=0 >"${1%.so}.env"
}

# Compilers older than C23 need the headers for its keywords.
make_hardened() {
  fetch_crates || return 1
  local crate=$temp/crates/vendor/hardened-malloc-sys
  local source=$crate/vendor/hardened-malloc objects=$temp/hardened file
  local settings=$(sed -n 's/ //g; s/=true$/=1/; s/=false$/=0/; s/^[A-Z_]*=.*/-D&/p' "$crate/config-default.conf")
  local flags="${cflags% -shared} -w -D_GNU_SOURCE -fvisibility=hidden $settings"
  flags="$flags -I$source -I$source/include -I$source/third_party"
  mkdir -p "$objects"
  for file in "$source"/*.c; do
    cc -std=c2x -include stdalign.h -include stdbool.h $flags -c "$file" -o "$objects/$(basename "$file").o" || return 1
  done
  c++ -std=c++17 -shared $flags "$source/new.cc" "$objects"/*.o -o "$1" -lpthread
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

make_scudo() { copy_library libclang-rt-$llvm-dev "libclang_rt.scudo_standalone-$(uname -m).so" "$1"; }

# ---- does a library load, and does malloc lead to it?

works() {
  local lib=$1
  [ -s "$lib" ] || return 1
  LD_PRELOAD=$lib /bin/ls / >"$temp/ls" 2>&1 || { echo "/bin/ls fails with it"; return 1; }
  if grep -q 'cannot be preloaded' "$temp/ls"; then cat "$temp/ls"; return 1; fi
  LD_DEBUG=bindings LD_PRELOAD=$lib /bin/ls / 2>&1 >/dev/null | grep -q "binding file /bin/ls .* to $lib .*\`malloc'" ||
    { echo "malloc of /bin/ls is another one"; return 1; }
}

# Is the library there, of the wanted version as far as one knows, and does it work?
is_good() {
  local known wanted
  known=$(known_version "$1")
  wanted=$(echo "$wanted_versions" | version_of "$1")
  case "$known" in
    '' | unknown | "$wanted") ;;
    *) [ -z "$wanted" ] || return 1 ;;
  esac
  works "$dir/lib$1.so"
}

failed=0
for name in $names; do
  lib=$dir/lib$name.so
  case " $all_names " in
    *" $name "*) ;;
    *) echo "$name: unknown; the names are: $all_names"; failed=$((failed + 1)); continue ;;
  esac
  echo "$wanted_versions" | version_of "$name" >"$temp/version" # or what make_... says
  if is_good "$name" >"$log" 2>&1; then
    [ -n "$(known_version "$name")" ] || write_version "$name" unknown
    echo "$name: kept, $(known_version "$name")"
  elif "make_${name//-/_}" "$lib" >"$log" 2>&1 && works "$lib" >>"$log" 2>&1; then
    write_version "$name" "$(cat "$temp/version")"
    echo "$name: made, $(known_version "$name")"
  else
    rm -f "$lib"
    echo "$name: FAILED, skipped"
    sed 's/^/  | /' "$log" | tail -n 5
    failed=$((failed + 1))
  fi
done
exit "$failed"
