#include "apps/zeus/train/slurm_launch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "apps/zeus/terminal.h"
#include "zeus/base/clock.h"
#include "zeus/base/file.h"
#include "zeus/base/own_program.h"
#include "zeus/process/signal_watch.h"
#include "zeus/session/slurm_queue.h"

namespace zeus::cli {
namespace {

constexpr Seconds kShortestPause{1};
constexpr Seconds kLongestPause{10};

// Options with a value, and without, that are for this process alone.
constexpr std::array<std::string_view, 7> kValued = {
    "--slurm-options", "--at-once", "--slurm-retries", "--recurrences",
    "--baseline",      "--json",    "--html"};
constexpr std::array<std::string_view, 2> kFlags = {"--slurm", "--slurm-no-wait"};

Result<std::vector<std::string>> OwnWords() {
  ZEUS_TRY(std::vector<std::string> words, OwnCommandLine());
  const auto program = OwnProgram();
  if (program.ok() && !words.empty()) words.front() = program.value().string();
  return words;
}

// A file of SQLite is for one machine.
Status CheckSource(const JobSourceFlags& source) {
  const bool server =
      !source.server.empty() || !ProcessEnvironment()("ZEUS_SERVER").value_or("").empty();
  if (server || source.database.starts_with("postgres")) return Ok();
  return InvalidArgument(
      "--slurm needs a place for the job that all nodes reach: --server http://host:8000 (zeus "
      "serve), or --database postgresql://…");
}

class Launch {
 public:
  Launch(const TrainInvocation& invocation, SignalWatch& signals)
      : invocation_(invocation), signals_(signals) {}

  Status Submit();
  // The signal that ended the waiting.
  std::optional<int> Wait();
  const SlurmOutcome& outcome() const { return outcome_; }

 private:
  Status SubmitPart(unsigned tasks, unsigned at_once, const std::vector<std::string>& added);
  void Say(const std::string& sentence) const {
    if (!invocation_.quiet) Show(stderr, fmt::format("zeus: {}\n", sentence));
  }
  void Note(const std::map<std::string, std::string>& states);

  const TrainInvocation& invocation_;
  SignalWatch& signals_;
  SlurmQueue queue_;
  std::vector<std::string> arrays_;
  std::map<std::string, std::string> known_;  // The latest state of each task.
  SlurmOutcome outcome_;
};

Status Launch::SubmitPart(unsigned tasks, unsigned at_once, const std::vector<std::string>& added) {
  if (tasks == 0) return Ok();
  ZEUS_TRY(std::vector<std::string> words, OwnWords());
  const TrainOptions& session = invocation_.session;
  ZEUS_TRY(const std::vector<std::string> arrays,
           queue_.Submit({.name = "zeus-" + session.spec.id,
                          .command = TaskWords(std::move(words), session.command.size(), added),
                          .tasks = tasks,
                          .at_once = at_once,
                          .retries = invocation_.slurm.retries,
                          .options = invocation_.slurm.options}));
  for (const std::string& array : arrays) arrays_.push_back(array);
  Say(fmt::format("Slurm has {} task{} of {} in array {}", tasks, tasks == 1 ? "" : "s",
                  session.spec.id, arrays.front()));
  return Ok();
}

Status Launch::Submit() {
  // Undisturbed runs of the default first, one after the other, as on one machine.
  ZEUS_RETURN_IF_ERROR(
      SubmitPart(invocation_.session.baseline, 1, {"--recurrences", "0", "--baseline", "1"}));
  return SubmitPart(invocation_.session.recurrences, invocation_.slurm.at_once,
                    {"--recurrences", "1"});
}

void Launch::Note(const std::map<std::string, std::string>& states) {
  for (const auto& [task, state] : states) known_[task] = state;
  // Slurm has forgotten the others, so they have ended; how is known from the last look at them.
  for (auto& [task, state] : known_)
    if (!states.contains(task) && IsUnderWay(state)) state = "UNKNOWN";
}

std::optional<int> Launch::Wait() {
  Seconds pause = kShortestPause;
  bool away = false;
  while (true) {
    const auto states = queue_.States(arrays_);
    if (states.ok()) {
      Note(states.value());
      const bool all_ended = std::ranges::none_of(
          states.value(), [](const auto& entry) { return IsUnderWay(entry.second); });
      if (all_ended) break;
    } else if (!std::exchange(away, true)) {
      Say(fmt::format("Slurm does not answer, and is asked again: {}", states.error().message));
    }
    const auto signal = signals_.NextWithin(pause);
    if (signal && AsksToEnd(static_cast<int>(signal->ssi_signo))) {
      Say(fmt::format("the jobs go on: scancel {} ends them", fmt::join(arrays_, " ")));
      return static_cast<int>(signal->ssi_signo);
    }
    pause = std::min(pause * 1.5, kLongestPause);
  }
  outcome_ = OutcomeOf(known_);
  for (const auto& [task, state] : known_)
    if (state != "COMPLETED" && state != "CANCELLED")
      Say(fmt::format("task {} ended as {}", task, state));
  Say(fmt::format("{} of {} tasks have ended well", outcome_.completed,
                  outcome_.completed + outcome_.failed));
  return std::nullopt;
}

}  // namespace

std::vector<std::string> TaskWords(std::vector<std::string> words, std::size_t command,
                                   const std::vector<std::string>& added) {
  const std::size_t own = words.size() - std::min(command, words.size());
  std::vector<std::string> kept;
  bool dashes = false;
  for (std::size_t i = 0; i < own; ++i) {
    const std::string& word = words[i];
    dashes = word == "--";
    if (dashes) break;
    const std::string_view name = std::string_view(word).substr(0, word.find('='));
    if (std::ranges::find(kFlags, name) != kFlags.end()) continue;
    if (std::ranges::find(kValued, name) != kValued.end()) {
      if (name.size() == word.size()) ++i;  // Its value is the next word.
      continue;
    }
    kept.push_back(word);
  }
  kept.insert(kept.end(), added.begin(), added.end());
  kept.emplace_back("--");
  kept.insert(kept.end(), words.begin() + static_cast<std::ptrdiff_t>(own), words.end());
  return kept;
}

Result<int> LaunchOnSlurm(const TrainInvocation& invocation, const std::function<Status()>& show) {
  constexpr int kSignalExitCode = 128;
  ZEUS_RETURN_IF_ERROR(CheckSource(invocation.source));
  ZEUS_TRY(const std::unique_ptr<SignalWatch> signals, SignalWatch::Start());
  Launch launch(invocation, *signals);
  ZEUS_RETURN_IF_ERROR(launch.Submit());
  if (!invocation.slurm.wait) return 0;
  if (const auto signal = launch.Wait()) return kSignalExitCode + *signal;
  ZEUS_RETURN_IF_ERROR(show());
  return launch.outcome().failed == 0 ? 0 : 1;
}

}  // namespace zeus::cli
