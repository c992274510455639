#!/bin/bash
# The one place that names Debian 12's packages. Installs those that are missing.
#
#   deploy/packages.sh [--list] build|package|test|lint|bench ...
#
# build    to compile the programs · package  more for deploy/package
# test     more for the tests, of packages too · lint  clang's checks · bench  the peers of the benchmarks
set -euo pipefail
cd "$(dirname "$0")/.."

declare -A packages=(
  [build]="g++ cmake ninja-build ccache mold pkg-config
    libgrpc++-dev libgrpc-dev protobuf-compiler protobuf-compiler-grpc libprotobuf-dev libprotoc-dev
    librocksdb-dev libsnappy-dev libzstd-dev zlib1g-dev liblz4-dev libbz2-dev libgflags-dev
    prometheus-cpp-dev libabsl-dev libre2-dev libyaml-cpp-dev
    libssl-dev libc-ares-dev libcurl4-openssl-dev libpugixml-dev rapidjson-dev"
  [test]="libgtest-dev libgmock-dev libbenchmark-dev libnghttp2-dev libboost-context-dev
    python3 python3-grpcio python3-protobuf python3-yaml python3-setuptools python3-wheel
    python3-zstandard
    python3-numpy python3-torch curl ca-certificates openssl
    nodejs npm chromium strace zsh fish mandoc
    golang-go python3-kubernetes python3-jsonschema skopeo
    ceph-mon ceph-osd radosgw python3-rados
    dpkg-dev debhelper dh-python help2man lintian mmdebstrap"
  [package]="dpkg-dev debhelper dh-python help2man python3 python3-setuptools python3-wheel"
  [lint]="clang libclang-rt-14-dev clang-format clang-tidy"
  [bench]="libnghttp2-dev python3-numpy python3-torch python3-prometheus-client"
)
# These are unpacked into build/tools/ instead: installing servers would start services on your machine,
# kubernetes-client conflicts with kubectl of other vendors, and installing sprig would bring the packages that
# only its own tests use.
declare -A tools=([test]="prometheus prometheus-alertmanager victoria-metrics kubernetes-client
    golang-github-masterminds-sprig-dev golang-github-masterminds-semver-dev
    golang-github-masterminds-goutils-dev golang-github-google-uuid-dev golang-github-huandu-xstrings-dev
    golang-github-imdario-mergo-dev golang-github-mitchellh-copystructure-dev
    golang-github-mitchellh-reflectwalk-dev golang-github-shopspring-decimal-dev
    golang-github-spf13-cast-dev golang-golang-x-crypto-dev golang-gopkg-yaml.v3-dev" [bench]="prometheus prometheus-node-exporter victoria-metrics")

say() { echo "packages: $*" >&2; }

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    say "you are not root and there is no sudo. Ask an administrator to run: $*"
    exit 1
  fi
}

updated=no
update_once() {
  if [ "$updated" = no ]; then
    say "apt-get update"
    as_root apt-get -q update >&2
    updated=yes
  fi
}

# Node may come from another vendor's package, which conflicts with Debian's npm.
is_installed() {
  case $1 in
    nodejs) if command -v node >/dev/null; then return; fi ;;
    npm) if command -v npm >/dev/null; then return; fi ;;
  esac
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

install_missing() {
  local missing=() package
  for package in "$@"; do
    is_installed "$package" || missing+=("$package")
  done
  if [ ${#missing[@]} = 0 ]; then return; fi
  say "installing ${missing[*]}"
  update_once
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends \
    "${missing[@]}" >&2
}

# What is no program of its package's name is known by its notice.
unpack_missing() {
  local missing=() tool work
  for tool in "$@"; do
    if ! command -v "$tool" >/dev/null && [ ! -x "build/tools/usr/bin/$tool" ] &&
      [ ! -e "build/tools/usr/share/doc/$tool/copyright" ]; then missing+=("$tool"); fi
  done
  if [ ${#missing[@]} = 0 ]; then return; fi
  say "unpacking ${missing[*]} into build/tools"
  update_once
  work=$(mktemp -d)
  # apt's own user may write here, so that it does not complain.
  chmod 755 "$work"
  (cd "$work" && apt-get -q download "${missing[@]}" >&2)
  mkdir -p build/tools
  for tool in "$work"/*.deb; do dpkg -x "$tool" build/tools; done
  rm -rf "$work"
}

list=no
if [ "${1:-}" = --list ]; then
  list=yes
  shift
fi
help() { sed -n '2,7s/^# \{0,1\}//p' "$0"; }
case ${1:-} in
  --help | -h) help && exit 0 ;;
  '') help >&2 && exit 2 ;;
esac
if [ "$list" = no ] && ! command -v apt-get >/dev/null; then
  say "this is not Debian; install the counterparts of 'deploy/packages.sh --list $*' yourself"
  exit 1
fi

wanted=()
wanted_tools=()
for set_name in "$@"; do
  if [ -z "${packages[$set_name]+known}" ]; then
    say "unknown set '$set_name'; known: ${!packages[*]}"
    exit 2
  fi
  read -r -d '' -a names <<<"${packages[$set_name]}" || true
  wanted+=("${names[@]}")
  read -r -d '' -a names <<<"${tools[$set_name]:-}" || true
  wanted_tools+=("${names[@]}")
done
if [ "$list" = yes ]; then
  printf '%s\n' "${wanted[@]}" "${wanted_tools[@]}"
  exit
fi
install_missing "${wanted[@]}"
unpack_missing "${wanted_tools[@]}"
