#!/bin/bash
# Installs a build into an empty prefix, builds the project beside this script against it, runs it.
# Usage: run.sh BUILD_DIRECTORY CMAKE C_COMPILER CXX_COMPILER
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$1 cmake=$2 c_compiler=$3 compiler=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$cmake" --install "$build" --prefix "$work/prefix" >"$work/install.log" ||
  { cat "$work/install.log" && exit 1; }
for program in tacho-collector tacho-agent tachoctl tacho-example-train; do
  "$work/prefix/bin/$program" --help >/dev/null || { echo "$program --help failed" && exit 1; }
done
if grep -rIl --include='*.cmake' -e "$build" "$work/prefix"; then
  echo "the installed files above name the build directory"
  exit 1
fi

# A component has its own files and nothing else, so that it can be installed after building one program.
component() {
  local name=$1 found
  shift
  "$cmake" --install "$build" --prefix "$work/$name" --component "$name" >/dev/null
  found=$(cd "$work/$name" && find . -type f -o -type l | sort | tr '\n' ' ')
  [ "$found" = "$* " ] || { echo "component $name has '$found', not '$*'" && exit 1; }
}
component collector ./bin/tacho-collector
component agent ./bin/tacho-agent
component ctl ./bin/tachoctl
component library ./lib/libtacho.so.1 ./lib/libtacho.so.1.0.0

# with_pkg_config <program> <module> <compiler and flags> <sources>: builds it in $work.
with_pkg_config() {
  local program=$1 module=$2
  shift 2
  # shellcheck disable=SC2046
  "$@" -o "$work/$program" $(PKG_CONFIG_PATH=$work/prefix/lib/pkgconfig pkg-config --cflags --libs "$module")
  ring=$(LD_LIBRARY_PATH=$work/prefix/lib "$work/$program" "$work/rings")
  [ -s "$ring" ] || { echo "$program, built with pkg-config $module: no ring at '$ring'" && exit 1; }
}
with_pkg_config by_pc_in_c tacho "$c_compiler" -std=c99 "$here/record_in_c.c"
with_pkg_config by_pc_in_cpp_of_c tacho "$compiler" -x c++ "$here/record_in_c.c" -x none
with_pkg_config by_pc_in_cpp tacho++ "$compiler" -std=c++20 "$here/record.cc"
if ldd "$work/by_pc_in_cpp" | grep tacho; then
  echo "tacho++ is linked statically, but needs the library above"
  exit 1
fi

"$cmake" -S "$here" -B "$work/build" -G Ninja -DCMAKE_CXX_COMPILER="$compiler" \
  -DCMAKE_PREFIX_PATH="$work/prefix"
"$cmake" --build "$work/build" -j 2
ring=$("$work/build/record" "$work/rings")
[ -s "$ring" ] || { echo "no ring at '$ring'" && exit 1; }
ring=$("$work/build/record_in_c" "$work/rings")
[ -s "$ring" ] || { echo "no ring at '$ring'" && exit 1; }
"$work/build/record_direct"
# The trainer's promise: nothing but the C++ runtime.
if ldd "$work/build/record" | grep -E 'grpc|protobuf|absl'; then
  echo "the client library pulls in the libraries above"
  exit 1
fi
"$work/build/ask"
