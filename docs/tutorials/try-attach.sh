#!/bin/bash
# Measures what `sooner attach web` gives a small page beside six downloads, on this machine and
# away from its network: a web server, a router with a 10 Mbit/s link, a client, in three network
# namespaces. Needs root, nginx, curl and sooner. Everything is removed at the end.
#
#   sudo bash try-attach.sh [RUNS]
set -eu
runs=${1:-1}
sooner=${SOONER:-sooner}
scratch=$(mktemp -d /tmp/try-attach.XXXXXX)
names="try-web try-router try-world"
pids=""

end() {
  for pid in $pids; do kill "$pid" 2>/dev/null || true; done
  wait || true
  for name in $names; do ip netns del "$name" 2>/dev/null || true; done
  rm -rf "$scratch"
}
trap end EXIT
in_web="ip netns exec try-web"
in_world="ip netns exec try-world"

# The network: web (tweb0) - router - world. The router's link to the world carries 10 Mbit/s.
for name in $names; do ip netns add "$name"; ip -n "$name" link set lo up; done
ip link add tweb0 netns try-web type veth peer name to-web netns try-router
ip link add to-world netns try-router type veth peer name world0 netns try-world
ip -n try-web addr add 10.71.1.2/24 dev tweb0
ip -n try-router addr add 10.71.1.1/24 dev to-web
ip -n try-router addr add 10.71.2.1/24 dev to-world
ip -n try-world addr add 10.71.2.2/24 dev world0
ip -n try-web link set tweb0 up
ip -n try-router link set to-web up
ip -n try-router link set to-world up
ip -n try-world link set world0 up
ip -n try-web route add default via 10.71.1.1
ip -n try-world route add default via 10.71.2.1
ip netns exec try-router sysctl -qw net.ipv4.ip_forward=1
ip netns exec try-router tc qdisc add dev to-world root tbf rate 10mbit burst 5kb limit 150kb

# The server: a page of 4 KB, and a file of 200 MB.
mkdir "$scratch/root"
head -c 4096 /dev/urandom >"$scratch/root/page.html"
head -c 200000000 /dev/urandom >"$scratch/root/big.iso"
chmod -R a+rX "$scratch"
cat >"$scratch/nginx.conf" <<END
daemon off; worker_processes 1; pid $scratch/nginx.pid; error_log $scratch/error.log;
events { worker_connections 1024; }
http { access_log off; sendfile on; tcp_nopush on; server { listen 80; root $scratch/root; } }
END
$in_web nginx -c "$scratch/nginx.conf" & pids="$pids $!"
sleep 1

for _ in 1 2 3 4 5 6; do
  $in_world curl -so /dev/null http://10.71.1.2/big.iso & pids="$pids $!"
done
sleep 5

# Forty pages, one after the other: the median and the longest.
pages() {
  for _ in $(seq 40); do
    $in_world curl -so /dev/null -w '%{time_total}\n' http://10.71.1.2/page.html
    sleep 0.2
  done | sort -n | awk -v what="$1" '{ ms[NR] = 1000 * $1 }
    END { printf "%-26s median %4.0f ms   longest %4.0f ms\n", what, ms[int((NR + 1) / 2)], ms[NR] }'
}

for _ in $(seq "$runs"); do
  pages "nginx alone"
  $in_web "$sooner" attach web --dev tweb0 --uplink 9.5mbit >"$scratch/attach.log" 2>&1 & attached=$!
  pids="$pids $attached"
  sleep 4
  pages "nginx with sooner attach"
  kill "$attached"
  wait "$attached" || cat "$scratch/attach.log"
  sleep 3
done
