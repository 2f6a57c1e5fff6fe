#!/usr/bin/env bash
# A recurring job on a machine without a GPU: a small network is really trained, again and again, on
# this CPU, while a simulated V100 takes the time and the power that the steps would. Zeus chooses
# batch size and power limit and says what that saves. Run it with ./dev demo, which builds first.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build/release}
recurrences=${2:-30}
zeus=$build/bin/zeus
folder=${ZEUS_DEMO_DIR:-$PWD/$build/demo}
rm -rf "$folder"
mkdir -p "$folder"

bold='' plain=''
if [[ -t 1 && ${TERM-} != dumb && -z ${NO_COLOR-} ]]; then bold=$'\033[1m' plain=$'\033[0m'; fi
step() { printf '\n%s== %s%s\n' "$bold" "$1" "$plain"; }

# train JOB RECURRENCES [OPTION ...] -- [OPTION OF THE TRAINING ...]
train() {
  local job=$1 count=$2 ours=()
  shift 2
  while [[ $1 != -- ]]; do ours+=("$1") && shift; done
  shift
  "$zeus" train --job "$job" --recurrences "$count" --database "sqlite://$folder/zeus.db" \
    --batch-sizes 8,16,32,64,128,256 --default 128 --target 0.9 --max-epochs 60 --seed 4 \
    --lr 0.007 --lr-scaling sqrt --gpu-model V100 --max-power 250 \
    --metric-file "$folder/$job.jsonl" --let-finish "${ours[@]}" -- \
    env ZEUS_LOG_LEVEL=error "$build/examples/train_digits" --step-cost deepspeech2 --target 0.9 \
    --max-epochs 60 --batch-size '{batch_size}' --lr '{lr}' --seed '{seed}' --gpu-seed 1 \
    --samples 1024 --report "$folder/$job.jsonl" "$@" >>"$folder/training.log"
}

step 'As one would train without Zeus: batch size 128, the power limit as it is'
train digits 0 --baseline 6 --quiet -- --profiles "$folder/profiles"
"$zeus" job trials digits --database "sqlite://$folder/zeus.db"

step "The same job with Zeus: $recurrences recurrences, each a training to 90 % accuracy"
train digits "$recurrences" -- --profiles "$folder/profiles"

step 'What was saved'
"$zeus" job savings digits --carbon DE --price 0.30EUR --database "sqlite://$folder/zeus.db"
"$zeus" job show digits --database "sqlite://$folder/zeus.db" --html "$folder/report.html" \
  >"$folder/job.txt"
printf '\nreport: %s\nonce more: %s job show digits --database sqlite://%s\n' "$folder/report.html" "$zeus" \
  "$folder/zeus.db"
