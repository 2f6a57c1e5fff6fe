#!/usr/bin/env bash
# Zeus on a machine without a GPU: four simulated V100s behind the real NVML interface are found,
# loaded, watched, measured and capped. Run it with ./dev tour, which builds everything first.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build/release}
zeus=$build/bin/zeus
node=demo-$$

bold='' plain=''
if [[ -t 1 && ${TERM-} != dumb && -z ${NO_COLOR-} ]]; then bold=$'\033[1m' plain=$'\033[0m'; fi
step() { printf '\n%s== %s%s\n' "$bold" "$1" "$plain"; }
show() { printf '$ %s\n' "${*@Q}"; "$@"; }

loads=()
# Also when Ctrl-C comes while the node starts, or twice.
finish() {
  trap '' INT TERM HUP
  for load in "${loads[@]}"; do kill "$load" 2>/dev/null || true; done
  wait
  "$zeus" sim stop --name "$node" 2>/dev/null || true
}
trap finish EXIT

step 'Start a simulated node with four V100s'
show "$zeus" sim start --name "$node" --gpus 4xV100
eval "$("$zeus" sim env --name "$node")"

step 'What works here (zeus doctor)'
show "$zeus" doctor

step 'Train ResNet-50 on gpu:0 and BERT on gpu:1, put 220 W on gpu:2, and watch'
put() { "$zeus" sim load --name "$node" "$@" --seconds 60 >/dev/null & loads+=($!); }
put --gpu 0 --workload resnet50 --batch-size 256
put --gpu 1 --workload bert_qa --batch-size 32
put --gpu 2 --watts 220
show "$zeus" monitor --interval 1 --duration 6

step 'What a command costs, with error bars, carbon and price (zeus run)'
show "$zeus" run --carbon DE --price 0.31EUR -- sleep 3

step 'Windows inside a program: nested, immediate and refined'
show "$build/examples/measure_window"

step 'Cap gpu:0 at 150 W for three seconds; the old limit comes back by itself'
show "$build/examples/limit_power"

step 'Try power limits on a program that cannot be changed (zeus profile)'
profile() {
  show "$zeus" profile --gpus 3 --limits 250,200,150,100 --slice 1.5s --warmup 0.5s --stop \
    --progress 'step ([\d.]+)' -- \
    "$zeus" sim load --name "$node" --gpu 3 --workload shufflenet --batch-size 1024 --progress
}
profile | grep --line-buffered -v '^step'  # The program prints its steps.

step 'The exact energy, which only a simulator knows'
show "$zeus" sim truth --name "$node" --json
