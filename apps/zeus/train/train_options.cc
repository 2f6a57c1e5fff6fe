#include "apps/zeus/train/train_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "apps/zeus/lists.h"
#include "apps/zeus/numbers.h"
#include "apps/zeus/profile/profile_options.h"
#include "zeus/base/text.h"
#include "zeus/session/train.h"
#include "zeus/training/profile_folder.h"

namespace zeus::cli {
namespace {

constexpr std::uint64_t kMostRecurrences = 1'000'000;
constexpr double kMostWatts = 1e5;
constexpr double kLargestLearningRate = 1000;  // Above all that optimisers are run with.
constexpr Seconds kShortestSlice{0.1};
constexpr Seconds kShortestLease{1};

// Less would give up on servers that are only busy.
constexpr Seconds kShortestAnswer{1};

void AddRunFlags(Verb verb, TrainFlags& flags) {
  verb.AddOption("--recurrences", flags.recurrences, "Run the job so often, one after the other")
      .Check(WholeNumberBetween(0, kMostRecurrences))
      .ShowDefault();
  verb.AddOption("--baseline", flags.baseline,
                 "Before that, run the default so often as without Zeus: default batch size, power "
                 "limit as found, never stopped early. Savings are measured against these runs")
      .Check(WholeNumberBetween(0, kMostRecurrences));
  verb.AddOption("--tries", flags.tries,
                 "Runs of one recurrence at most, when they do not reach the target")
      .Check(WholeNumberBetween(1, kMostRecurrences))
      .ShowDefault();
  verb.AddOption("--lr", flags.learning_rate,
                 "Learning rate of the default batch size; {lr} is that of the one in use")
      .Check(NumberBetween(0, kLargestLearningRate));
  verb.AddOption("--lr-scaling", flags.scaling,
                 "How the learning rate follows the batch size: sqrt (Adam and its relatives), "
                 "linear (SGD) or none")
      .Check(OneOf({"sqrt", "linear", "none"}))
      .ShowDefault();
  verb.AddFlag("--no-placeholder", flags.no_placeholder,
               "The command reads ZEUS_BATCH_SIZE: it needs no {batch_size}");
  verb.AddOption("--grace", flags.grace, "Between SIGTERM and SIGKILL for a run that is stopped")
      .ShowDefault();
  verb.AddFlag("--let-finish", flags.let_finish,
               "When the target is reached wait for the command's own end");
  verb.AddOption("--lease", flags.lease,
                 "A run that was not heard of for so long is taken for dead")
      .ShowDefault();
  verb.AddOption("--server-wait", flags.server_wait,
                 "How long a run waits at its start for a server or database that does not answer; "
                 "then it begins without, and tells it later")
      .ShowDefault();
}

void AddMetricFlags(Verb verb, TrainFlags& flags) {
  verb.AddOption("--metric-regex", flags.metric_regex,
                 "Regular expression on the command's output: its group is the metric, each "
                 "match is an epoch, as in 'val_acc=([0-9.]+)'")
      .Check(NotEmpty());
  verb.AddOption("--metric-file", flags.metric_file,
                 "Or: the command writes a line of JSON per epoch to this file, as in "
                 "{\"metric\": 0.93}. Without either it reports to the socket "
                 "ZEUS_REPORT_SOCKET")
      .Check(NotEmpty());
}

void AddLimitFlags(Verb verb, TrainFlags& flags) {
  verb.AddOption("--gpus", flags.gpus, "The command uses only these GPUs, as in 0,1")
      .Check(NotEmpty());
  verb.AddOption("--driver-timeout", flags.driver_timeout,
                 "Seconds that drivers may take to find their devices; one that takes longer is "
                 "an error that names its GPU")
      .Check(NumberBetween(0.01, 86400))
      .ShowDefault();
  verb.AddOption("--power-limit", flags.power_limit,
                 "jit: found while the first run with a batch size trains, and kept; observe: "
                 "tried and put back; max: the one that was found, or with --may-raise the "
                 "highest; found: left as it is; or watts")
      .ShowDefault();
  verb.AddOption("--limits", flags.limits, "Power limits to try, as in 250,200,150")
      .Check(NotEmpty());
  verb.AddOption("--stride", flags.stride,
                 "Or from the one that was found down by this many watts (25)")
      .Check(NumberBetween(1, kMostWatts));
  verb.AddFlag("--may-raise", flags.may_raise,
               "Limits above the one that was found may be set, up to what the device allows");
  verb.AddOption("--progress-regex,--progress", flags.progress,
                 "Regular expression on the command's output that tells its steps, as with zeus "
                 "profile: limits are then tried for a slice of time each, else for an epoch each")
      .Check(NotEmpty());
  verb.AddOption("--slice", flags.slice, "How long each is measured at most: 5s, 500ms, 2min")
      .ShowDefault();
  verb.AddOption("--warmup", flags.warmup, "How long each is left alone before that").ShowDefault();
  verb.AddOption("--profiles", flags.profiles, "Folder of what was learned about power limits")
      .Check(NotEmpty());
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
  } else if (flags.power_limit == "found") {
    plan.mode = LimitMode::kFound;
  } else {
    const auto watts = ParseDouble(flags.power_limit);
    if (!watts.ok() || !(watts.value() > 0 && watts.value() <= kMostWatts))
      return InvalidArgument(
          fmt::format("--power-limit takes jit, observe, max, found or watts, not {}",
                      Quote(flags.power_limit)));
    plan.mode = LimitMode::kFixed;
    plan.fixed = Watts(watts.value());
  }
  if (!flags.limits.empty()) {
    ZEUS_TRY(plan.settings, ParseLimits(flags.limits, KnobKind::kGpuPowerLimit));
  }
  plan.stride = Watts(flags.stride.value_or(0));
  plan.ceiling = flags.may_raise ? Ceiling::kOfDevice : Ceiling::kAsFound;
  ZEUS_TRY(plan.slice, ParseDuration(flags.slice, "--slice"));
  ZEUS_TRY(plan.warmup, ParseDuration(flags.warmup, "--warmup"));
  if (plan.slice < kShortestSlice)
    return InvalidArgument("--slice must be at least 100ms: sensors show nothing new in less");
  if (!flags.profiles.empty()) {
    plan.profiles = flags.profiles;
  } else if (const auto folder = ProfileFolder::OfUser(ProcessEnvironment())) {
    plan.profiles = *folder;
  }
  return Ok();
}

Status CheckOutputs(const TrainFlags& flags) {
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

void AddTrainFlags(Verb verb, TrainFlags& flags) {
  AddJobFlags(verb, flags.job);
  AddMetricFlags(verb, flags);
  AddRunFlags(verb, flags);
  AddLimitFlags(verb, flags);
  AddJobSourceFlags(verb, flags.source);
  verb.AddOption("--json", flags.json, "Write the result to this file (- for standard output)")
      .Check(NotEmpty());
  verb.AddOption("--html", flags.html, "Write a report to this file").Check(NotEmpty());
  AddCarbonOptions(verb, flags.carbon);
  verb.AddFlag("--quiet", flags.quiet, "Nothing on standard error but errors");
}

Result<TrainInvocation> Interpret(const TrainFlags& flags, std::vector<std::string> command) {
  TrainInvocation invocation;
  TrainOptions& options = invocation.session;
  options.command = std::move(command);
  ZEUS_TRY(options.spec, Interpret(flags.job));
  invocation.source = flags.source;
  options.recurrences = flags.recurrences;
  options.baseline = flags.baseline;
  if (options.recurrences == 0 && options.baseline == 0)
    return InvalidArgument("--recurrences 0 leaves nothing to run: it belongs to --baseline");
  invocation.carbon = flags.carbon;
  options.tries = flags.tries;
  ZEUS_TRY(options.lease, ParseDuration(flags.lease, "--lease"));
  if (options.lease < kShortestLease)
    return InvalidArgument("--lease must be at least 1s: heartbeats come three times as often");
  ZEUS_TRY(options.server_wait, ParseDuration(flags.server_wait, "--server-wait"));
  invocation.source.retry = kRetryInTraining;
  invocation.source.retry.answer_timeout =
      std::clamp(options.server_wait, kShortestAnswer, kRetryForAPerson.answer_timeout);
  if (!flags.metric_regex.empty()) {
    auto metric = MetricPattern::Compile(flags.metric_regex);
    if (!metric.ok()) return InvalidArgument("--" + metric.error().message);
    options.metric = std::move(metric).value();
  }
  options.metric_file = flags.metric_file;
  options.no_placeholder = flags.no_placeholder;
  options.learning_rate = flags.learning_rate;
  options.scaling = ScalingOf(flags.scaling);
  if (!flags.gpus.empty()) {
    ZEUS_TRY(invocation.gpus, ParseGpus(flags.gpus));
  }
  invocation.driver_timeout = Seconds(flags.driver_timeout);
  ZEUS_RETURN_IF_ERROR(InterpretLimit(flags, options.limit));
  if (!flags.progress.empty()) {
    auto progress = ProgressPattern::Compile(flags.progress);
    if (!progress.ok()) return InvalidArgument("--" + progress.error().message);
    options.progress = std::move(progress).value();
  }
  ZEUS_TRY(options.grace, ParseDuration(flags.grace, "--grace"));
  options.let_finish = flags.let_finish;
  invocation.json = flags.json;
  invocation.html = flags.html;
  invocation.quiet = flags.quiet;
  ZEUS_RETURN_IF_ERROR(CheckTrainOptions(options));
  ZEUS_RETURN_IF_ERROR(CheckOutputs(flags));
  return invocation;
}

}  // namespace zeus::cli
