// Scores the governor in closed loop with the simulated inference engine, in virtual time: the
// energy and the missed targets at the highest clock, at the best fixed clock in hindsight, and
// with the governor. Prints the table of docs/llm-governor.md. Llama-3.1-8B on one H100, arrivals
// and lengths of the Azure traces.
//
//   llm-governor [MINUTES]   simulated time of each load, 60 by default
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "tests/governor_loop.h"
#include "zeus/base/text.h"

namespace {

using namespace zeus;
using namespace zeus::testing;

// Where the highest clock keeps its percentile, this share of requests more may be late.
constexpr double kMoreMisses = 0.01;
// Misses of a load that the highest clock cannot serve scatter by this much from one clock to the
// next, by chance.
constexpr double kScatter = 0.001;

// Lower clocks than one that misses this much more are not tried.
constexpr double kFarTooMuch = 0.15;
// Where the highest clock misses this much, a few clocks below it show that no other is better.
constexpr double kSaturated = 0.5;
constexpr std::size_t kTriedIfSaturated = 5;

struct Load {
  std::string name;
  RequestLoad requests;
};

struct Run {
  Hertz clock{};
  ServedLoad served{};
};

const std::vector<ServiceTargets>& AllTargets() {
  static const std::vector<ServiceTargets> targets = {{.ttft = Seconds(2), .tpot = Seconds(0.1)},
                                                      {.ttft = Seconds(1), .tpot = Seconds(0.05)}};
  return targets;
}

ServedLoad MustServe(const RequestLoad& load, const LoopOptions& options) {
  auto served = Serve(load, options);
  if (!served.ok()) {
    fmt::print(stderr, "{}\n", served.error().message);
    std::exit(1);
  }
  return std::move(served).value();
}

// The highest clock first, down to clocks that miss far too much.
std::vector<Run> ServeAtFixedClocks(const RequestLoad& load) {
  constexpr std::size_t kStride = 3;  // 45 MHz.
  std::vector<Hertz> clocks = EngineClocks("H100");
  std::reverse(clocks.begin(), clocks.end());
  std::vector<Run> runs;
  for (std::size_t i = 0; i < clocks.size(); i += kStride) {
    runs.push_back({.clock = clocks[i], .served = MustServe(load, {.fixed = clocks[i]})});
    const double full = MissedShare(runs.front().served, AllTargets().front());
    const double now = MissedShare(runs.back().served, AllTargets().front());
    if (now > full + kFarTooMuch || (full > kSaturated && runs.size() >= kTriedIfSaturated)) break;
  }
  return runs;
}

double MissesAllowed(double at_full) {
  const double kept = 1.0 - AllTargets().front().ttft_percentile;
  return at_full > kept ? at_full : at_full + kMoreMisses;
}

const Run& BestFixed(const std::vector<Run>& runs, const ServiceTargets& targets) {
  const double allowed = MissesAllowed(MissedShare(runs.front().served, targets));
  const Run* best = &runs.front();
  for (const Run& run : runs)
    if (MissedShare(run.served, targets) <= allowed && run.served.energy < best->served.energy)
      best = &run;
  return *best;
}

std::string Percent(double share) { return fmt::format("{:.1f} %", 100 * share); }
std::string Misses(double share) { return fmt::format("{:.2f} %", 100 * share); }

void PrintRow(const Load& load, const std::vector<Run>& runs, const ServiceTargets& targets) {
  const ServedLoad& full = runs.front().served;
  const Run& best = BestFixed(runs, targets);
  const ServedLoad governed =
      MustServe(load.requests, {.governor = GovernorOptions{.targets = targets, .clocks = {}}});
  const ServedLoad observed = MustServe(
      load.requests, {.governor = GovernorOptions{
                          .targets = targets, .clocks = {}, .mode = GovernorMode::kObserver}});
  const double full_misses = MissedShare(full, targets);
  const double misses = MissedShare(governed, targets);
  const double best_saving = 1.0 - best.served.energy / full.energy;
  const double saving = 1.0 - governed.energy / full.energy;
  const bool keeps_misses =
      misses <= MissesAllowed(full_misses) + (full_misses > 0.1 ? kScatter : 0.0);
  fmt::print(
      "| {} | {:g} s / {:g} ms | {:.0f} kJ, {} | {:.0f} MHz: {}, {} | **{}**, {} | {} | {:.0f} | "
      "{} |\n",
      load.name, targets.ttft->count(), targets.tpot->count() * 1e3, full.energy.value() / 1e3,
      Misses(full_misses), best.clock.ToMega(), Percent(best_saving),
      Misses(MissedShare(best.served, targets)), Percent(saving), Misses(misses),
      Percent(observed.governor->saved / observed.governor->used),
      governed.changes / ((load.requests.back().arrival.count() + 60) / 60),
      saving >= 0.9 * best_saving - 1e-3 && keeps_misses ? "yes" : "no");
  std::fflush(stdout);
}

std::vector<Load> Loads(const RequestLoad& conversation, const RequestLoad& code, Seconds length) {
  std::vector<Load> loads;
  for (const double speed : {0.2, 0.5, 1.0, 1.5})
    loads.push_back({.name = fmt::format("conversation x{:g}", speed),
                     .requests = AtSpeed(conversation, speed, length)});
  loads.push_back({.name = "code x1", .requests = AtSpeed(code, 1.0, length)});
  loads.push_back(
      {.name = "day, x0.15 to x1.6", .requests = AlongDay(conversation, 0.15, 1.6, length)});
  loads.push_back(
      {.name = "saturated: conversation x3", .requests = AtSpeed(conversation, 3.0, length)});
  return loads;
}

// The same governor, with no constant changed, under other conditions than those it was made for.
void PrintOtherConditions(const RequestLoad& conversation, Seconds length) {
  struct Condition {
    const char* name;
    double speed;
    LoopOptions options;
  };
  const std::vector<Condition> conditions = {
      {"prompt counts wrong by 15 % (one standard deviation)", 1.0, {.prompt_error = 0.15}},
      {"prompt counts wrong by 50 %", 1.0, {.prompt_error = 0.5}},
      {"the clock follows 50 ms late", 1.0, {.lock_delay = Seconds(0.05)}},
      {"decisions every second", 1.0, {.period = Seconds(1)}},
      {"Qwen3-14B", 0.5, {.model = "qwen3-14b"}},
      {"Qwen3-30B-A3B, mixture of experts", 0.5, {.model = "qwen3-30b-a3b"}},
      {"Llama-3.1-70B on four H100", 0.3, {.model = "llama-3.1-70b", .gpus = 4}},
      {"Llama-3.1-8B on an A100", 0.3, {.gpu = "A100"}},
  };
  const ServiceTargets& targets = AllTargets().back();
  fmt::print("\nConversation under other conditions, {}:\n\n", ToText(targets));
  fmt::print(
      "| condition | load | misses at the highest clock | saving | misses "
      "|\n|---|---|---|---|---|\n");
  for (const Condition& condition : conditions) {
    const RequestLoad load = AtSpeed(conversation, condition.speed, length);
    const ServedLoad full = MustServe(load, condition.options);
    LoopOptions options = condition.options;
    options.governor = GovernorOptions{.targets = targets, .clocks = {}};
    const ServedLoad governed = MustServe(load, options);
    fmt::print("| {} | x{:g} | {} | {} | {} |\n", condition.name, condition.speed,
               Misses(MissedShare(full, targets)), Percent(1.0 - governed.energy / full.energy),
               Misses(MissedShare(governed, targets)));
    std::fflush(stdout);
  }
}

int Bench(double minutes) {
  const auto conversation = ReadRequestTrace(LlmDataFolder() / "azure_llm_2023_conversation.csv");
  const auto code = ReadRequestTrace(LlmDataFolder() / "azure_llm_2023_code.csv");
  if (!conversation.ok() || !code.ok()) {
    fmt::print(stderr,
               "skipped: the Azure traces are not in {} (ZEUS_LLM_DATA_DIR names another folder)\n",
               LlmDataFolder().string());
    return 0;
  }
  const Seconds length(minutes * 60);
  fmt::print(
      "Best fixed clock: the one of least energy, in steps of 45 MHz, with at most 1 point more\n"
      "misses than the highest clock; no more where that misses more than 10 %.\n\n");
  fmt::print(
      "| load | TTFT / TPOT | highest clock | best fixed clock | governor | observer says | "
      "changes per min | goal met |\n|---|---|---|---|---|---|---|---|\n");
  for (const Load& load : Loads(conversation.value(), code.value(), length)) {
    const std::vector<Run> runs = ServeAtFixedClocks(load.requests);
    for (const ServiceTargets& targets : AllTargets()) PrintRow(load, runs, targets);
  }
  PrintOtherConditions(conversation.value(), length);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  double minutes = 60;
  if (argc > 1) {
    const auto given = zeus::ParseDouble(argv[1]);
    if (!given.ok() || !(given.value() >= 1)) {
      fmt::print(stderr, "usage: {} [MINUTES], at least 1\n", argv[0]);
      return 2;
    }
    minutes = given.value();
  }
  return Bench(minutes);
}
