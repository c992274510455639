#!/bin/bash
# Installs a build into an empty prefix, builds the project beside this script against it, runs it.
# Usage: run.sh BUILD_DIRECTORY CMAKE CXX_COMPILER
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$1 cmake=$2 compiler=$3
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
