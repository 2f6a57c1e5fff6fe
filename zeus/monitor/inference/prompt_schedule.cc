#include "zeus/monitor/inference/prompt_schedule.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace zeus {
namespace {

constexpr std::size_t kBudgetSamples = 48;
constexpr std::size_t kFewestSamples = 6;
constexpr double kSmallestWork = 64;  // Prompt tokens; less may be noise.
constexpr double kBudgetStep = 256;   // Budgets are multiples of this, where they are near one.
constexpr double kLookAhead = 65536;  // Waiting tokens beyond this have not been worked on.
constexpr std::size_t kMostRequestsInStretch = 64;
constexpr double kSignificant = 2.5;  // Standard deviations beyond which time shows more work.
constexpr double kNoIdea = 1e9;       // Tokens.
constexpr double kNothing = 1e-6;     // Less than this part of a token is none.
constexpr double kMostChunks = 1000;  // Iterations into which hidden work is cut.
constexpr double kLongWithoutBudget = 1500;  // Tokens that may have been several iterations.
constexpr std::size_t kMostSilentIterations = 2000;

}  // namespace

void PromptSchedule::Remove(RequestIndex request) {
  const auto found = std::find(queue_.begin(), queue_.end(), request);
  if (found != queue_.end()) {
    queue_.erase(found);
    stretch_broken_ = true;
  }
  std::erase(silent_, request);
  if (std::erase(stretch_requests_, request) > 0) stretch_broken_ = true;
}

IterationLoad PromptSchedule::DecodeLoad(const EngineIteration& seen) const {
  IterationLoad load{.iterations = 1, .sequences = seen.strangers};
  double context = 0;
  for (const DecodePart& part : seen.decode) {
    load.sequences += part.tokens;
    context += part.tokens * part.context;
  }
  // The sequences of strangers are thought to be like ours.
  const double ours = load.sequences - seen.strangers;
  load.context = ours > 0 ? context * load.sequences / ours : context;
  load.experts = ExpertsRead(load.sequences);
  return load;
}

std::vector<PromptSchedule::Waiting> PromptSchedule::WaitingAt(const EngineIteration& seen,
                                                               double time) const {
  std::vector<Waiting> waiting;
  double ahead = 0;
  std::size_t finishing = 0;
  for (const RequestIndex index : queue_) {
    const TrackedRequest& request = requests_[index];
    const bool finishes =
        std::find(seen.firsts.begin(), seen.firsts.end(), index) != seen.firsts.end();
    if (!finishes && (request.arrival > time || (request.ended && request.end <= seen.begin)))
      continue;
    if (!finishes && ahead > kLookAhead) continue;
    const double rest = std::max(1.0, request.prompt - request.worked);
    waiting.push_back({index, rest, request.prompt_sigma * request.prompt_sigma, finishes});
    ahead += rest;
    finishing += finishes ? 1 : 0;
    if (finishing == seen.firsts.size() && ahead > kLookAhead) break;
  }
  return waiting;
}

double PromptSchedule::TokensByTime(double time, const std::vector<Waiting>& waiting,
                                    double sequences) const {
  double context = 0;
  double rest = 0;
  for (const Waiting& prompt : waiting) {
    const TrackedRequest& request = requests_[prompt.request];
    context += prompt.rest * (request.cached + request.worked + prompt.rest / 2);
    rest += prompt.rest;
  }
  return durations_.TokensIn(time, context / std::max(1.0, rest), sequences);
}

// The standard deviation of tokens that were found by time. Beside another engine's work, time says
// nothing.
double PromptSchedule::TokenDoubt(double duration) const {
  if (shared_) return kNoIdea;
  const double time = 2 * durations_.error() + jitter_ + 0.02 * duration;
  return time / std::max(1e-9, durations_.PerPrompt(0));
}

void PromptSchedule::LearnBudget(double tokens) {
  if (budget_samples_.size() < kBudgetSamples) {
    budget_samples_.push_back(tokens);
  } else {
    budget_samples_[next_sample_++ % kBudgetSamples] = tokens;
  }
  if (budget_samples_.size() < kFewestSamples) return;
  std::vector<double> sorted = budget_samples_;
  std::sort(sorted.begin(), sorted.end());
  // Iterations that had less than the budget waited for something else, such as free sequences: the
  // budget is where the largest ones gather.
  const double high = sorted[sorted.size() * 4 / 5];
  const auto from = std::lower_bound(sorted.begin(), sorted.end(), 0.93 * high);
  const auto to = std::upper_bound(sorted.begin(), sorted.end(), 1.07 * high);
  if (static_cast<std::size_t>(to - from) * 4 < sorted.size()) {
    budget_ = 0;
    return;
  }
  const double median = from[(to - from) / 2];
  const double round = std::round(median / kBudgetStep) * kBudgetStep;
  budget_ = std::abs(round - median) < 0.08 * median ? round : median;
}

// Gives prompt work to one iteration in which sequences decoded.
void PromptSchedule::GiveWork(const EngineIteration& seen, std::vector<Waiting>& waiting) {
  const IterationLoad decode = DecodeLoad(seen);
  const double duration = seen.end - seen.begin;
  const double by_time =
      TokensByTime(duration - durations_.Predict(decode), waiting, decode.sequences);
  const double sigma = TokenDoubt(duration);
  double finishing = 0;
  double variance = 0;
  double others = 0;
  double most = 0;  // Tokens of the others.
  bool full = false;
  for (const Waiting& prompt : waiting) {
    (prompt.finishes ? finishing : others) += prompt.rest;
    if (!prompt.finishes) most += prompt.Most();
    if (prompt.finishes) variance += prompt.variance;
    if (!prompt.finishes && requests_[prompt.request].streamed) full = true;
  }
  if (full && by_time > kSmallestWork && !shared_) LearnBudget(by_time + decode.sequences);
  const double room = budget_ > 0 ? std::max(0.0, budget_ - decode.sequences)
                                  : std::numeric_limits<double>::infinity();
  // The tokens that finish prompts, by their count and by the time; and those for other prompts.
  const double trust = variance / (variance + sigma * sigma);
  double to_finishing =
      finishing > 0 ? std::max(1.0, finishing + trust * (by_time - finishing)) : 0;
  double rest = 0;
  // A prompt that is not finished has filled the iteration, unless it is too short for that: then
  // it was not worked on, or its first token is late.
  if (finishing + most >= room) others = std::max(others, room - finishing);
  const double rule = std::min(finishing + others, room);
  if (others > 0 && budget_ > 0 && std::abs(rule - by_time) < 4 * sigma + 0.08 * rule) {
    to_finishing = std::min(finishing, rule);
    rest = rule - to_finishing;
  } else if (others > 0 &&
             by_time > finishing + kSignificant * std::hypot(sigma, std::sqrt(variance))) {
    to_finishing = finishing;
    rest = std::min({by_time - finishing, others, std::max(0.0, room - finishing)});
  }
  Distribute(waiting, {.finishing = finishing, .to_finishing = to_finishing, .rest = rest});
}

// Gives each prompt its part: those that finish share `to_finishing` tokens, the others get the
// rest in the order of arrival.
void PromptSchedule::Distribute(std::vector<Waiting>& waiting, Work work) const {
  for (Waiting& prompt : waiting) {
    if (prompt.finishes) {
      prompt.given = work.finishing > 0 ? prompt.rest * work.to_finishing / work.finishing : 0;
      prompt.given = std::max(prompt.given, std::min(prompt.rest, 1.0));
      continue;
    }
    // A streamed prompt whose first token has not come is not finished.
    const bool streamed = requests_[prompt.request].streamed;
    const double most = streamed ? std::max(0.0, prompt.rest - 1) : prompt.rest;
    prompt.given = streamed && work.rest < prompt.Most() ? std::max(0.0, work.rest)
                                                         : std::clamp(work.rest, 0.0, most);
    work.rest -= prompt.given;
  }
}

void PromptSchedule::LinkSuccessor(const std::vector<Waiting>& waiting) {
  const auto successor = std::find_if(waiting.begin(), waiting.end(), [](const Waiting& prompt) {
    return !prompt.finishes && prompt.given > 0;
  });
  if (successor == waiting.end() || shared_) return;
  for (const Waiting& prompt : waiting) {
    if (!prompt.finishes) continue;
    requests_[prompt.request].successor = successor->request;
    requests_[successor->request].succeeds = true;
  }
}

// Notes the work as done, and the prompts that were finished.
void PromptSchedule::Finish(const std::vector<Waiting>& waiting) {
  LinkSuccessor(waiting);
  for (const Waiting& prompt : waiting) {
    TrackedRequest& request = requests_[prompt.request];
    const bool finished =
        prompt.finishes || (!request.streamed && request.worked >= request.prompt - 1);
    if (!finished) continue;
    request.prompt_done = true;
    if (request.prompt_sigma > 0 && prompt.finishes) request.prompt = request.worked;
    std::erase(queue_, prompt.request);
    const bool decodes = request.DecodedTold().value_or(1) > 0;
    if (!request.streamed && (!request.ended || decodes)) silent_.push_back(prompt.request);
  }
}

void PromptSchedule::LearnDurations(const EngineIteration& seen,
                                    const std::vector<Waiting>& waiting, double iterations) {
  IterationLoad load = DecodeLoad(seen);
  load.iterations = iterations;
  double given = 0;
  for (const Waiting& prompt : waiting) given += prompt.given;
  const double chunk = std::min(given, budget_ > 0 ? budget_ : given);
  load.heavy = given > 0 ? std::max(0.0, chunk - durations_.heavy_from()) * given / chunk : 0;
  load.experts = iterations * ExpertsRead((load.sequences + given) / std::max(1.0, iterations));
  stretch_ += load;
  stretch_time_ += seen.end - seen.begin;
  bool finished = true;
  for (const Waiting& prompt : waiting) {
    finished = finished && prompt.finishes;
    if (prompt.finishes) stretch_requests_.push_back(prompt.request);
    if (!requests_[prompt.request].streamed) stretch_broken_ = true;
  }
  if (seen.strangers > 0 || !silent_.empty() || shared_) stretch_broken_ = true;
  if (stretch_requests_.size() > kMostRequestsInStretch) stretch_broken_ = true;
  if (!finished) return;
  if (!stretch_broken_ && !stretch_requests_.empty()) LearnStretch();
  stretch_ = IterationLoad{};
  stretch_time_ = 0;
  stretch_requests_.clear();
  stretch_broken_ = false;
}

// Learns from a stretch of prompt work that has ended. Prompts whose tokens are not told yet are
// added when they are.
void PromptSchedule::LearnStretch() {
  if (!durations_.knows_prompts()) {
    // The first guess of the speed rests on the size of the prompts in bytes.
    const auto guess = durations_.OpenStretch(stretch_, stretch_time_, stretch_requests_.size());
    for (const RequestIndex index : stretch_requests_)
      durations_.PromptKnown(guess, requests_[index].prior_prompt, requests_[index].cached,
                             0.3 * requests_[index].prior_prompt);
  }
  const auto stretch = durations_.OpenStretch(stretch_, stretch_time_, stretch_requests_.size());
  for (const RequestIndex index : stretch_requests_) {
    TrackedRequest& request = requests_[index];
    if (request.prompt_sigma > 0 && !request.ended) {
      request.episode = stretch;
    } else {
      const double tokens = request.counts.prompt ? request.prompt : request.prior_prompt;
      durations_.PromptKnown(stretch, tokens, request.cached, request.prompt_sigma);
    }
  }
}

// Requests that are not streamed decode unseen, from the end of their prompt to their end.
void PromptSchedule::AddSilentDecoders(EngineIteration& iteration) {
  for (const RequestIndex index : silent_) {
    TrackedRequest& request = requests_[index];
    if (request.ended && request.end <= iteration.begin) continue;
    if (request.ended && request.decoded >= request.DecodedTold().value_or(kNoIdea)) continue;
    iteration.decode.push_back({index, request.sequences, request.context()});
    request.decoded += request.sequences;
    request.last_touch = std::max(request.last_touch, iteration.end);
  }
}

void PromptSchedule::Process(EngineIteration seen, std::deque<EngineIteration>& done) {
  const bool decodes = !seen.decode.empty();
  if (decodes) {
    seen.strangers = strangers_;
    AddSilentDecoders(seen);
  }
  std::vector<Waiting> waiting = WaitingAt(seen, decodes ? seen.begin : seen.end);
  if (!decodes) {
    Split(seen, waiting, done);
    return;
  }
  const double duration = seen.end - seen.begin;
  const double expected = durations_.Predict(DecodeLoad(seen));
  decode_time_ = durations_.knows_decoding() ? expected : 0;
  if (waiting.empty()) {
    if (duration > 5 * expected + 0.1) seen.busy_from = seen.end - expected;  // A stall.
    if (seen.strangers == 0 && silent_.empty() && !shared_)
      durations_.LearnDecode(DecodeLoad(seen), duration);
    done.push_back(std::move(seen));
    return;
  }
  GiveWork(seen, waiting);
  double total = 0;
  for (const Waiting& prompt : waiting) total += prompt.given;
  for (const Waiting& prompt : waiting) {
    if (prompt.given <= 0) continue;
    TrackedRequest& request = requests_[prompt.request];
    request.split_tokens += prompt.given * (1 - prompt.given / std::max(total, 1.0));
    seen.prompts.push_back({prompt.request, prompt.given,
                            prompt.given * (request.cached + request.worked + prompt.given / 2)});
    request.worked += prompt.given;
    request.last_touch = std::max(request.last_touch, seen.end);
  }
  LearnDurations(seen, waiting, 1);
  Finish(waiting);
  done.push_back(std::move(seen));
}

// The tokens that were worked on for prompts that did not finish, in a stretch in which nobody was
// seen to decode. Guesses of the prompts that finished are corrected by the time.
double PromptSchedule::HiddenWork(double duration, std::vector<Waiting>& waiting,
                                  double room) const {
  double finishing = 0;
  double variance = 0;
  bool others = false;
  for (const Waiting& prompt : waiting) {
    others = others || !prompt.finishes;
    if (!prompt.finishes) continue;
    finishing += prompt.rest;
    variance += prompt.variance;
  }
  const double count = std::max(1.0, std::ceil(finishing / room));
  const double work_time = duration - count * durations_.fixed();
  const double by_time = count * TokensByTime(work_time / count, waiting, 0);
  if (finishing <= 0) return by_time;
  const double sigma = TokenDoubt(duration);
  if (variance > 0 && by_time > 0) {
    const double trust = variance / (variance + sigma * sigma);
    const double posterior = std::max(1.0, finishing + trust * (by_time - finishing));
    if (!others || posterior < finishing) {
      for (Waiting& prompt : waiting)
        if (prompt.finishes) prompt.rest *= posterior / finishing;
      return 0;
    }
  }
  const double left = by_time - finishing;
  return left < kSignificant * std::hypot(sigma, std::sqrt(variance)) ? 0 : left;
}

// Cuts the work into iterations of `room` tokens, from `begin` on, in the order of arrival.
std::vector<EngineIteration> PromptSchedule::Chunks(const EngineIteration& seen,
                                                    std::vector<Waiting>& waiting, double left,
                                                    double room) {
  std::vector<EngineIteration> parts;
  EngineIteration part;
  double used = 0;
  double time = seen.begin;
  const auto close = [&] {
    if (part.prompts.empty()) return;
    IterationLoad load{.iterations = 1};
    for (const PromptPart& prompt : part.prompts) {
      load.prompt += prompt.tokens;
      load.attention += prompt.attention;
    }
    load.heavy = std::max(0.0, load.prompt - durations_.heavy_from());
    load.experts = ExpertsRead(load.prompt);
    part.begin = time;
    time += durations_.Predict(load);
    part.end = time;
    parts.push_back(std::exchange(part, EngineIteration{}));
    used = 0;
  };
  for (Waiting& prompt : waiting) {
    TrackedRequest& request = requests_[prompt.request];
    double rest = prompt.rest;
    if (!prompt.finishes) {
      rest = std::clamp(left, 0.0, request.streamed ? std::max(0.0, prompt.rest - 1) : prompt.rest);
      left -= rest;
    }
    if (request.arrival > time && used > 0) close();
    while (rest > kNothing) {
      const double tokens = std::min(rest, room - used);
      part.prompts.push_back(
          {prompt.request, tokens, tokens * (request.cached + request.worked + tokens / 2)});
      request.worked += tokens;
      request.last_touch = std::max(request.last_touch, seen.end);
      prompt.given += tokens;
      rest -= tokens;
      used += tokens;
      if (used >= room - kNothing) close();
    }
  }
  close();
  return parts;
}

// The predicted time in which responses in one piece, which have come by now, were decoded after
// their prompts.
double PromptSchedule::SilentTime(const std::vector<Waiting>& waiting) const {
  double longest = 0;
  for (const Waiting& prompt : waiting) {
    const TrackedRequest& request = requests_[prompt.request];
    if (request.streamed || !request.ended) continue;
    const double iterations = request.DecodedTold().value_or(0) / request.sequences;
    const double duration = durations_.Predict({.iterations = 1,
                                                .sequences = request.sequences,
                                                .context = request.sequences * request.context()});
    longest = std::max(longest, iterations * duration);
  }
  return longest;
}

bool PromptSchedule::EndsInOnePiece(const std::vector<Waiting>& waiting) const {
  return std::any_of(waiting.begin(), waiting.end(), [&](const Waiting& prompt) {
    return prompt.finishes && !requests_[prompt.request].streamed;
  });
}

bool PromptSchedule::AnySilentAfter(double time) const {
  return std::any_of(silent_.begin(), silent_.end(), [&](RequestIndex index) {
    return !requests_[index].ended || requests_[index].end > time;
  });
}

// The end of the prompt of a response in one piece, as told by the server, if it lies in the
// stretch; 0 otherwise.
double PromptSchedule::ToldPromptEnd(const EngineIteration& seen,
                                     const std::vector<Waiting>& waiting) const {
  double told = 0;
  for (const Waiting& prompt : waiting) told = std::max(told, requests_[prompt.request].prompt_end);
  return told > seen.begin && told <= seen.end ? told : 0;
}

// The part of a stretch in which prompts were worked on.
double PromptSchedule::PromptTime(const EngineIteration& seen,
                                  const std::vector<Waiting>& waiting) const {
  const double duration = seen.end - seen.begin;
  if (const double told = ToldPromptEnd(seen, waiting); told > 0) return told - seen.begin;
  return std::max(0.0, duration - SilentTime(waiting));
}

// The moment at which the prompts of a stretch were done. Where a response in one piece has come,
// it is the one that its server told, or divides the time as prompts and tokens should have taken
// it.
double PromptSchedule::PromptsEnd(const EngineIteration& seen, const std::vector<Waiting>& waiting,
                                  double work) const {
  if (const double told = ToldPromptEnd(seen, waiting); told > 0) return told;
  const double silent = SilentTime(waiting);
  if (silent > 0) return seen.begin + (seen.end - seen.begin) * work / (work + silent);
  return std::min(seen.end, seen.begin + work);
}

// Requests that are not streamed decode in the rest of the time.
void PromptSchedule::DecodeSilently(const Span& span, std::vector<EngineIteration>& parts) {
  double time = span.begin;
  for (std::size_t n = 0; n < kMostSilentIterations && time < span.end; ++n) {
    EngineIteration decode;
    decode.begin = time;
    decode.end = span.end;
    AddSilentDecoders(decode);
    if (decode.decode.empty()) return;
    const double duration = span.pace * durations_.Predict(DecodeLoad(decode));
    time = std::min(span.end, time + std::max(1e-4, duration));
    decode.end = time;
    parts.push_back(std::move(decode));
  }
}

// Divides a stretch in which nobody was seen to decode into the iterations that it must have had.
void PromptSchedule::Split(const EngineIteration& seen, std::vector<Waiting>& waiting,
                           std::deque<EngineIteration>& done) {
  double total = 0;
  for (const Waiting& prompt : waiting) total += prompt.rest;
  const double room = budget_ > 0 ? std::max(budget_, total / kMostChunks)
                                  : std::numeric_limits<double>::infinity();
  const double duration = seen.end - seen.begin;
  const double left = HiddenWork(PromptTime(seen, waiting), waiting, room);
  std::vector<EngineIteration> parts = Chunks(seen, waiting, left, room);
  const double work = parts.empty() ? 0 : parts.back().end - seen.begin;
  const bool plausible = work > 0.6 * duration && work < 1.6 * duration;
  if (!plausible || (budget_ <= 0 && total > kLongWithoutBudget)) stretch_broken_ = true;
  if (!waiting.empty()) LearnDurations(seen, waiting, static_cast<double>(parts.size()));
  Finish(waiting);
  // The work fills the time up to the decoding of others. Before a first token that came much too
  // late for it the engine waited; a response in one piece may hide work of any length.
  const bool silent = AnySilentAfter(seen.begin);
  const double prompts_end = silent ? PromptsEnd(seen, waiting, work) : seen.end;
  if (work > 0) {
    const bool waited = work < 0.6 * duration && !silent && !EndsInOnePiece(waiting);
    const double start = waited ? seen.end - work : seen.begin;
    const double scale = (prompts_end - start) / work;
    for (EngineIteration& iteration : parts) {
      iteration.begin = start + (iteration.begin - seen.begin) * scale;
      iteration.end = start + (iteration.end - seen.begin) * scale;
    }
  }
  const double expected = SilentTime(waiting);
  if (silent)
    DecodeSilently({.begin = prompts_end,
                    .end = seen.end,
                    .pace = expected > 0 ? (seen.end - prompts_end) / expected : 1},
                   parts);
  for (EngineIteration& iteration : parts) {
    iteration.busy_from = iteration.begin;
    done.push_back(std::move(iteration));
  }
}

}  // namespace zeus
