#!/usr/bin/env bash
# The pages of Zeus on a machine without a GPU: a simulated node with moving load and the daemon on it,
# a job server with a job that is learning, and two simulated language models behind the gateway. Run
# it with ./dev demo web, which builds first. It prints the addresses; Ctrl-C ends everything.
set -euo pipefail
set -m # Each background command is a process group of its own.
export LC_ALL=C.UTF-8
cd "$(dirname "$0")/.."
build=${1:-build/release}
[[ $build == /* ]] || build=$PWD/$build
zeus=$build/bin/zeus
folder=${ZEUS_DEMO_DIR:-$build/demo-web}
rm -rf "$folder"
mkdir -p "$folder/sim" "$folder/state"
export ZEUS_SIM_DIR=$folder/sim ZEUS_ACTIVITY_DIR=$folder/state ZEUS_KNOB_DIR=$folder/knobs ZEUS_LOG_LEVEL=error
export XDG_DATA_HOME=$folder/state XDG_STATE_HOME=$folder/state
unset ZEUS_SERVER ZEUS_TOKEN

bold='' plain=''
if [[ -t 1 && ${TERM-} != dumb && -z ${NO_COLOR-} ]]; then bold=$'\033[1m' plain=$'\033[0m'; fi
say() { printf '%s\n' "$*"; }
fail() {
  printf 'demo: %s\n' "$*" >&2
  exit 1
}

# --- the end ---

# Reads the ids of process groups until all who may write them are gone: this script ended, however
# that came about. Then ends the groups and removes the folder.
end_everything() {
  trap '' INT TERM HUP
  local groups=() group tries
  while read -r group; do groups+=("$group"); done
  for group in "${groups[@]}"; do kill -TERM -- "-$group" 2>/dev/null || true; done
  for group in "${groups[@]}"; do
    for ((tries = 0; tries < 200; ++tries)); do
      kill -0 -- "-$group" 2>/dev/null || break
      sleep 0.1
    done
    kill -KILL -- "-$group" 2>/dev/null || true
  done
  "$zeus" sim stop >/dev/null 2>&1 || true
  rm -rf "$folder"
}
# It is a group of its own, too: a signal to the terminal's group must not end it early.
mkfifo "$folder/alive"
end_everything <"$folder/alive" >/dev/null 2>&1 &
ending=$!
exec 9>"$folder/alive"
finish() {
  trap '' INT TERM HUP
  exec 9>&-
  wait "$ending" 2>/dev/null || true
}
trap finish EXIT
trap 'say; say "Ending everything …"; exit 0' INT TERM HUP

# run NAME COMMAND [ARGUMENT ...]: in the background, in a process group that the end knows before the
# command begins.
run() {
  local name=$1
  shift
  (
    printf '%s\n' "$BASHPID" >&9
    exec 9>&-
    "$@"
  ) >"$folder/$name.txt" 2>"$folder/$name.log" </dev/null &
}

# start NAME COMMAND [ARGUMENT ...]: the same; $address is its address once it listens.
start() {
  local name=$1 tries=0
  run "$@"
  until address=$(grep -som1 '127\.0\.0\.1:[0-9]*' "$folder/$name.txt"); do
    kill -0 "$!" 2>/dev/null || fail "$name did not start: $(tail -n 1 "$folder/$name.log")"
    ((++tries < 1200)) || fail "$name did not start within two minutes"
    sleep 0.1
  done
}

# post ADDRESS PATH BODY: a request, without a program that the machine may not have.
post() {
  local status
  exec 8<>"/dev/tcp/${1/://}"
  printf 'POST %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s' \
    "$2" "$1" "${#3}" "$3" >&8
  read -r _ status _ <&8
  exec 8>&-
  [[ $status == 2* ]] || fail "$2 was answered with $status"
}

# --- what runs ---

# Trainings that come and go on two GPUs.
moving_load() {
  local gpu=$1 workload batch
  set +m
  while true; do
    for workload in resnet50:256 bert_qa:32 resnet50:64 bert_sa:128; do
      batch=${workload#*:}
      "$zeus" sim load --gpu "$gpu" --workload "${workload%:*}" --batch-size "$batch" --seconds $((12 + 5 * gpu))
      sleep $((3 + gpu))
    done
  done
}

# The job that learns: undisturbed runs of the default, then one training after the other.
learning_job() {
  local server=$1
  set +m
  # Its GPU is simulated in the program, with the time and power of each step.
  eval "$("$zeus" sim env --unset)"
  train() {
    "$zeus" train --job digits --server "$server" --batch-sizes 8,16,32,64,128,256 --default 128 --target 0.9 \
      --max-epochs 60 --seed 4 --lr 0.007 --lr-scaling sqrt --gpu-model V100 --max-power 250 \
      --metric-file "$folder/digits.jsonl" --let-finish --quiet "$@" -- \
      "$build/examples/train_digits" --step-cost deepspeech2 --target 0.9 --max-epochs 60 \
      --batch-size '{batch_size}' --lr '{lr}' --seed '{seed}' --gpu-seed 1 --samples 1024 \
      --report "$folder/digits.jsonl" --profiles "$folder/profiles"
  }
  train --recurrences 0 --baseline 4
  while train --recurrences 1; do sleep 2; done
}

# Questions to both models, now and then.
questions() {
  local gateway=$1 model
  set +m
  while true; do
    for model in "${models[@]}"; do
      "$zeus" llm bench --url "http://$gateway" --model "$model" --concurrency 4 --requests 12 \
        --prompt-tokens 200 --output-tokens uniform:50-150 || sleep 5
      sleep 3
    done
  done
}

# A pipeline of four stages, the last of which has the most to do.
pipeline() {
  local stage instruction factor seconds clock slower joules points instructions=''
  for stage in 0 1 2 3; do
    for instruction in forward backward; do
      factor=1 points=''
      [[ $instruction == forward ]] || factor=2
      seconds=$((100 * factor * (stage == 3 ? 13 : 10))) # In 10 microseconds.
      for clock in 1410:100:300 1200:110:250 1005:130:227; do
        IFS=: read -r clock slower joules <<<"$clock"
        points+=",{\"clock_mhz\":$clock,\"time_seconds\":$((seconds * slower))e-7,\"energy_joules\":$((seconds * joules))e-5}"
      done
      instructions+=",{\"stage\":$stage,\"instruction\":\"$instruction\",\"points\":[${points#,}]}"
    done
  done
  printf '{"id":"gpt-demo","schedule":"1f1b","microbatches":8,"profile":{"stages":4,"blocking_power_watts":83.64,"instructions":[%s]}}' \
    "${instructions#,}"
}

# A cap on one GPU as the controller of a cluster sets it, sent again before it expires: the page of the
# node says who did it.
rack_cap() {
  node -e '
    const { request } = require("node:http");
    const [socketPath, gpu, watts] = process.argv.slice(1);
    const ask = (method, path, body) => new Promise((resolve, reject) => {
      request({ socketPath, method, path, headers: { Host: "localhost" } }, (answer) => {
        let text = "";
        answer.on("data", (part) => (text += part));
        answer.on("end", () => (answer.statusCode < 300 ? resolve(JSON.parse(text)) : reject(new Error(text))));
      }).on("error", reject).end(body && JSON.stringify(body));
    });
    const cap = async () => {
      const { gpus } = await ask("GET", "/v1/node");
      const requests = [{ device: gpus[gpu].device, knob: "gpu_power_limit", at_most: { watts: Number(watts) } }];
      await ask("PUT", "/v1/budget", { name: "rack budget", valid_seconds: 3600, requests });
      setTimeout(cap, 1800 * 1000);
    };
    cap();
  ' "$@"
}

"$zeus" sim start --gpus H100,H100,A100,A100 --seed 1 >/dev/null
eval "$("$zeus" sim env)"
for gpu in 2 3; do run "load-$gpu" moving_load "$gpu"; done

models=(llama-3.1-8b qwen3-14b)
upstreams=()
for gpu in 0 1; do
  start "sim-$gpu" "$zeus" llm sim --model "${models[gpu]}" --gpu "$gpu" --seed "$((gpu + 1))" --listen 127.0.0.1:0
  upstreams+=(--upstream "http://$address" --gpus "$gpu")
done
start gateway "$zeus" llm gateway "${upstreams[@]}" --listen 127.0.0.1:0
gateway=$address
run questions questions "$gateway"

start zeusd "$build/bin/zeusd" serve --socket-path "$folder/zeusd.sock" --state-dir "$folder/state" \
  --tcp-bind-address 127.0.0.1:0
node=$address
questions_of_node='which GPU wastes most?'
if [[ $EUID == 0 ]]; then # Caps are for administrators.
  run rack-cap rack_cap "$folder/zeusd.sock" 3 250
  questions_of_node+=' who capped gpu:3?'
fi

# It tells its address where others log.
start fleet sh -c 'exec "$@" 2>&1' sh "$zeus" fleet --node "http://$node" --listen 127.0.0.1:0
fleet=$address

start serve "$zeus" serve --listen 127.0.0.1:0 --database "sqlite://$folder/zeus.db" --no-access-log \
  --carbon DE --price 0.30EUR
jobs=$address
post "$jobs" /v1/plans "$(pipeline)"
run job learning_job "http://$jobs"

colosseum=
if "$zeus" llm --help | grep -q '^  colosseum'; then
  start colosseum "$zeus" llm colosseum --gateway "http://$gateway" --listen 127.0.0.1:0 \
    --database "sqlite://$folder/colosseum.db"
  colosseum=$address
fi

say
say "${bold}Zeus is running on this machine, with simulated GPUs:$plain"
say "  jobs, savings and pipelines   http://$jobs/   what was saved this week? is the job done learning?"
say "  the node and its GPUs         http://$node/   $questions_of_node"
say "  the fleet, of this one node   http://$fleet/"
[[ -z $colosseum ]] || say "  the Colosseum                 http://$colosseum/   is the better answer worth its energy?"
say "  gateway (${models[*]})  http://$gateway/v1/chat/completions"
say
say "The job trains a small network on this CPU again and again; after some minutes Zeus knows what that saves."
say 'Press Ctrl-C to end everything.'
if [[ -n ${DISPLAY-}${WAYLAND_DISPLAY-} ]] && command -v xdg-open >/dev/null; then
  xdg-open "http://$jobs/" >/dev/null 2>&1 || true
fi
# A signal ends the wait at once; otherwise nothing does.
wait "$ending" || true
