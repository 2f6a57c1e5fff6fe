// Prints how well the energy of requests to an inference server is attributed, against the exact
// truth of the simulated engine, beside five simpler rules (docs/llm-attribution.md):
//
//     llm-attribution [SECONDS [LOAD [CASE [SEEDS]]]]
//
// SECONDS of each recorded trace are replayed, 300 unless given. With LOAD only loads are run whose
// names hold it, as in "code x3"; with CASE only that hard case, or "base". Each row is run with
// SEEDS seeds of the delays of tokens and the sizes of prompts, 3 unless given: errors are means
// over them, everything else is the worst. Without the recorded traces the loads are synthetic, and
// the program says so.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <deque>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/random.h"
#include "zeus/monitor/inference/attribution.h"
#include "zeus/monitor/inference/testing/attribution_case.h"

namespace {

using zeus::Seconds;
using zeus::testing::AttributionCase;
using zeus::testing::AttributionScore;
using zeus::testing::ErrorSummary;
using zeus::testing::Load;
using zeus::testing::PromptCounts;

struct NamedLoad {
  std::string name;
  std::string_view trace;
  double speed;
  double goal;  // Median error in per cent, and that of nine of ten requests.
  double ninetieth_goal;
};
const std::vector<NamedLoad> kLoads = {{"conversation x0.2", "conversation", 0.2, 0.5, 2},
                                       {"conversation x1", "conversation", 1, 2, 6},
                                       {"conversation x3", "conversation", 3, 3, 8},
                                       {"code x1, bursts", "code", 1, 6, 20},
                                       {"code x3, bursts", "code", 3, 8, 25}};
constexpr double kHardGoal = 10;
constexpr double kConservationGoal = 1e-6;
constexpr std::uint64_t kManyRequests = 1'000'000;
constexpr std::size_t kRunningRequests = 16;
constexpr double kConversationRate = 5.5;  // Requests per second of the recorded trace.
constexpr double kCodeRate = 2.6;

struct HardCase {
  std::string_view name;
  void (*apply)(AttributionCase&);
};
const std::vector<HardCase> kHardCases = {
    {"jitter 5 ms", [](AttributionCase& scenario) { scenario.jitter = Seconds(0.005); }},
    {"4 tokens per event", [](AttributionCase& scenario) { scenario.tokens_per_event = 4; }},
    {"prompt counts unknown",
     [](AttributionCase& scenario) { scenario.counts = PromptCounts::kNever; }},
    {"prompt counts at first token",
     [](AttributionCase& scenario) { scenario.counts = PromptCounts::kAtFirstToken; }},
    {"sensor 20 ms", [](AttributionCase& scenario) { scenario.sensor_period = Seconds(0.02); }},
    {"sensor 100 ms, sees 25 ms",
     [](AttributionCase& scenario) { scenario.sensor_window = Seconds(0.025); }},
    {"mixture of experts (qwen3-30b-a3b)",
     [](AttributionCase& scenario) { scenario.model = "qwen3-30b-a3b"; }},
    {"stranger, 150 W more",
     [](AttributionCase& scenario) { scenario.stranger = zeus::Watts(220); }},
};

const std::vector<HardCase> kLateCases = {
    {"0.02 s late", [](AttributionCase&) {}},
    {"0.4 s late", [](AttributionCase& scenario) { scenario.sensor_lag = Seconds(0.4); }},
    {"not read for up to 5 s", [](AttributionCase& scenario) { scenario.sensor_gap = Seconds(5); }},
};

std::string Percent(const ErrorSummary& errors) {
  return fmt::format("{:.2f} / {:.1f}", 100 * errors.median, 100 * errors.ninetieth);
}

std::size_t ResidentBytes() {
  std::size_t size = 0;
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> size >> pages;
  return pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

// Rows to run, by a part of their names.
struct Selection {
  std::string load{};
  std::string hard_case{};
  std::uint64_t seeds = 3;

  bool HasLoad(std::string_view name) const { return name.find(load) != std::string_view::npos; }
  bool HasCase(std::string_view name) const {
    return hard_case.empty() || name.find(hard_case) != std::string_view::npos;
  }
};

void AddPart(const ErrorSummary& one, double part, ErrorSummary& mean) {
  mean.median += part * one.median;
  mean.ninetieth += part * one.ninetieth;
}

double Larger(double a, double b) { return std::abs(a) > std::abs(b) ? a : b; }

// The mean of the errors, and the worst of everything else.
AttributionScore Combined(const std::vector<AttributionScore>& scores) {
  AttributionScore all = scores.back();
  all.energy = all.prefill = all.decode = {};
  const double part = 1 / static_cast<double>(scores.size());
  for (const AttributionScore& score : scores) {
    AddPart(score.energy, part, all.energy);
    AddPart(score.prefill, part, all.prefill);
    AddPart(score.decode, part, all.decode);
    all.coverage = std::min(all.coverage, score.coverage);
    all.prefill_coverage = std::min(all.prefill_coverage, score.prefill_coverage);
    all.decode_coverage = std::min(all.decode_coverage, score.decode_coverage);
    all.conservation = Larger(all.conservation, score.conservation);
    all.requests_conservation = Larger(all.requests_conservation, score.requests_conservation);
    all.provisional_within = std::min(all.provisional_within, score.provisional_within);
    all.provisional_coverage = std::min(all.provisional_coverage, score.provisional_coverage);
    all.provisional_worst = std::max(all.provisional_worst, score.provisional_worst);
    all.settled = std::min(all.settled, score.settled);
    if (&score == &scores.back()) continue;
    all.other += score.other;
    all.stranger += score.stranger;
  }
  return all;
}

// The time that this process has been running: other processes of a busy machine do not count.
class CpuClock final : public zeus::Clock {
 public:
  zeus::TimePoint Now() const override {
    return zeus::TimePoint(Seconds(static_cast<double>(std::clock()) / CLOCKS_PER_SEC));
  }
  zeus::WallTime WallNow() const override { return {}; }
  void SleepUntil(zeus::TimePoint) override {}
};

class Program {
 public:
  Program(Seconds duration, const Selection& selection)
      : duration_(duration),
        selection_(selection),
        recorded_(std::filesystem::exists(zeus::testing::RecordedLoadDirectory())) {}

  int Run() {
    if (!recorded_)
      fmt::print(
          "No recorded traces in {}: the loads are synthetic, and the goals do not apply.\n\n",
          zeus::testing::RecordedLoadDirectory().string());
    fmt::print(
        "Replayed: {:g} s of each trace, {} times. Errors in per cent of the truth, median / 90 "
        "%.\n\n",
        duration_.count(), selection_.seeds);
    for (const NamedLoad& load : kLoads)
      if (selection_.HasLoad(load.name)) loads_.push_back(load);
    if (selection_.HasCase("base")) PrintBase();
    PrintHard();
    if (selection_.HasCase("at once")) PrintAtOnce();
    if (selection_.HasCase("two engines")) PrintTwoModels();
    if (selection_.HasCase("memory")) PrintMemory();
    return failed_ ? 1 : 0;
  }

 private:
  Load LoadFor(const NamedLoad& load) {
    if (!recorded_) {
      const double rate = load.trace == "code" ? kCodeRate : kConversationRate;
      return zeus::testing::SyntheticLoad(11, rate * load.speed, duration_);
    }
    auto recorded = zeus::testing::RecordedLoad(load.trace, load.speed, duration_);
    if (recorded.ok()) return std::move(recorded).value();
    fmt::print(stderr, "llm-attribution: {}\n", recorded.error().message);
    std::exit(1);
  }

  AttributionScore ScoreOf(AttributionCase scenario) {
    scenario.stopwatch = &clock_;
    std::vector<AttributionScore> scores;
    for (scenario.seed = 1; scenario.seed <= selection_.seeds; ++scenario.seed) {
      auto score = zeus::testing::Score(scenario);
      if (!score.ok()) {
        fmt::print(stderr, "llm-attribution: {}\n", score.error().message);
        std::exit(1);
      }
      scores.push_back(std::move(score).value());
    }
    return Combined(scores);
  }

  void PrintBase() {
    fmt::print(
        "| load (mean batch) | requests | whole GPU in flight | equal share of time | by output "
        "tokens | by all tokens | mean J/token | **zeus** | goal | prefill | decode | 95 % "
        "interval holds: all / prefill / decode | conservation: accounts, requests | at once "
        "within "
        "5 % | final after | CPU per token |\n"
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
    std::vector<std::string> laws;
    for (const NamedLoad& load : loads_) {
      const AttributionScore score = ScoreOf({.engines = {LoadFor(load)}});
      fmt::print("| {} ({:.1f}) | {} ", load.name, score.mean_batch, score.settled);
      for (const ErrorSummary& rule : score.rules) fmt::print("| {:.1f} ", 100 * rule.median);
      fmt::print(
          "| **{}** | {:g} / {:g} | {} | {} | {:.1f} / {:.1f} / {:.1f} % | {:.0e}, {:.0e} | {:.1f} "
          "% "
          "| {:.2f} s | {:.2f} us |\n",
          Percent(score.energy), load.goal, load.ninetieth_goal, Percent(score.prefill),
          Percent(score.decode), 100 * score.coverage, 100 * score.prefill_coverage,
          100 * score.decode_coverage, score.conservation, score.requests_conservation,
          100 * score.provisional_within, score.mean_lag.count(), score.microseconds_per_token);
      std::fflush(stdout);
      laws.push_back(fmt::format("{}: {}", load.name, score.law));
      failed_ = failed_ || score.settled != score.requests;
      failed_ = failed_ || std::abs(score.requests_conservation) > kConservationGoal;
    }
    fmt::print("\nThe laws as learned at the end:\n");
    for (const std::string& law : laws) fmt::print("  {}\n", law);
  }

  void PrintHeads() const {
    fmt::print("\n\n| case |");
    for (const NamedLoad& load : loads_) fmt::print(" {} |", load.name);
    fmt::print("\n|---|");
    for (std::size_t i = 0; i < loads_.size(); ++i) fmt::print("---|");
    fmt::print("\n");
  }

  void PrintHard() {
    if (std::none_of(kHardCases.begin(), kHardCases.end(),
                     [&](const HardCase& hard) { return selection_.HasCase(hard.name); }))
      return;
    fmt::print("\nHard cases, goal {:g} % median:", kHardGoal);
    PrintHeads();
    for (const HardCase& hard : kHardCases) {
      if (!selection_.HasCase(hard.name)) continue;
      fmt::print("| {} |", hard.name);
      for (const NamedLoad& load : loads_) {
        AttributionCase scenario{.engines = {LoadFor(load)}};
        hard.apply(scenario);
        const AttributionScore score = ScoreOf(scenario);
        fmt::print(" {}, holds {:.0f} %", Percent(score.energy), 100 * score.coverage);
        if (scenario.stranger > zeus::Watts(0))
          fmt::print(", stranger {:+.1f} %", 100 * (score.other / score.stranger - 1));
        fmt::print(" |");
        std::fflush(stdout);
      }
      fmt::print("\n");
    }
  }

  // Figures at the end of a response against the final ones, and the sums, where the energy of an
  // interval is told late.
  void PrintAtOnce() {
    fmt::print(
        "\nAt once, for energy that is told late: requests longer than 1 s within 5 % of their "
        "final "
        "figure (goal 95 %), stated 95 % interval holds it for, largest ratio, conservation of the "
        "requests:");
    PrintHeads();
    for (const HardCase& late : kLateCases) {
      fmt::print("| {} |", late.name);
      for (const NamedLoad& load : loads_) {
        AttributionCase scenario{.engines = {LoadFor(load)}};
        late.apply(scenario);
        const AttributionScore score = ScoreOf(scenario);
        fmt::print(" {:.1f} %, holds {:.0f} %, x{:.2f}, {:.0e}; error {} |",
                   100 * score.provisional_within, 100 * score.provisional_coverage,
                   score.provisional_worst, score.requests_conservation, Percent(score.energy));
        std::fflush(stdout);
        failed_ = failed_ || std::abs(score.requests_conservation) > kConservationGoal;
      }
      fmt::print("\n");
    }
  }

  void PrintTwoModels() {
    fmt::print("\nTwo engines on one GPU (each with the load at half speed):\n\n");
    for (const NamedLoad& load : loads_) {
      NamedLoad half = load;
      half.speed /= 2;
      NamedLoad other = half;
      other.trace = half.trace == "code" ? "conversation" : "code";
      const AttributionScore score = ScoreOf({.engines = {LoadFor(half), LoadFor(other)}});
      fmt::print("{}: {}, holds {:.0f} %, conservation {:.0e}\n", load.name, Percent(score.energy),
                 100 * score.coverage, score.conservation);
      std::fflush(stdout);
    }
  }

  // Many short requests through one attribution: what it holds must not grow with their number.
  void PrintMemory() {
    fmt::print("\n{} requests, resident MB after each tenth of them:", kManyRequests);
    zeus::InferenceAttribution attribution;
    attribution.AddEngine({.name = "engine"});
    zeus::Random random(1);
    std::deque<std::pair<zeus::InferenceRequestId, unsigned>> running;  // With tokens to come.
    zeus::InferenceRequestId started = 0;
    double joules = 0;
    std::size_t settled = 0;
    const double begin = clock_.Now().time_since_epoch().count();
    for (std::uint64_t iteration = 1; settled < kManyRequests && iteration < kManyRequests;
         ++iteration) {
      const zeus::TimePoint now{Seconds(0.01 * static_cast<double>(iteration))};
      while (running.size() < kRunningRequests && started < kManyRequests) {
        attribution.RequestArrived(++started, {.time = now, .prompt_bytes = 1000});
        running.emplace_back(started, 1 + static_cast<unsigned>(random.Below(9)));
        if (started % (kManyRequests / 10) == 0)
          fmt::print(" {:.1f}", static_cast<double>(ResidentBytes()) / 1e6);
      }
      for (auto& [id, left] : running) attribution.TokensArrived(id, now);
      std::erase_if(running, [&](auto& request) {
        if (--request.second > 0) return false;
        attribution.RequestEnded(request.first, now, zeus::RequestOutcome::kCompleted,
                                 {.prompt = 250});
        return true;
      });
      joules += 5 * random.Uniform(0.9, 1.1);
      if (iteration % 10 != 0) continue;
      attribution.EnergyMeasured(now, zeus::Joules(joules), zeus::Joules(0.01));
      joules = 0;
      settled += attribution.TakeSettled().size();
    }
    const double took = clock_.Now().time_since_epoch().count() - begin;
    fmt::print("; {} of them final; {:.1f} us of CPU time each\n", settled,
               1e6 * took / kManyRequests);
  }

  CpuClock clock_;
  Seconds duration_;
  Selection selection_;
  std::vector<NamedLoad> loads_;
  bool recorded_;
  bool failed_ = false;
};

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::strtod(argv[1], nullptr) : 300;
  if (!(seconds >= 10)) {
    fmt::print(stderr, "llm-attribution: replay at least 10 seconds, not \"{}\"\n", argv[1]);
    return 2;
  }
  Selection selection;
  if (argc > 2) selection.load = argv[2];
  if (argc > 3) selection.hard_case = argv[3];
  if (argc > 4) selection.seeds = std::max(1ULL, std::strtoull(argv[4], nullptr, 10));
  return Program(Seconds(seconds), selection).Run();
}
