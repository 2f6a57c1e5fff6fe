#include "zeus/device/sim/inference/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace zeus::sim {
namespace {

constexpr Seconds kNoEvent{std::numeric_limits<double>::infinity()};

std::uint64_t TokensIn(const std::vector<unsigned>& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
}

}  // namespace

struct InferenceEngine::Request {
  RequestId id;
  RequestSpec spec;
  unsigned cached;
  Seconds arrival;
  std::optional<Seconds> first_token;
  unsigned preemptions = 0;
  unsigned made = 0;  // Output tokens of all sequences.

  // All sequences of a request run in step: each has so many tokens, or has ended with fewer.
  unsigned generated = 0;
  unsigned alive;  // Sequences that have not ended.

  // The prompt; after a preemption the tokens generated before belong to it.
  unsigned prompt;
  unsigned processed = 0;
  unsigned in_work = 0;  // Prompt tokens of the present iteration.
  bool decodes_now = false;

  std::uint64_t kv = 0;  // Tokens that it holds in the KV cache.
  bool ran = false;
  bool cancelled = false;
  EnergySum prefill;
  EnergySum decode;

  unsigned sequences() const {
    return std::max(1U, static_cast<unsigned>(spec.output_tokens.size()));
  }
  bool prefilling() const { return processed < prompt; }
  bool ended() const { return !prefilling() && alive == 0; }
  double context() const { return static_cast<double>(spec.prompt_tokens) + generated; }
};

struct InferenceEngine::Plan {
  Seconds start{};
  Hertz clock{};
  std::vector<Request*> decoding;
  std::vector<Request*> prompts;
  unsigned decodes = 0;
  double context = 0;
  double seen = 0;  // The part of the context that attention looks at.
  unsigned prompt_tokens = 0;

  unsigned participants() const { return decodes + static_cast<unsigned>(prompts.size()); }
  double new_tokens() const { return static_cast<double>(decodes) + prompt_tokens; }
};

Result<std::unique_ptr<InferenceEngine>> InferenceEngine::Create(const LanguageModel& model,
                                                                 std::unique_ptr<CoreAccess> gpus,
                                                                 const EngineOptions& options,
                                                                 EngineListener& listener) {
  ZEUS_RETURN_IF_ERROR(CheckLanguageModel(model));
  if (options.token_budget == 0 || options.max_sequences == 0)
    return InvalidArgument("token budget and number of sequences must be at least 1");
  if (!(options.prefix_hit_rate >= 0.0 && options.prefix_hit_rate <= 1.0))
    return InvalidArgument(
        fmt::format("a prefix cache hits 0 to 1 of a prompt, not {}", options.prefix_hit_rate));
  std::unique_ptr<InferenceEngine> engine(new InferenceEngine(model, options, listener));
  ZEUS_RETURN_IF_ERROR(engine->Attach(std::move(gpus)));
  return engine;
}

InferenceEngine::InferenceEngine(const LanguageModel& model, const EngineOptions& options,
                                 EngineListener& listener)
    : model_(model), options_(options), listener_(listener), plan_(std::make_unique<Plan>()) {}

InferenceEngine::~InferenceEngine() = default;

Status InferenceEngine::Attach(std::unique_ptr<CoreAccess> gpus) {
  const unsigned count = gpus->count();
  std::uint64_t memory = 0;
  std::string_view kind;
  if (count > 0)
    ZEUS_RETURN_IF_ERROR(gpus->Look(0, [&](GpuCore& core) {
      memory = core.model().memory_bytes;
      kind = core.model().id;
      return Ok();
    }));
  const double room = static_cast<double>(memory) * count - model_.weight_bytes;
  if (count > 0 && room < model_.kv_bytes())
    return InvalidArgument(fmt::format(
        "{} needs {:.1f} GB for its weights alone, and {} {} has {:.1f} GB: use at least {} GPUs",
        model_.name, model_.weight_bytes / 1e9, count, kind,
        static_cast<double>(memory) * count / 1e9,
        static_cast<unsigned>(model_.weight_bytes / static_cast<double>(memory)) + 1));
  kv_capacity_ = static_cast<std::uint64_t>(room / model_.kv_bytes());
  if (options_.kv_tokens) kv_capacity_ = std::min(kv_capacity_, *options_.kv_tokens);

  const double held = model_.weight_bytes + static_cast<double>(kv_capacity_) * model_.kv_bytes();
  ZEUS_TRY(board_, EngineBoard::Attach(
                       std::move(gpus),
                       {.engine_memory = static_cast<std::uint64_t>(held / std::max(count, 1U)),
                        .pid = options_.pid,
                        .heartbeat_timeout = options_.heartbeat_timeout}));
  parts_.emplace(model_, board_->gpus());
  ZEUS_TRY(last_, board_->Read(Seconds(0)));
  return Ok();
}

Result<RequestId> InferenceEngine::Submit(Seconds time, const RequestSpec& spec) {
  if (!reporting_) ZEUS_RETURN_IF_ERROR(AdvanceTo(time));
  if (spec.prompt_tokens == 0) return InvalidArgument("a request needs at least 1 prompt token");
  for (const unsigned tokens : spec.output_tokens)
    if (tokens == 0) return InvalidArgument("a sequence has at least 1 output token");
  const std::uint64_t needed = spec.prompt_tokens + TokensIn(spec.output_tokens);
  if (needed > kv_capacity_)
    return InvalidArgument(
        fmt::format("the request needs {} tokens of context, and the KV cache holds {}: shorten it",
                    needed, kv_capacity_));
  if (spec.output_tokens.size() > options_.max_sequences)
    return InvalidArgument(fmt::format("the request has {} sequences, and at most {} can run",
                                       spec.output_tokens.size(), options_.max_sequences));

  auto request = std::make_unique<Request>();
  request->id = next_id_++;
  request->spec = spec;
  const auto hits = static_cast<unsigned>(options_.prefix_hit_rate * spec.prompt_tokens);
  // The last token is always processed: its result is the first output token.
  request->cached = std::min(spec.cached_tokens.value_or(hits), spec.prompt_tokens - 1);
  request->processed = request->cached;
  request->arrival = time;
  request->alive = static_cast<unsigned>(spec.output_tokens.size());
  request->prompt = spec.prompt_tokens;
  const RequestId id = request->id;
  waiting_.push_back(request.get());
  requests_.emplace(id, std::move(request));
  if (!iterating_ && !reporting_) ZEUS_RETURN_IF_ERROR(StartNext(time));
  return id;
}

Status InferenceEngine::Cancel(Seconds time, RequestId id) {
  if (!reporting_) ZEUS_RETURN_IF_ERROR(AdvanceTo(time));
  const auto found = requests_.find(id);
  if (found == requests_.end()) return Ok();
  Request& request = *found->second;
  request.cancelled = true;
  const auto queued = std::find(waiting_.begin(), waiting_.end(), &request);
  if (queued == waiting_.end()) return Ok();  // It leaves at the end of the iteration.
  waiting_.erase(queued);
  Report(request, RequestOutcome::kCancelled, time);
  return Ok();
}

Status InferenceEngine::AdvanceTo(Seconds time) {
  while (iterating_) {
    ZEUS_TRY(const EngineBoard::State state, board_->ReadWhileIterating(time));
    if (!state.resting) return Ok();
    ZEUS_RETURN_IF_ERROR(Finish(state));
    ZEUS_RETURN_IF_ERROR(StartNext(state.end));
  }
  return Ok();
}

Result<Seconds> InferenceEngine::NextEvent() {
  if (!iterating_) return kNoEvent;
  ZEUS_TRY(const EngineBoard::State state, board_->Read(Seconds(0)));
  return state.end;
}

unsigned InferenceEngine::running() const {
  unsigned sequences = 0;
  for (const Request* request : running_)
    sequences += request->prefilling() ? request->sequences() : request->alive;
  return sequences;
}

Result<InferenceEngine::Accounts> InferenceEngine::ReadAccounts(Seconds time) {
  ZEUS_RETURN_IF_ERROR(AdvanceTo(time));
  ZEUS_TRY(const EngineBoard::State state, board_->Read(time));
  const Joules running = state.engine - last_.engine;
  return Accounts{.prefill = prefill_.Total(),
                  .decode = decode_.Total(),
                  .unfinished = running,
                  .idle = idle_.Total() + (state.exact - last_.exact - running)};
}

// Planning of an iteration.

Status InferenceEngine::StartNext(Seconds time) {
  *plan_ = {};
  PlanDecodes();
  PlanPrompts();
  if (plan_->participants() == 0) return Ok();
  IterationWork work = parts_->Fixed() + parts_->Experts(plan_->new_tokens()) +
                       parts_->Decode(plan_->decodes, plan_->seen);
  for (const Request* request : plan_->prompts)
    work = work + parts_->Prompt({.start = static_cast<double>(request->processed),
                                  .tokens = static_cast<double>(request->in_work)});
  ZEUS_TRY(plan_->start, board_->Start(time, work));
  ZEUS_TRY(const EngineBoard::State state, board_->Read(Seconds(0)));
  CountEnergy(state);
  plan_->clock = state.clock;
  iterating_ = true;
  return Ok();
}

void InferenceEngine::PlanDecodes() {
  // Making room may remove requests from the end of running_.
  for (std::size_t i = 0; i < running_.size(); ++i) {
    Request& request = *running_[i];
    request.in_work = 0;
    request.decodes_now = false;
    if (request.prefilling() || !MakeRoom(request, request.alive)) continue;
    request.decodes_now = true;
    request.kv += request.alive;
    kv_used_ += request.alive;
    plan_->decoding.push_back(&request);
    plan_->decodes += request.alive;
    plan_->context += request.alive * request.context();
    plan_->seen += request.alive * model_.SeenContext(request.context());
  }
}

// Preempts the newest requests until so many tokens fit. False if `request` itself had to go.
bool InferenceEngine::MakeRoom(const Request& request, std::uint64_t tokens) {
  while (kv_used_ + tokens > kv_capacity_) {
    Request& newest = *running_.back();
    Preempt(newest);
    if (&newest == &request) return false;
  }
  return true;
}

void InferenceEngine::Preempt(Request& request) {
  running_.pop_back();
  kv_used_ -= std::exchange(request.kv, 0);
  ++request.preemptions;
  // Its sequences are processed again, the prompt once for all of them.
  request.prompt = request.spec.prompt_tokens + request.alive * request.generated;
  request.processed = 0;
  waiting_.push_front(&request);
}

void InferenceEngine::PlanPrompts() {
  unsigned budget =
      options_.token_budget > plan_->decodes ? options_.token_budget - plan_->decodes : 0;
  for (Request* request : running_)
    if (request->prefilling()) AddPrompt(*request, budget);
  unsigned sequences = running();
  while (budget > 0 && !waiting_.empty()) {
    Request& request = *waiting_.front();
    if (sequences + request.sequences() > options_.max_sequences || !Admit(request)) return;
    waiting_.pop_front();
    running_.push_back(&request);
    sequences += request.sequences();
    AddPrompt(request, budget);
  }
}

// Whether the whole prompt and the first tokens of the answer fit into the KV cache.
bool InferenceEngine::Admit(Request& request) {
  if (kv_used_ + request.prompt + request.alive > kv_capacity_) return false;
  request.kv = request.prompt;
  kv_used_ += request.kv;
  return true;
}

void InferenceEngine::AddPrompt(Request& request, unsigned& budget) {
  request.in_work = std::min(budget, request.prompt - request.processed);
  request.decodes_now = false;
  if (request.in_work == 0) return;
  budget -= request.in_work;
  plan_->prompts.push_back(&request);
  plan_->prompt_tokens += request.in_work;
}

// The end of an iteration.

Status InferenceEngine::Finish(const EngineBoard::State& state) {
  const Joules energy = state.engine - last_.engine;
  CountEnergy(state);
  Divide(energy);
  iterating_ = false;

  tokens_.clear();
  for (Request* request : plan_->decoding) Emit(*request);
  for (Request* request : plan_->prompts) {
    request->processed += request->in_work;
    if (request->prefilling()) continue;
    if (!request->first_token && request->alive > 0) request->first_token = state.end;
    Emit(*request);
  }
  reporting_ = true;
  listener_.OnIteration({.start = plan_->start,
                         .end = state.end,
                         .decodes = plan_->decodes,
                         .context = plan_->context,
                         .prompts = static_cast<unsigned>(plan_->prompts.size()),
                         .prompt_tokens = plan_->prompt_tokens,
                         .energy = energy,
                         .clock = plan_->clock,
                         .tokens = tokens_});
  RemoveEnded(state.end);
  reporting_ = false;
  return Ok();
}

// Each request pays an equal part of the weights and its own work. The exact energy differs from
// the law by the effects of temperature and of knobs that changed meanwhile: all parts are scaled.
void InferenceEngine::Divide(Joules energy) {
  const IterationLaw law(board_->model(), plan_->clock);
  const auto cost = [&law](const IterationWork& work) { return law.Cost(work).energy; };
  const Joules shared = cost(parts_->Fixed() + parts_->Experts(plan_->new_tokens()));
  const Joules each = shared / plan_->participants();
  const Joules per_sequence = cost(parts_->Decode(1, 0));
  const Joules per_context = cost(parts_->Decode(0, 1));
  const auto prompt_cost = [&](const Request& request) {
    return cost(parts_->Prompt({.start = static_cast<double>(request.processed),
                                .tokens = static_cast<double>(request.in_work)}));
  };
  Joules total = shared + per_sequence * plan_->decodes + per_context * plan_->seen;
  for (const Request* request : plan_->prompts) total += prompt_cost(*request);
  const double scale = energy / total;

  for (Request* request : plan_->decoding) {
    const Joules context = per_context * model_.SeenContext(request->context());
    const Joules share = (each + per_sequence + context) * (request->alive * scale);
    request->decode.Add(share);
    decode_.Add(share);
    request->ran = true;
  }
  for (Request* request : plan_->prompts) {
    const Joules share = (each + prompt_cost(*request)) * scale;
    request->prefill.Add(share);
    prefill_.Add(share);
    request->ran = true;
  }
}

void InferenceEngine::Emit(Request& request) {
  if (request.alive == 0) return;
  ++request.generated;
  for (unsigned sequence = 0; sequence < request.spec.output_tokens.size(); ++sequence) {
    const unsigned wanted = request.spec.output_tokens[sequence];
    if (wanted < request.generated) continue;
    const bool last = wanted == request.generated;
    ++request.made;
    tokens_.push_back(
        {.request = request.id, .sequence = sequence, .number = request.generated, .last = last});
    if (!last) continue;
    --request.alive;
    // Its answer leaves the cache; the prompt stays for the other sequences.
    const std::uint64_t freed = std::min<std::uint64_t>(request.kv, request.generated - 1);
    request.kv -= freed;
    kv_used_ -= freed;
  }
}

void InferenceEngine::RemoveEnded(Seconds end) {
  const auto leaves = [](const Request* request) { return request->ended() || request->cancelled; };
  std::vector<Request*> gone;
  for (Request* request : running_)
    if (leaves(request)) gone.push_back(request);
  if (gone.empty()) return;
  std::erase_if(running_, leaves);
  for (Request* request : gone)
    Report(*request, request->ended() ? RequestOutcome::kFinished : RequestOutcome::kCancelled,
           end);
}

void InferenceEngine::Report(Request& request, RequestOutcome outcome, Seconds end) {
  kv_used_ -= request.kv;
  const RequestTruth truth{.id = request.id,
                           .outcome = outcome,
                           .prefill = request.prefill.Total(),
                           .decode = request.decode.Total(),
                           .prompt_tokens = request.spec.prompt_tokens,
                           .cached_tokens = request.cached,
                           .output_tokens = request.made,
                           .preemptions = request.preemptions,
                           .arrival = request.arrival,
                           .first_token = request.first_token,
                           .end = end};
  requests_.erase(request.id);
  listener_.OnEnd(truth);
}

// Energy that is not this engine's is idle.
void InferenceEngine::CountEnergy(const EngineBoard::State& state) {
  idle_.Add(state.exact - last_.exact - (state.engine - last_.engine));
  last_ = state;
}

}  // namespace zeus::sim
