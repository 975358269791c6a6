#!/bin/sh
# /metrics of a daemon with a store of its own, before and after a restart, and what promtool says to it and to the rules.
. "$(dirname "$0")/../tap.sh"
unset INSIST_SERVER INSIST_TOKEN
daemon=
trap 'kill $daemon 2>/dev/null; rm -rf "$work"' EXIT

scrape() {
    curl -sf -D "$work/headers" "$INSIST_SERVER/metrics" >"$work/metrics"
}
is() { # SERIES VALUE
    scrape && grep -qxF -e "$1 $2" "$work/metrics"
}
above() { # SERIES NUMBER
    awk -v series="$1" -v least="$2" '$1 == series && $2 > least { found = 1 } END { exit !found }' "$work/metrics"
}
# What promtool says against it, without the names that are not ours to choose.
promtool_objects() {
    promtool check metrics <"$work/metrics" 2>&1 | grep -Ev '^(submission_retry_(max_exceeded|backoff_minutes)|backoff_duration_minutes|error_classification_distribution|dlq_by_(error_code|company)|tenant_jobs_processed) '
}

cat >"$work/insist.yaml" <<END
listen: 127.0.0.1:0
store: sqlite:$work/data/insist.db
destinations:
  gone: { url: "http://127.0.0.1:1/", allow_private: true, retry: { base: 1h, floor: 1h, cap: 5h } }
  held: { transport: pull }
END
serve --init
ask add gone --id 1 --tenant t --data x
ask add held --id 2 --tenant t --data x
ask add held --id 3 --tenant u --data x
check "a failure is counted" until_true is 'retry_scheduled_total{destination="gone"}' 1
check "in Prometheus' format" grep -qi '^content-type: text/plain; version=0.0.4; charset=utf-8' "$work/headers"
check "a decision takes time" above 'retry_analysis_duration_seconds_sum{destination="gone"}' 0
check "so does a commit" above insist_commit_duration_seconds_sum 0
check "the store has a size" above insist_store_bytes 4095
check "the disk has room" above insist_disk_free_bytes 1000000
check "the process has a processor" above process_cpu_seconds_total 0
check "and a beginning" above process_start_time_seconds 1000000000
check "promtool has nothing against it but the documents' names" test -z "$(promtool_objects)"
check "nor against the rules" promtool check rules "$root/examples/prometheus/insist-rules.yml"
check "nor against the example" promtool check config "$root/examples/prometheus/prometheus.yml"
check "the rules fire where the documents say, and nowhere else" promtool test rules "$root/tests/cases/prometheus/rules_test.yml"
ask cancel 3 --tenant u
ask dest pause held
kill "$daemon"
wait "$daemon"
serve --init
scrape
check "jobs are right after a restart" grep -qxF 'insist_jobs{destination="gone",state="waiting"} 1' "$work/metrics"
check "of tenants too" grep -qxF 'insist_tenant_jobs{destination="held",tenant="t",state="pending"} 1' "$work/metrics"
check "and the mode" grep -qxF 'insist_destination_mode{destination="held",mode="paused"} 1' "$work/metrics"
check "what the store counts goes on" grep -qxF 'insist_jobs_cancelled_total{destination="held"} 1' "$work/metrics"
check "the rest begins anew" grep -qxF 'retry_scheduled_total{destination="gone"} 0' "$work/metrics"
finish
