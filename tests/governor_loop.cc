#include "tests/governor_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numbers>
#include <unordered_map>

#include "zeus/base/clock.h"
#include "zeus/base/csv.h"
#include "zeus/base/file.h"
#include "zeus/base/random.h"
#include "zeus/base/testing/places.h"
#include "zeus/base/text.h"
#include "zeus/device/sim/inference/engine.h"
#include "zeus/device/sim/simulated_gpu.h"

namespace zeus::testing {
namespace {

constexpr std::size_t kTraceLimit = 64 * 1024 * 1024;

// Energy is counted until this time after the last arrival, whatever the clock.
constexpr Seconds kAfterwards{60.0};
constexpr Seconds kNever{std::numeric_limits<double>::infinity()};

// "2023-11-16 18:17:03.9799600": seconds since midnight.
Result<Seconds> TimeOfDay(std::string_view text) {
  if (text.size() < 19) return InvalidArgument("not a time: " + Quote(text));
  ZEUS_TRY(const double hours, ParseDouble(text.substr(11, 2)));
  ZEUS_TRY(const double minutes, ParseDouble(text.substr(14, 2)));
  ZEUS_TRY(const double seconds, ParseDouble(text.substr(17)));
  return Seconds(hours * 3600 + minutes * 60 + seconds);
}

// Plays the server, its clients, and the program that drives the governor.
class Loop final : public sim::EngineListener {
 public:
  Loop(const RequestLoad& load, const LoopOptions& options) : load_(load), options_(options) {}

  Result<ServedLoad> Run();

 private:
  void OnIteration(const sim::IterationReport& iteration) override;
  void OnEnd(const sim::RequestTruth& truth) override;

  Status Prepare();
  Status Arrive();
  Status Decide();
  Status Advance(Seconds tick, Seconds end);
  Status Lock(Hertz clock);
  TimePoint At(Seconds time) const { return TimePoint{} + time; }

  const RequestLoad& load_;
  const LoopOptions& options_;
  VirtualClock clock_;
  std::vector<std::unique_ptr<sim::SimulatedGpu>> gpus_;
  Hertz highest_{};
  std::unique_ptr<sim::InferenceEngine> engine_;
  std::optional<ClockGovernor> governor_;
  Random random_{11};
  std::size_t next_ = 0;
  Seconds now_{0};
  std::unordered_map<sim::RequestId, Seconds> first_;
  Hertz present_{};               // Locked, or the highest.
  std::optional<Hertz> pending_;  // Decided, not yet in force.
  Seconds pending_at_{};
  double clock_time_ = 0;
  double busy_time_ = 0;
  ServedLoad served_;
};

void Loop::OnIteration(const sim::IterationReport& iteration) {
  const double time = (iteration.end - iteration.start).count();
  busy_time_ += time;
  clock_time_ += time * (iteration.clock / highest_);
  for (const sim::OutputToken& token : iteration.tokens) {
    if (token.number == 1) first_[token.request] = iteration.end;
    if (governor_) governor_->OnTokens(At(iteration.end), token.request, 1);
  }
}

void Loop::OnEnd(const sim::RequestTruth& truth) {
  if (governor_) governor_->OnEnd(At(truth.end), truth.id);
  const Seconds first = first_[truth.id];
  first_.erase(truth.id);
  served_.requests.push_back({.ttft = first - truth.arrival,
                              .tpot = truth.output_tokens > 1
                                          ? (truth.end - first) / (truth.output_tokens - 1.0)
                                          : Seconds(0)});
}

Status Loop::Prepare() {
  ZEUS_TRY(const sim::LanguageModel* const model, sim::FindLanguageModel(options_.model));
  ZEUS_TRY(const sim::GpuModel* const part, sim::FindGpuModel(options_.gpu));
  highest_ = present_ = part->graphics_clock.max;
  std::vector<sim::SimulatedGpu*> group;
  for (unsigned i = 0; i < options_.gpus; ++i) {
    gpus_.push_back(std::make_unique<sim::SimulatedGpu>(
        clock_, *part, sim::SimulatedGpu::Options{.seed = i + 1, .index = i}));
    group.push_back(gpus_.back().get());
  }
  ZEUS_TRY(engine_, sim::InferenceEngine::Create(*model, sim::AccessTo(group), {}, *this));
  if (options_.governor) {
    GovernorOptions options = *options_.governor;
    options.clocks = EngineClocks(options_.gpu);
    ZEUS_TRY(governor_, ClockGovernor::Create(std::move(options)));
  }
  return options_.fixed ? Lock(*options_.fixed) : Ok();
}

Status Loop::Lock(Hertz clock) {
  pending_.reset();
  if (clock == present_) return Ok();
  present_ = clock;
  ++served_.changes;
  for (const auto& gpu : gpus_)
    ZEUS_RETURN_IF_ERROR(
        gpu->LockClockWithoutJournal(ClockDomain::kGraphics, {.min = clock, .max = clock}));
  return Ok();
}

Status Loop::Arrive() {
  const LoadRequest& request = load_[next_++];
  ZEUS_TRY(const sim::RequestId id,
           engine_->Submit(now_, {.prompt_tokens = request.prompt_tokens,
                                  .output_tokens = {request.output_tokens}}));
  if (!governor_) return Ok();
  const double error = std::exp(options_.prompt_error * random_.Normal());
  governor_->OnArrival(At(now_), id, request.prompt_tokens * error);
  return governor_->WantsDecision() ? Decide() : Ok();
}

Status Loop::Decide() {
  Joules energy(0);
  Hertz clock = highest_;
  for (const auto& gpu : gpus_) {
    ZEUS_TRY(const EnergyReading reading, gpu->Energy());
    ZEUS_TRY(const Hertz running, gpu->CurrentClock(ClockDomain::kGraphics));
    energy += reading.total;
    clock = std::min(clock, running);
  }
  const ClockDecision decision =
      governor_->Decide({.time = At(now_), .energy = energy, .clock = clock});
  if (!decision.lock) return Ok();
  if (options_.log && *decision.lock != present_)
    fmt::print("{:9.2f} s  {:5.0f} MHz  {:3} running {:3} waiting  {}\n", now_.count(),
               decision.lock->ToMega(), engine_->running(), engine_->waiting(), decision.text);
  if (options_.lock_delay <= Seconds(0)) return Lock(*decision.lock);
  pending_ = decision.lock;
  pending_at_ = now_ + options_.lock_delay;
  return Ok();
}

// Goes to the next event of the engine or the load, but not beyond the two times.
Status Loop::Advance(Seconds tick, Seconds end) {
  ZEUS_TRY(Seconds event, engine_->NextEvent());
  event = std::min({event, tick, end});
  if (next_ < load_.size()) event = std::min(event, load_[next_].arrival);
  if (pending_) event = std::min(event, pending_at_);
  now_ = std::max(now_, event);
  clock_.SleepUntil(At(now_));
  ZEUS_RETURN_IF_ERROR(engine_->AdvanceTo(now_));
  if (pending_ && pending_at_ <= now_) ZEUS_RETURN_IF_ERROR(Lock(*pending_));
  while (next_ < load_.size() && load_[next_].arrival <= now_) ZEUS_RETURN_IF_ERROR(Arrive());
  return Ok();
}

Result<ServedLoad> Loop::Run() {
  ZEUS_RETURN_IF_ERROR(Prepare());
  if (load_.empty()) return InvalidArgument("a load needs at least one request");
  const Seconds end = load_.back().arrival + kAfterwards;
  Seconds tick = options_.period;
  bool counted = false;
  while (!counted || first_.size() + engine_->running() + engine_->waiting() > 0) {
    ZEUS_RETURN_IF_ERROR(Advance(governor_ ? tick : kNever, counted ? kNever : end));
    if (governor_ && tick <= now_) {
      ZEUS_RETURN_IF_ERROR(Decide());
      tick += options_.period;
    }
    if (!counted && now_ >= end) {
      for (const auto& gpu : gpus_) served_.energy += gpu->ExactEnergy();
      if (governor_) served_.governor = governor_->status();
      counted = true;
    }
  }
  served_.mean_clock = busy_time_ > 0 ? clock_time_ / busy_time_ : 0;
  return std::move(served_);
}

}  // namespace

std::filesystem::path LlmDataFolder() { return RecordedData("ZEUS_LLM_DATA_DIR", "llm"); }

Result<RequestLoad> ReadRequestTrace(const std::filesystem::path& path) {
  ZEUS_TRY(const std::string text, ReadSmallFile(path, kTraceLimit));
  CsvText csv(text);
  RequestLoad load;
  std::optional<Seconds> start;
  ZEUS_TRY(bool found, csv.Next());  // The header.
  while (true) {
    ZEUS_TRY(found, csv.Next());
    if (!found) break;
    if (csv.fields().size() != 3)
      return InvalidArgument("a trace has three columns: " + path.string());
    ZEUS_TRY(const Seconds time, TimeOfDay(csv.fields()[0]));
    ZEUS_TRY(const std::uint64_t prompt, ParseUnsigned(csv.fields()[1]));
    ZEUS_TRY(const std::uint64_t output, ParseUnsigned(csv.fields()[2]));
    if (!start) start = time;
    load.push_back({.arrival = time - *start,
                    .prompt_tokens = static_cast<unsigned>(std::max<std::uint64_t>(prompt, 1)),
                    .output_tokens = static_cast<unsigned>(std::max<std::uint64_t>(output, 1))});
  }
  return load;
}

RequestLoad AtSpeed(const RequestLoad& load, double speed, Seconds length) {
  RequestLoad faster;
  for (LoadRequest request : load) {
    request.arrival /= speed;
    if (request.arrival > length) break;
    faster.push_back(request);
  }
  return faster;
}

RequestLoad AlongDay(const RequestLoad& load, double least, double most, Seconds length) {
  RequestLoad day;
  Seconds now{0};
  Seconds last{0};
  for (LoadRequest request : load) {
    const double share = now / length;
    const double swing = 0.5 * (1.0 - std::cos(2.0 * std::numbers::pi * share));
    now += (request.arrival - last) / (least + (most - least) * swing);
    last = request.arrival;
    if (now > length) break;
    request.arrival = now;
    day.push_back(request);
  }
  return day;
}

RequestLoad Regular(double per_second, Seconds length, unsigned prompt, unsigned output) {
  RequestLoad load;
  for (Seconds time(0); time < length; time += Seconds(1.0 / per_second))
    load.push_back({.arrival = time, .prompt_tokens = prompt, .output_tokens = output});
  return load;
}

double MissedShare(const ServedLoad& served, const ServiceTargets& targets) {
  const auto missed = [&targets](const ServedRequest& request) {
    return (targets.ttft && request.ttft > *targets.ttft) ||
           (targets.tpot && request.tpot > *targets.tpot);
  };
  return static_cast<double>(std::ranges::count_if(served.requests, missed)) /
         static_cast<double>(std::max<std::size_t>(served.requests.size(), 1));
}

std::vector<Hertz> EngineClocks(std::string_view gpu) {
  std::vector<Hertz> clocks = sim::GraphicsClocks(*sim::FindGpuModel(gpu).value());
  std::ranges::sort(clocks);
  return clocks;
}

Result<ServedLoad> Serve(const RequestLoad& load, const LoopOptions& options) {
  return Loop(load, options).Run();
}

}  // namespace zeus::testing
