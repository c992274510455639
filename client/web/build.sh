#!/bin/bash
# Builds the collector's web page from src/.
#
#   client/web/build.sh           writes dist/ and src/api/types.ts
#   client/web/build.sh --check   compares them with what is committed; writes nothing
#   client/web/build.sh --watch   writes dist/ again after each change, without checking types
#   client/web/build.sh --test    runs tests/client/web
#   client/web/build.sh --install installs packages only; tests in a browser need axe-core
#
# Installs the packages of package-lock.json into node_modules/ (npm ci) if necessary. Needs node 18 or
# later and npm: deploy/packages.sh test. Exit status of --check, --test and --install: 1 if anything is
# not current or fails, 77 if npm is missing or cannot reach its registry, so that they are impossible.
set -euo pipefail
cd "$(dirname "$0")"

say() { echo "web: $*" >&2; }

case ${1:-} in
  '' | --check | --watch | --test | --install) mode=${1:-} ;;
  --help | -h) sed -n '2,12s/^# \{0,1\}//p' build.sh && exit 0 ;;
  *) sed -n '2,12s/^# \{0,1\}//p' build.sh >&2 && exit 2 ;;
esac

# cannot <why>: prints the reason and ends with its status.
cannot() {
  say "$1"
  case $mode in --check | --test | --install) exit 77 ;; esac
  exit 1
}

install_packages() {
  if cmp -s package-lock.json node_modules/.installed; then return; fi
  if ! command -v npm >/dev/null; then cannot "no npm: deploy/packages.sh test installs it"; fi
  npm --version >/dev/null  # If this fails, npm is broken; that is no reason to skip.
  if ! npm ci --ignore-scripts --no-audit --no-fund >&2; then
    if ! timeout 60 npm ping >/dev/null 2>&1; then cannot "npm cannot reach its registry"; fi
    say "npm ci failed although its registry answers; see above"
    exit 1
  fi
  cp package-lock.json node_modules/.installed
}

# Two tests of one run of ctest may come here at once. npm ci removes all that is in node_modules, so
# the lock is on another file.
exec 9<package-lock.json
flock 9
install_packages
flock -u 9

if [ "$mode" = --install ]; then exit; fi
if [ "$mode" = --watch ]; then
  node types.mjs
  exec node bundle.mjs dist --watch
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ "$mode" = --test ]; then
  node_modules/.bin/esbuild ../../tests/client/web/*.test.ts --bundle --platform=node --format=esm \
    --target=node18 --jsx=automatic --jsx-import-source=preact --outdir="$work" --out-extension:.js=.mjs --log-level=warning
  NODE_PATH=$PWD/node_modules VECTORS=$PWD/../../tests/client/web/vectors node --test "$work"/*.mjs
  exit
fi
node types.mjs "$work/types.ts"
if [ "$mode" = --check ]; then
  node_modules/.bin/tsc
  node bundle.mjs "$work/dist"
  if diff -u src/api/types.ts "$work/types.ts" && diff -rq dist "$work/dist"; then exit 0; fi
  say "not current: run client/web/build.sh and commit what it writes"
  exit 1
fi
cp "$work/types.ts" src/api/types.ts
node_modules/.bin/tsc
node bundle.mjs dist
say "$(cat dist/*.js dist/*.css | gzip -9 | wc -c) bytes of script and style, compressed"
