#include "apps/zeus/train/train_options.h"

#include <fmt/format.h>

#include <cstdlib>
#include <utility>

#include "apps/zeus/lists.h"
#include "apps/zeus/numbers.h"
#include "apps/zeus/profile/profile_options.h"
#include "zeus/base/text.h"
#include "zeus/training/profile_folder.h"

namespace zeus::cli {
namespace {

constexpr std::uint64_t kMostRecurrences = 1'000'000;
constexpr double kMostWatts = 1e5;
constexpr Seconds kShortestSlice{0.1};
constexpr Seconds kShortestLease{1};

void AddRunFlags(CLI::App& verb, TrainFlags& flags) {
  verb.add_option("--recurrences", flags.recurrences, "Run the job so often, one after the other")
      ->check(WholeNumberBetween(1, kMostRecurrences))
      ->capture_default_str();
  verb.add_option("--tries", flags.tries,
                  "Runs of one recurrence at most, when they do not reach the target")
      ->check(WholeNumberBetween(1, kMostRecurrences))
      ->capture_default_str();
  verb.add_option("--lr", flags.learning_rate,
                  "Learning rate of the default batch size; {lr} is that of the one in use")
      ->check(NumberBetween(0, kMostWatts));
  verb.add_option("--lr-scaling", flags.scaling,
                  "How the learning rate follows the batch size: sqrt (Adam and its relatives), "
                  "linear (SGD) or none")
      ->check(CLI::IsMember({"sqrt", "linear", "none"}))
      ->capture_default_str();
  verb.add_flag("--no-placeholder", flags.no_placeholder,
                "The command reads ZEUS_BATCH_SIZE: it needs no {batch_size}");
  verb.add_option("--grace", flags.grace, "Between SIGTERM and SIGKILL for a run that is stopped")
      ->capture_default_str();
  verb.add_flag("--let-finish", flags.let_finish,
                "When the target is reached wait for the command's own end");
  verb.add_option("--lease", flags.lease,
                  "A run that was not heard of for so long is taken for dead")
      ->capture_default_str();
}

void AddMetricFlags(CLI::App& verb, TrainFlags& flags) {
  verb.add_option("--metric-regex", flags.metric_regex,
                  "Regular expression on the command's output: its group is the metric, each "
                  "match is an epoch, as in 'val_acc=([0-9.]+)'")
      ->check(NotEmpty());
  verb.add_option("--metric-file", flags.metric_file,
                  "Or: the command writes a line of JSON per epoch to this file, as in "
                  "{\"metric\": 0.93}. Without either it reports to the socket "
                  "ZEUS_REPORT_SOCKET")
      ->check(NotEmpty());
}

void AddLimitFlags(CLI::App& verb, TrainFlags& flags) {
  verb.add_option("--gpus", flags.gpus, "The command uses only these GPUs, as in 0,1")
      ->check(NotEmpty());
  verb.add_option("--power-limit", flags.power_limit,
                  "jit: found while the first run with a batch size trains, and kept; observe: "
                  "tried and put back; max: the highest; or watts")
      ->capture_default_str();
  verb.add_option("--limits", flags.limits, "Power limits to try, as in 250,200,150")
      ->check(NotEmpty());
  verb.add_option("--stride", flags.stride, "Or from the highest down by this many watts (25)")
      ->check(NumberBetween(1, kMostWatts));
  verb.add_option("--progress-regex,--progress", flags.progress,
                  "Regular expression on the command's output that tells its steps, as with zeus "
                  "profile: limits are then tried for a slice of time each, else for an epoch each")
      ->check(NotEmpty());
  verb.add_option("--slice", flags.slice, "How long each is measured: 5s, 500ms, 2min")
      ->capture_default_str();
  verb.add_option("--warmup", flags.warmup, "How long each is left alone before that")
      ->capture_default_str();
  verb.add_option("--profiles", flags.profiles, "Folder of what was learned about power limits")
      ->check(NotEmpty());
}

Status InterpretLimit(const TrainFlags& flags, LimitPlan& plan) {
  if (!flags.limits.empty() && flags.stride)
    return InvalidArgument("--limits and --stride both say what to try: give one of them");
  if (flags.power_limit == "jit") {
    plan.mode = LimitMode::kJit;
  } else if (flags.power_limit == "observe") {
    plan.mode = LimitMode::kObserve;
  } else if (flags.power_limit == "max") {
    plan.mode = LimitMode::kMax;
  } else {
    const auto watts = ParseDouble(flags.power_limit);
    if (!watts.ok() || !(watts.value() > 0 && watts.value() <= kMostWatts))
      return InvalidArgument(fmt::format("--power-limit takes jit, observe, max or watts, not {}",
                                         Quote(flags.power_limit)));
    plan.mode = LimitMode::kFixed;
    plan.fixed = Watts(watts.value());
  }
  if (!flags.limits.empty()) {
    ZEUS_TRY(plan.settings, ParseLimits(flags.limits, KnobKind::kGpuPowerLimit));
  }
  plan.stride = Watts(flags.stride.value_or(0));
  ZEUS_TRY(plan.slices.slice, ParseDuration(flags.slice, "--slice"));
  ZEUS_TRY(plan.slices.warmup, ParseDuration(flags.warmup, "--warmup"));
  if (plan.slices.slice < kShortestSlice)
    return InvalidArgument("--slice must be at least 100ms: sensors show nothing new in less");
  if (!flags.profiles.empty()) {
    plan.profiles = flags.profiles;
  } else if (const auto folder = ProfileFolder::OfUser(ProcessEnvironment())) {
    plan.profiles = *folder;
  }
  return Ok();
}

Status CheckCommand(const TrainOptions& options, const TrainFlags& flags) {
  if (!Contains(options.command, "batch_size") && !flags.no_placeholder &&
      options.spec.batch_sizes.size() > 1)
    return InvalidArgument(
        "the command does not contain {batch_size}: put it where the batch size belongs, or say "
        "--no-placeholder if it reads ZEUS_BATCH_SIZE");
  if (Contains(options.command, "lr") && !options.learning_rate)
    return InvalidArgument(
        "the command contains {lr}: say with --lr what it is for the default batch size");
  if (!flags.metric_regex.empty() && !flags.metric_file.empty())
    return InvalidArgument(
        "--metric-regex and --metric-file both tell the metric: give one of them");
  if (!flags.json.empty() && flags.json == flags.html)
    return InvalidArgument(
        fmt::format("--json and --html cannot share the file {}", Quote(flags.json)));
  return Ok();
}

LearningRateScaling ScalingOf(const std::string& text) {
  if (text == "linear") return LearningRateScaling::kLinear;
  return text == "none" ? LearningRateScaling::kNone : LearningRateScaling::kSquareRoot;
}

}  // namespace

void AddTrainFlags(CLI::App& verb, TrainFlags& flags) {
  AddJobFlags(verb, flags.job);
  AddMetricFlags(verb, flags);
  AddRunFlags(verb, flags);
  AddLimitFlags(verb, flags);
  AddJobSourceFlags(verb, flags.source);
  verb.add_option("--json", flags.json, "Write the result to this file (- for standard output)")
      ->check(NotEmpty());
  verb.add_option("--html", flags.html, "Write a report to this file")->check(NotEmpty());
  verb.add_flag("--quiet", flags.quiet, "Nothing on standard error but errors");
}

Result<TrainOptions> Interpret(const TrainFlags& flags, std::vector<std::string> command) {
  TrainOptions options;
  options.command = std::move(command);
  ZEUS_TRY(options.spec, Interpret(flags.job));
  options.source = flags.source;
  options.recurrences = flags.recurrences;
  options.tries = flags.tries;
  ZEUS_TRY(options.lease, ParseDuration(flags.lease, "--lease"));
  if (options.lease < kShortestLease)
    return InvalidArgument("--lease must be at least 1s: heartbeats come three times as often");
  if (!flags.metric_regex.empty()) {
    ZEUS_TRY(options.metric, MetricPattern::Compile(flags.metric_regex));
  }
  options.metric_file = flags.metric_file;
  options.learning_rate = flags.learning_rate;
  options.scaling = ScalingOf(flags.scaling);
  if (!flags.gpus.empty()) {
    ZEUS_TRY(options.gpus, ParseGpus(flags.gpus));
  }
  ZEUS_RETURN_IF_ERROR(InterpretLimit(flags, options.limit));
  if (!flags.progress.empty()) {
    ZEUS_TRY(options.progress, ProgressPattern::Compile(flags.progress));
  }
  ZEUS_TRY(options.grace, ParseDuration(flags.grace, "--grace"));
  options.let_finish = flags.let_finish;
  options.json = flags.json;
  options.html = flags.html;
  options.quiet = flags.quiet;
  ZEUS_RETURN_IF_ERROR(CheckCommand(options, flags));
  return options;
}

}  // namespace zeus::cli
