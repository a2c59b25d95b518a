#!/usr/bin/env bash
# What compression costs and brings: bytes and processor time of a response beside nginx's and
# Caddy's gzip, then response times on a full uplink of 10 Mbit/s with and without compression.
# Needs nginx and python3, the pages that come with Rust (rustup component add rust-docs), and Caddy
# where it is to be compared. Usage: try-compression.sh [TURNS]; SOONER names the program.
set -euo pipefail
turns=${1:-3}
sooner=${SOONER:-sooner}
here=$(cd "$(dirname "$0")" && pwd)
pages=$(rustc --print sysroot)/share/doc/rust/html
[ -d "$pages/book" ] || { echo "there are no pages in $pages; rustup component add rust-docs" >&2; exit 2; }
at=$(mktemp -d)
chmod 755 "$at"
started=()
finish() {
  for id in "${started[@]}"; do kill "$id" 2>/dev/null || true; done
  rm -rf "$at"
}
trap finish EXIT

# One page, a list of sixty, and lines of JSON; /api/ has the first and the last for a backend.
mkdir -p "$at/root/api" "$at/root/pages"
cp "$pages/rustc/codegen-options/index.html" "$at/root/page.html"
number=0
find "$pages/book" "$pages/reference" "$pages/cargo" -name '*.html' -size +8k -size -120k | sort |
  awk 'NR <= 400 && NR % 5 == 0 && ++kept <= 60' > "$at/list"
while read -r file; do
  number=$((number + 1))
  cp "$file" "$at/root/pages/$number.html"
done < "$at/list"
find "$here/../../experiments" -name '*.jsonl' -print0 | sort -z | xargs -0 cat > "$at/all"
head -c 3000000 "$at/all" > "$at/root/large.json"
cp "$at/root/page.html" "$at/root/large.json" "$at/root/api/"

# $1: name, $2: what the http block says beside the usual.
nginx_conf() {
  cat > "$at/$1.conf" <<END
worker_processes 1; pid $at/$1.pid; error_log $at/$1.err; daemon off;
events { worker_connections 1024; }
http {
  include /etc/nginx/mime.types; access_log off; sendfile on; keepalive_requests 1000000;
  client_body_temp_path $at/t; proxy_temp_path $at/t; fastcgi_temp_path $at/t;
  uwsgi_temp_path $at/t; scgi_temp_path $at/t;
  $2
}
END
}
nginx_conf backend "server { listen 127.0.0.1:25091; root $at/root; }"
nginx_conf nginx "gzip on; gzip_comp_level 5; gzip_types application/json; gzip_min_length 1024;
  server { listen 127.0.0.1:25081; root $at/root;
    location /api/ { proxy_pass http://127.0.0.1:25091; proxy_http_version 1.1;
      proxy_set_header Connection \"\"; proxy_set_header Accept-Encoding \"\"; } }"
cat > "$at/Caddyfile" <<END
{
  admin off
  auto_https off
}
:25082 {
  bind 127.0.0.1
  encode {
    gzip 5
    minimum_length 1024
  }
  handle /api/* {
    reverse_proxy 127.0.0.1:25091 {
      header_up -Accept-Encoding
    }
  }
  handle {
    root * $at/root
    file_server
  }
}
END
cat > "$at/sooner.toml" <<END
listen = ["127.0.0.1:25083"]
compress = true
[[site]]
root = "$at/root"
[[upstream]]
name = "app"
servers = ["http://127.0.0.1:25091"]
[[route]]
path = "/api/"
upstream = "app"
END
start() {
  "$@" > "$at/log" 2>&1 &
  started+=($!)
}
start nginx -c "$at/backend.conf"
start nginx -c "$at/nginx.conf"
servers=nginx:25081:$!
if command -v caddy > /dev/null; then
  start env XDG_DATA_HOME="$at" XDG_CONFIG_HOME="$at" caddy run --config "$at/Caddyfile"
  servers+=,caddy:25082:$!
fi
start "$sooner" serve --config "$at/sooner.toml"
servers+=,sooner:25083:$!
sleep 2
python3 "$here/try-compression.py" "$servers" "$turns"

echo
echo "uplink of 10 Mbit/s, 43 pages a second by chance, 25.9 KB each: load 0.9 uncompressed"
urls=$(for one in $(seq "$number"); do echo "http://127.0.0.1:25084/pages/$one.html"; done)
for turn in $(seq "$turns"); do
  for compress in false true; do
    cat > "$at/full.toml" <<END
listen = ["127.0.0.1:25084"]
compress = $compress
[uplink]
rate = "10mbit"
[[site]]
root = "$at/root"
END
    "$sooner" serve --config "$at/full.toml" > "$at/log" 2>&1 &
    id=$!
    started+=("$id")
    sleep 1
    # shellcheck disable=SC2086
    "$sooner" load rate $urls --rate 43 --for 15s -c 400 --header 'accept-encoding: br' > "$at/out"
    ticks=$(awk '{print $14 + $15}' "/proc/$id/stat")
    echo "compress = $compress, turn $turn, processor $((ticks * 1000 / $(getconf CLK_TCK))) ms:" \
      "$(grep -E 'response|  p50|  p99' "$at/out" | tr -s ' ' | tr '\n' ';')" \
      "$(grep -E '^(IN)?VALID' "$at/out")"
    kill "$id"
    wait "$id" || true
  done
done
