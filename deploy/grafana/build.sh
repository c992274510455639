#!/bin/bash
# Builds the dashboards from src/ with Grafana's foundation SDK.
#
#   deploy/grafana/build.sh           writes dashboards/*.json and the screens in docs/grafana.md
#   deploy/grafana/build.sh --check   compares them with what is committed; writes nothing
#
# Installs the packages of package-lock.json into node_modules/ (npm ci) if necessary. Needs node 18 or
# later and npm: deploy/packages.sh test. Exit status of --check: 1 if anything is not current, 77 if npm
# is missing or cannot reach its registry, so that the check is impossible.
set -euo pipefail
cd "$(dirname "$0")"
readonly docs=../../docs/grafana.md

say() { echo "grafana: $*" >&2; }

case ${1:-} in
  '' | --check) mode=${1:-} ;;
  --help | -h) sed -n '2,9s/^# \{0,1\}//p' build.sh && exit 0 ;;
  *) sed -n '2,9s/^# \{0,1\}//p' build.sh >&2 && exit 2 ;;
esac

# cannot <why>: prints the reason and ends with its status.
cannot() {
  say "$1"
  if [ "$mode" = --check ]; then exit 77; fi
  exit 1
}

install_packages() {
  if cmp -s package-lock.json node_modules/.installed; then return; fi
  if ! command -v npm >/dev/null; then cannot "no npm: deploy/packages.sh test installs it"; fi
  npm --version >/dev/null  # If this fails, npm is broken; that is no reason to skip.
  if ! npm ci --no-audit --no-fund >&2; then
    if ! timeout 60 npm ping >/dev/null 2>&1; then cannot "npm cannot reach its registry"; fi
    say "npm ci failed although its registry answers; see above"
    exit 1
  fi
  cp package-lock.json node_modules/.installed
}

# The text of docs/grafana.md with the screens between its two marks replaced.
with_screens() {
  awk -v screens="$1" '
    /^<!-- screens: end -->$/ { inside = 0 }
    !inside { print }
    /^<!-- screens: begin/ {
      inside = 1
      while ((getline line < screens) > 0) print line
    }' "$docs"
}

# Without the marks nothing would be compared.
if ! grep -q '^<!-- screens: begin' "$docs" || ! grep -q '^<!-- screens: end -->$' "$docs"; then
  say "$docs has lost its marks <!-- screens: begin … --> and <!-- screens: end -->"
  exit 1
fi
install_packages
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
node_modules/.bin/tsc --project . --outDir "$work/js"
# The compiled files are elsewhere and do not find node_modules by themselves.
NODE_PATH=$PWD/node_modules node "$work/js/main.js" "$work/new"
with_screens "$work/new/screens.md" >"$work/grafana.md"
rm "$work/new/screens.md"

if [ "$mode" = --check ]; then
  if diff -ru dashboards "$work/new" && diff -u "$docs" "$work/grafana.md"; then exit 0; fi
  say "not current: run deploy/grafana/build.sh and commit what it writes"
  exit 1
fi
mkdir -p dashboards
rm -f dashboards/*.json
cp "$work/new"/*.json dashboards/
cp "$work/grafana.md" "$docs"
