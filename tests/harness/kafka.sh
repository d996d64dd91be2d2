#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Apache Kafka (KRaft, combined roles) on the loopback interface for tests. Each cluster lives in a folder of its own.
#
#   kafka.sh jars [VERSION]            fetch the broker's jars into the cache, print their folder
#   kafka.sh up DIR BROKERS [VERSION]  start a cluster in DIR on free ports, wait for it, print the bootstrap servers
#   kafka.sh stop DIR ID [SIGNAL]      end broker ID (1, 2, ...); SIGNAL defaults to TERM
#   kafka.sh start DIR ID              start it again on its old port and wait for it
#   kafka.sh pids DIR                  print the brokers' process ids
#   kafka.sh down DIR                  end all brokers and remove DIR
#
# Tests use with-kafka.sh, which also cleans up. KAFKA_JAVA_OPTS replaces the JVM's options (benchmarks);
# KAFKA_PROPERTIES holds more settings of the brokers, `name=value` each, separated by blanks.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/unsalt
default_version=4.3.1
# Quick starts matter more than peak throughput here.
java_opts=${KAFKA_JAVA_OPTS:--Xmx512m -XX:TieredStopAtLevel=1 -XX:+UseSerialGC}
wait_seconds=60

jars() {
    local version=${1:-$default_version} libs
    libs=$cache/kafka-$version
    if [ ! -d "$libs" ]; then
        mkdir -p "$cache"
        (
            flock 9
            [ -d "$libs" ] && exit 0
            echo "kafka: fetching the broker $version" >&2
            work=$(mktemp -d "$cache/fetch.XXXXXX")
            trap 'rm -rf "$work"' EXIT
            cp "$here/kafka/pom.xml" "$work/"
            cd "$work"
            mvn -q -B -Dkafka.version="$version" dependency:copy-dependencies \
                -DoutputDirectory="$work/libs" -DincludeScope=runtime < /dev/null >&2
            mv "$work/libs" "$libs"
        ) 9> "$cache/.lock-kafka"
    fi
    echo "$libs"
}

# free_ports COUNT: prints ports below the range that the kernel hands out itself. The lists of sockets
# of the kernel say which are taken.
free_ports() {
    local count=$1 port taken
    taken=" $(awk 'NR > 1 { split($2, a, ":"); print a[2] }' /proc/net/tcp /proc/net/tcp6 2> /dev/null |
        while read -r hex; do [[ $hex =~ ^[0-9A-F]+$ ]] && printf '%d ' "0x$hex"; done || true)"
    while [ "$count" -gt 0 ]; do
        port=$((15000 + (RANDOM * 32768 + RANDOM) % 16000))
        case $taken in *" $port "*) continue ;; esac
        taken+="$port "
        echo "$port"
        count=$((count - 1))
    done
}

configure() {
    local dir=$1 n=$2 i small voters="" ports
    mapfile -t ports < <(free_ports $((2 * n)))
    small=$((n < 3 ? n : 3))
    : > "$dir/bootstrap"
    for ((i = 1; i <= n; i++)); do
        voters+="${voters:+,}$i@127.0.0.1:${ports[2 * i - 1]}"
        printf '%s127.0.0.1:%s' "$([ "$i" = 1 ] || echo ,)" "${ports[2 * i - 2]}" >> "$dir/bootstrap"
    done
    for ((i = 1; i <= n; i++)); do
        mkdir -p "$dir/broker-$i"
        cat > "$dir/broker-$i/server.properties" <<P
process.roles=broker,controller
node.id=$i
controller.quorum.voters=$voters
listeners=PLAINTEXT://127.0.0.1:${ports[2 * i - 2]},CONTROLLER://127.0.0.1:${ports[2 * i - 1]}
advertised.listeners=PLAINTEXT://127.0.0.1:${ports[2 * i - 2]}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs=$dir/broker-$i/data
num.network.threads=2
num.io.threads=4
num.partitions=1
auto.create.topics.enable=false
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
group.consumer.min.session.timeout.ms=1000
group.consumer.session.timeout.ms=4000
group.consumer.min.heartbeat.interval.ms=100
group.consumer.heartbeat.interval.ms=300
offsets.topic.num.partitions=4
offsets.topic.replication.factor=$small
transaction.state.log.num.partitions=4
transaction.state.log.replication.factor=$small
transaction.state.log.min.isr=$((small > 1 ? 2 : 1))
share.coordinator.state.topic.replication.factor=$small
share.coordinator.state.topic.min.isr=1
log.cleaner.enable=true
log.cleaner.backoff.ms=200
log.retention.check.interval.ms=1000
log.initial.task.delay.ms=500
log.segment.delete.delay.ms=1000
P
        printf '%s\n' ${KAFKA_PROPERTIES:-} >> "$dir/broker-$i/server.properties"
    done
}

java_run() {
    java $java_opts -cp "$(cat "$1/libs")/*" "${@:2}"
}

# The identity of the cluster is any 16 bytes in base64. All brokers are formatted side by side.
format() {
    local dir=$1 n=$2 i jobs=()
    for ((i = 1; i <= n; i++)); do
        java_run "$dir" kafka.tools.StorageTool format -t dW5zYWx0LXRlc3RzLTAwMQ -c \
            "$dir/broker-$i/server.properties" > "$dir/broker-$i/format.log" 2>&1 &
        jobs+=($!)
    done
    for i in "${!jobs[@]}"; do
        wait "${jobs[$i]}" || { cat "$dir/broker-$((i + 1))/format.log" >&2; return 1; }
    done
}

launch() {
    local dir=$1 i=$2
    (
        cd "$dir/broker-$i"
        export LOG_DIR=$dir/broker-$i
        exec setsid java $java_opts -cp "$(cat "$dir/libs")/*" kafka.Kafka server.properties \
            < /dev/null >> broker.log 2>&1 9>&-
    ) &
    echo $! > "$dir/broker-$i/pid"
}

# wait_for DIR BOOTSTRAP COUNT: 0 once COUNT brokers are in the metadata; 1 as soon as one of them has ended.
wait_for() {
    local dir=$1 job pid
    [ -x "$dir/wait-brokers" ] || ${CC:-cc} -O1 -o "$dir/wait-brokers" "$here/wait-brokers.c" -lrdkafka
    "$dir/wait-brokers" "$2" "$3" "$wait_seconds" &
    job=$!
    while kill -0 "$job" 2> /dev/null; do
        for pid in $(pids "$dir"); do
            kill -0 "$pid" 2> /dev/null || { kill "$job" 2> /dev/null; wait "$job" 2> /dev/null; return 1; }
        done
        sleep 0.1
    done
    wait "$job"
}

up() {
    local dir=$1 n=$2 version=${3:-$default_version} try
    mkdir -p "$dir"
    dir=$(cd "$dir" && pwd)
    jars "$version" > "$dir/libs"
    # Another process may take a port between the look and the start: then once more with others.
    for try in 1 2 3; do
        configure "$dir" "$n"
        if format "$dir" "$n"; then
            for ((i = 1; i <= n; i++)); do launch "$dir" "$i"; done
            if wait_for "$dir" "$(cat "$dir/bootstrap")" "$n"; then
                cat "$dir/bootstrap"
                echo
                return 0
            fi
        fi
        echo "kafka: the brokers did not come up (try $try):" >&2
        tail -n 20 "$dir"/broker-*/broker.log >&2 || true
        end_all "$dir" KILL
        rm -rf "$dir"/broker-*
    done
    return 1
}

pids() {
    cat "$1"/broker-*/pid 2> /dev/null || true
}

# end PID SIGNAL: waits up to 10 s for it, then uses KILL.
end() {
    local pid=$1 i
    kill -"$2" "$pid" 2> /dev/null || return 0
    for ((i = 0; i < 200; i++)); do
        kill -0 "$pid" 2> /dev/null || return 0
        sleep 0.05
    done
    kill -KILL "$pid" 2> /dev/null || true
}

end_all() {
    local pid
    for pid in $(pids "$1"); do kill -"$2" "$pid" 2> /dev/null || true; done
    for pid in $(pids "$1"); do end "$pid" "$2"; done
    rm -f "$1"/broker-*/pid
}

case ${1:-} in
jars) jars "${@:2}" ;;
up) up "$2" "$3" "${4:-}" ;;
pids) pids "$2" ;;
stop)
    end "$(cat "$2/broker-$3/pid")" "${4:-TERM}"
    rm -f "$2/broker-$3/pid"
    ;;
start)
    launch "$2" "$3"
    wait_for "$2" "$(cut -d, -f"$3" "$2/bootstrap")" "$(tr , '\n' < "$2/bootstrap" | grep -c .)"
    ;;
# The data is thrown away, so the brokers need no orderly end.
down)
    end_all "$2" KILL
    rm -rf "$2"
    ;;
*) sed -n '3,13s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
