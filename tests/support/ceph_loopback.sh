#!/bin/bash
# A real Ceph cluster with its S3 gateway, on this machine's loopback interface, for tests.
#
#   ceph_loopback.sh start DIR [OSDS]      3 OSDs unless said otherwise; prints what DIR/env holds
#   ceph_loopback.sh status DIR
#   ceph_loopback.sh kill DIR NAME         kill -9 of one daemon: mon, osd.0 ..., rgw.0 ...
#   ceph_loopback.sh revive DIR NAME       starts that daemon again
#   ceph_loopback.sh pause DIR NAME | resume DIR NAME       SIGSTOP, SIGCONT
#   ceph_loopback.sh stop DIR [--purge]    ends what start has started, by pid; --purge removes DIR
#
# Everything lies in DIR: configuration, stores, logs, pids. Nothing is read from /etc/ceph and
# nothing is written elsewhere. Daemons listen on 127.0.0.1 alone, without authentication between
# them (auth none): for tests only. The S3 side is authenticated, with SigV4, by the keys in DIR/env.
#
# Debian 12: apt-get install --no-install-recommends ceph-mon ceph-osd radosgw python3-rados curl
# Environment: BASE_PORT (default 16700: mon BASE, OSDs +10 ..., S3 +90); STORE bluestore (default,
# a file in DIR, fsynced) or memstore (memory, lost with the process); OSD_BYTES (default 4 GiB,
# sparse); SIZE replicas (default OSDS), MIN_SIZE (default SIZE > 2 ? 2 : 1); RGWS gateways (default
# 1; the others listen on the ports that follow); NICE (default 0);
# CEPH_LOOPBACK_MGR=1 starts a ceph-mgr too (needs package ceph-mgr; S3 does without).
set -euo pipefail

usage() { sed -n '2,12p' "$0" | sed 's/^# \{0,1\}//'; exit 2; }
[ $# -ge 2 ] || usage
verb=$1
mkdir -p "$2"
dir=$(cd "$2" && pwd)
shift 2
conf=$dir/ceph.conf
export CEPH_CONF=$conf CEPH_ARGS="--conf $conf"

say() { echo "ceph_loopback: $*" >&2; }
# Commands to the monitor, one JSON text an argument, in one process: the program `ceph` takes a second
# of processor time for each. Prints what the last one answers.
mon_commands() {
  /usr/bin/python3 - "$conf" "$@" 2>>"$dir/log/admin.err" <<'PY'
import json, rados, sys
cluster = rados.Rados(conffile=sys.argv[1])
cluster.connect(timeout=60)
for text in sys.argv[2:]:
    code, out, why = cluster.mon_command(text, b"", timeout=60)
    if code != 0:
        sys.exit(f"{text}: {code} {why}")
print(out.decode())
cluster.shutdown()
PY
}

# Start time in clock ticks: with the pid it names a process for good, so that a pid that the kernel
# has given to somebody else is never ended.
birth() { awk '{sub(/^.*\) /, ""); print $20}' "/proc/$1/stat" 2>/dev/null || true; }
alive() {  # name
  local pid was
  [ -f "$dir/run/$1" ] || return 1
  read -r pid was <"$dir/run/$1"
  [ -n "$was" ] && [ "$(birth "$pid")" = "$was" ] &&
    [ "$(awk '{sub(/^.*\) /, ""); print $1}' "/proc/$pid/stat" 2>/dev/null)" != Z ]
}
launch() {  # name command...
  local name=$1; shift
  alive "$name" && return 0
  setsid nice -n "${NICE:-0}" "$@" >>"$dir/log/$name.out" 2>&1 </dev/null &
  local pid=$!
  echo "$pid $(birth "$pid")" >"$dir/run/$name"
}
run_daemon() {  # name
  case $1 in
    mon) launch mon ceph-mon -f -i a -c "$conf" ;;
    mgr) launch mgr ceph-mgr -f -i x -c "$conf" ;;
    osd.*) launch "$1" ceph-osd -f -i "${1#osd.}" -c "$conf" ;;
    rgw.*) launch "$1" radosgw -f -n "client.$1" -c "$conf" ;;
    *) say "no daemon $1"; exit 2 ;;
  esac
}
signal() {  # signal name
  alive "$2" || { say "$2 does not run"; return 1; }
  local pid; read -r pid _ <"$dir/run/$2"
  kill "-$1" "$pid"
}
wait_for() {  # seconds what command...
  local left=$(($1 * 10)) what=$2; shift 2
  until "$@" >/dev/null 2>&1; do
    left=$((left - 1))
    [ $left -gt 0 ] || { say "no $what in time; see $dir/log"; return 1; }
    sleep 0.1
  done
}
s3_answers() { curl -s -o /dev/null --max-time 2 "http://127.0.0.1:$((s3_port + $1))/"; }  # number

write_conf() {  # osds
  local osds=$1 size=${SIZE:-$1}
  local min_size=${MIN_SIZE:-$((size > 2 ? 2 : 1))}
  cat >"$conf" <<CONF
[global]
fsid = $(cat /proc/sys/kernel/random/uuid)
mon_host = [v2:127.0.0.1:$base/0]
public_addr = 127.0.0.1
cluster_addr = 127.0.0.1
ms_bind_ipv6 = false
ms_bind_msgr1 = false
ms_bind_port_min = $((base + 10))
ms_bind_port_max = $((base + 80))
auth_cluster_required = none
auth_service_required = none
auth_client_required = none
run_dir = $dir/run
admin_socket = $dir/run/\$cluster-\$name.asok
log_file = $dir/log/\$name.log
mon_cluster_log_file = $dir/log/cluster.log
crash_dir = $dir/crash
keyring = $dir/keyring
osd_pool_default_size = $size
osd_pool_default_min_size = $min_size
osd_pool_default_pg_num = 8
osd_pool_default_pgp_num = 8
osd_pool_default_pg_autoscale_mode = off
osd_crush_chooseleaf_type = 0
mon_allow_pool_size_one = true
mon_max_pg_per_osd = 1000
mon_warn_on_pool_no_redundancy = false
# One machine's failures are seen within seconds, so that tests need not wait.
osd_heartbeat_interval = 1
osd_heartbeat_grace = 5
mon_osd_min_down_reporters = 1
mon_osd_down_out_interval = 600
[mon]
mon_data = $dir/mon
mon_data_avail_warn = 1
mon_data_avail_crit = 1
auth_allow_insecure_global_id_reclaim = true
[mgr]
mgr_data = $dir/mgr
mgr_initial_modules =
[osd]
osd_data = $dir/osd.\$id
osd_objectstore = ${STORE:-bluestore}
memstore_device_bytes = ${OSD_BYTES:-4294967296}
bluestore_block_size = ${OSD_BYTES:-4294967296}
bluestore_block_create = true
bluestore_block_db_create = false
bluestore_block_wal_create = false
bluestore_cache_autotune = false
bluestore_cache_size = 33554432
osd_op_num_shards = 2
osd_op_num_threads_per_shard = 1
osd_max_object_name_len = 2048
osd_max_object_namespace_len = 256
osd_class_update_on_start = false
osd_crush_update_on_start = false
CONF
  for ((i = 0; i < ${RGWS:-1}; i++)); do
    cat >>"$conf" <<CONF
[client.rgw.$i]
rgw_data = $dir/rgw.$i
# radosgw asks for a secure connection to monitors by default, which there is none of without keys.
ms_mon_client_mode = crc
rgw_frontends = beast endpoint=127.0.0.1:$((s3_port + i)) tcp_nodelay=1
rgw_thread_pool_size = 32
rgw_enable_usage_log = false
rgw_enable_ops_log = false
rgw_run_sync_thread = false
rgw_dynamic_resharding = false
rgw_override_bucket_index_max_shards = 1
rgw_gc_max_objs = 8
rgw_lc_max_objs = 8
CONF
  done
}

base=${BASE_PORT:-16700}
[ -f "$dir/base_port" ] && base=$(cat "$dir/base_port")
s3_port=$((base + 90))

case $verb in
start)
  osds=${1:-3}
  mkdir -p "$dir"/{run,log,crash}
  if [ ! -f "$dir/ready" ]; then
    echo "$base" >"$dir/base_port"
    write_conf "$osds"
    ceph-authtool --create-keyring "$dir/keyring" --gen-key -n mon. --cap mon 'allow *' >/dev/null
    monmaptool --create --clobber --fsid "$(sed -n 's/^fsid = //p' "$conf")" \
      --addv a "[v2:127.0.0.1:$base]" "$dir/monmap" >/dev/null
    ceph-mon --mkfs -i a -c "$conf" --monmap "$dir/monmap" --keyring "$dir/keyring" \
      >>"$dir/log/mkfs.out" 2>&1
    run_daemon mon
    commands=()
    for ((i = 0; i < osds; i++)); do
      id=$(cat /proc/sys/kernel/random/uuid)
      mkdir -p "$dir/osd.$i"
      commands+=("{\"prefix\": \"osd new\", \"uuid\": \"$id\", \"id\": $i}")
      commands+=("{\"prefix\": \"osd crush add\", \"id\": $i, \"weight\": 1.0,
                  \"args\": [\"root=default\", \"host=loopback\"]}")
      ceph-osd --mkfs -i "$i" -c "$conf" --osd-uuid "$id" >>"$dir/log/mkfs.out" 2>&1
    done
    mon_commands "${commands[@]}" >/dev/null || { say "the monitor refuses; see $dir/log/admin.err"; exit 1; }
  else
    osds=$(ls -d "$dir"/osd.* | wc -l)
    run_daemon mon
  fi
  if [ "${CEPH_LOOPBACK_MGR:-0}" = 1 ]; then mkdir -p "$dir/mgr"; run_daemon mgr; fi
  for ((i = 0; i < osds; i++)); do run_daemon "osd.$i"; done
  for ((i = 0; i < $(grep -c '^\[client.rgw' "$conf"); i++)); do
    run_daemon "rgw.$i"  # Answers once the OSDs do.
    wait_for 120 "S3 gateway $i" s3_answers "$i"
  done
  if [ ! -f "$dir/ready" ]; then
    key=TACHOTESTKEY00000000 secret=$(od -An -N20 -tx1 /dev/urandom | tr -d ' \n')
    radosgw-admin -c "$conf" -n client.rgw.0 user create --uid=tacho --display-name=tacho \
      --access-key="$key" --secret-key="$secret" >"$dir/log/user.json" 2>>"$dir/log/admin.err"
    cat >"$dir/env" <<ENV
export AWS_ACCESS_KEY_ID=$key
export AWS_SECRET_ACCESS_KEY=$secret
export AWS_REGION=us-east-1
export S3_ENDPOINT=http://127.0.0.1:$s3_port
ENV
    touch "$dir/ready"
  fi
  cat "$dir/env"
  ;;
status)
  for f in "$dir"/run/*; do
    name=$(basename "$f"); case $name in *.asok) continue ;; esac
    if alive "$name"; then
      read -r pid _ <"$f"
      echo "$name pid $pid rss_kb $(awk '/^VmRSS/{print $2}' "/proc/$pid/status")"
    else echo "$name not running"; fi
  done
  mon_commands '{"prefix": "osd stat", "format": "json"}' || true
  ;;
kill) signal KILL "$1" ;;
pause) signal STOP "$1" ;;
resume) signal CONT "$1" ;;
revive)
  run_daemon "$1"
  case $1 in rgw.*) wait_for 60 "S3 gateway" s3_answers "${1#rgw.}" ;; esac
  ;;
stop)
  names=()
  for f in "$dir"/run/*; do
    name=$(basename "$f"); case $name in *.asok | '*') continue ;; esac
    names+=("$name")
  done
  # Those that need the others first, then the OSDs, then the monitor; 10 s for each kind.
  for kind in rgw mgr osd mon; do
    for sig in CONT TERM KILL; do
      for ((t = 0; t < 100; t++)); do
        left=0
        for name in "${names[@]}"; do
          case $name in $kind | $kind.*) ;; *) continue ;; esac
          alive "$name" || continue
          left=1
          [ $t != 0 ] || signal $sig "$name" || true
        done
        [ $left = 1 ] && [ $sig != CONT ] || break
        sleep 0.1
      done
    done
  done
  for name in "${names[@]}"; do rm -f "$dir/run/$name"; done
  [ "${1:-}" != --purge ] || rm -rf "$dir"
  ;;
*) usage ;;
esac
