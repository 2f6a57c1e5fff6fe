#include "apps/zeus/train/train_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "apps/zeus/lists.h"
#include "apps/zeus/numbers.h"
#include "apps/zeus/profile/profile_options.h"
#include "zeus/base/text.h"
#include "zeus/job/epoch_goal.h"
#include "zeus/optimizer/batch_size/policy.h"
#include "zeus/optimizer/power_limit/scheduler_wishes.h"
#include "zeus/session/slurm_queue.h"
#include "zeus/session/train.h"
#include "zeus/training/profile_folder.h"

namespace zeus::cli {
namespace {

constexpr std::uint64_t kLargestBatch = 1'000'000'000;
constexpr std::uint64_t kMostEpochs = 1'000'000'000;
constexpr double kHighestPower = 1e7;
constexpr double kLargestMetric = 1e300;

Result<std::vector<int>> ParseBatchSizes(const std::string& text) {
  std::vector<int> sizes;
  for (const std::string_view part : SplitAtCommas(text)) {
    const auto size = ParseUnsigned(part);
    if (!size.ok() || size.value() < 1 || size.value() > kLargestBatch)
      return InvalidArgument(
          fmt::format("--batch-sizes takes whole numbers as in 32,64,128, not {}", Quote(text)));
    sizes.push_back(static_cast<int>(size.value()));
  }
  std::ranges::sort(sizes);
  if (std::ranges::adjacent_find(sizes) != sizes.end())
    return InvalidArgument(fmt::format("--batch-sizes {} has a size twice", Quote(text)));
  return sizes;
}

Result<std::optional<double>> ParseBeta(const std::string& text) {
  if (text == "none") return std::optional<double>();
  const auto beta = ParseDouble(text);
  if (!beta.ok() || !(beta.value() >= 1 && beta.value() <= 1e6))
    return InvalidArgument(
        fmt::format("--beta takes a factor of at least 1, or none, not {}", Quote(text)));
  return std::optional(beta.value());
}

Result<std::map<std::string, std::string>> ParseLabels(const std::vector<std::string>& texts) {
  std::map<std::string, std::string> labels;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    if (equals == 0 || equals == std::string::npos)
      return InvalidArgument(
          fmt::format("--label takes a name and a value as in team=vision, not {}", Quote(text)));
    labels[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return labels;
}

// A run is done when its metric reaches a target, or after a number of epochs.
Status InterpretGoal(const JobFlags& flags, JobSpec& spec) {
  if (flags.target.has_value() == flags.epochs.has_value())
    return InvalidArgument(
        flags.target
            ? "--target and --epochs both say when a run is done: give one of them"
            : "say when a run is done: --target with the metric that it is to reach, or --epochs "
              "where no target is known");
  if (!flags.epochs) return Ok();
  if (flags.lower_is_better)
    return InvalidArgument("--lower-is-better is about a metric, and --epochs asks for none");
  auto set = SetEpochGoal(spec, *flags.epochs);
  return set.ok() ? Ok() : Status(std::move(set).error().While("--label"));
}

void AddGoalFlags(Verb verb, JobFlags& flags) {
  verb.AddOption("--target", flags.target, "The metric at which a run has reached its aim")
      .Check(NumberBetween(-kLargestMetric, kLargestMetric));
  verb.AddOption("--epochs", flags.epochs,
                 "Or, where no target is known, the epochs of every run: a batch size is then "
                 "judged by the speed and power of its epochs, not by what a model learns in them")
      .Check(WholeNumberBetween(1, kMostEpochs));
  verb.AddFlag("--lower-is-better", flags.lower_is_better, "The metric is a loss or an error");
  verb.AddOption("--eta", flags.eta, "What energy is worth against time: 0 (time) to 1 (energy)")
      .Check(NumberBetween(0, 1))
      .ShowDefault();
  verb.AddOption("--beta", flags.beta,
                 "A run is stopped when it costs so many times the least that reached the "
                 "target; none: never")
      .ShowDefault();
  verb.AddOption("--max-epochs", flags.max_epochs, "A run is stopped after so many epochs")
      .Check(WholeNumberBetween(1, kMostEpochs))
      .ShowDefault();
  verb.AddOption("--deadline", flags.deadline,
                 "A recurrence, all its tries together, is stopped after this long: 90min, 3600s");
}

void AddPolicyFlags(Verb verb, JobFlags& flags) {
  verb.AddOption("--policy", flags.policy,
                 "How batch sizes are chosen: knowledge_gradient, zeus (as in the paper) or "
                 "default (always the default one)")
      .ShowDefault();
  verb.AddOption("--window", flags.window,
                 "Believe only so many of the latest runs, for data that drifts; 0: all")
      .Check(WholeNumberBetween(0, kMostEpochs))
      .ShowDefault();
  verb.AddOption("--seed", flags.seed, "Of the policy's randomness; drawn when it is not given")
      .Check(WholeNumberBetween(0, UINT64_MAX));
  verb.AddOption("--label", flags.labels, "NAME=VALUE to find the job by; may be repeated");
  verb.AddOption("--gpu-model", flags.gpu_model,
                 "Of the GPUs that the command uses; as found when it is not given")
      .Check(NotEmpty());
  verb.AddOption("--max-power", flags.max_power,
                 "Watts that these GPUs may draw together at most; as found when it is not given")
      .Check(NumberBetween(1, kHighestPower));
  verb.AddFlag("--separate-gpu-models", flags.separate_gpu_models,
               "What was learned on one GPU model does not serve the others");
}

}  // namespace

void AddJobFlags(Verb verb, JobFlags& flags) {
  verb.AddOption("--job", flags.id, "Name of the job: its runs learn from each other")
      .Check(NotEmpty())
      .Required();
  verb.AddOption("--batch-sizes", flags.batch_sizes, "What to choose from, as in 32,64,128,256")
      .Check(NotEmpty())
      .Required();
  verb.AddOption("--default", flags.default_batch_size,
                 "The batch size one would use without Zeus; the first run does")
      .Check(WholeNumberBetween(1, kLargestBatch))
      .Required();
  AddGoalFlags(verb, flags);
  AddPolicyFlags(verb, flags);
}

Result<JobSpec> Interpret(const JobFlags& flags) {
  JobSpec spec;
  spec.id = flags.id;
  ZEUS_TRY(spec.batch_sizes, ParseBatchSizes(flags.batch_sizes));
  spec.default_batch_size = flags.default_batch_size;
  if (std::ranges::find(spec.batch_sizes, spec.default_batch_size) == spec.batch_sizes.end())
    return InvalidArgument(fmt::format("--default {} is not among --batch-sizes {}",
                                       spec.default_batch_size, flags.batch_sizes));
  spec.target_metric = flags.target.value_or(0);
  spec.higher_is_better = !flags.lower_is_better;
  spec.eta = flags.eta;
  ZEUS_TRY(spec.beta, ParseBeta(flags.beta));
  spec.max_epochs = flags.max_epochs;
  const std::vector<std::string> policies = PolicyNames();
  if (std::ranges::find(policies, flags.policy) == policies.end())
    return InvalidArgument(
        fmt::format("--policy takes {}, not {}", fmt::join(policies, ", "), Quote(flags.policy)));
  spec.policy = flags.policy;
  spec.window = flags.window;
  spec.seed = flags.seed;
  if (!flags.deadline.empty()) {
    ZEUS_TRY(spec.deadline, ParseDuration(flags.deadline, "--deadline"));
  }
  ZEUS_TRY(spec.labels, ParseLabels(flags.labels));
  ZEUS_RETURN_IF_ERROR(InterpretGoal(flags, spec));
  spec.gpu_model = flags.gpu_model;
  if (flags.max_power) spec.max_power = Watts(*flags.max_power);
  spec.translate_gpu_models = !flags.separate_gpu_models;
  return spec;
}

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
  verb.AddOption("--max-slowdown", flags.max_slowdown,
                 "The best limit takes at most so many times as long, as in 1.05; also from "
                 "ZEUS_MAX_SLOWDOWN, which srun --zeus-max-slowdown sets")
      .Check(NumberBetween(1, 1000));
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

void AddSlurmFlags(Verb verb, TrainFlags& flags) {
  constexpr std::uint64_t kMostRetries = 100;
  verb.AddFlag("--slurm", flags.slurm,
               "Submit the recurrences to Slurm, wait for them and show what was learned; each "
               "chooses its batch size when it begins. Needs --server or PostgreSQL");
  verb.AddOption("--slurm-options", flags.slurm_options,
                 "For sbatch, as in '--partition=gpu --gres=gpu:1 --time=2:00:00'");
  verb.AddOption("--at-once", flags.at_once,
                 "Recurrences that Slurm may run at the same time; 0: as many as there is room for")
      .Check(WholeNumberBetween(0, kMostRecurrences))
      .ShowDefault();
  verb.AddOption("--slurm-retries", flags.slurm_retries,
                 "How often recurrences whose task has failed are run again, by further jobs that "
                 "depend on it")
      .Check(WholeNumberBetween(0, kMostRetries))
      .ShowDefault();
  verb.AddFlag("--slurm-no-wait", flags.no_wait, "Do not wait for what was submitted");
}

Status InterpretSlurm(const TrainFlags& flags, SlurmLaunch& slurm) {
  const bool given =
      !flags.slurm_options.empty() || flags.at_once > 0 || flags.slurm_retries > 0 || flags.no_wait;
  if (!flags.slurm && given)
    return InvalidArgument(
        "--slurm-options, --at-once, --slurm-retries and --slurm-no-wait belong to --slurm");
  slurm.wanted = flags.slurm;
  slurm.at_once = flags.at_once;
  slurm.retries = flags.slurm_retries;
  slurm.wait = !flags.no_wait;
  auto options = SplitShellWords(flags.slurm_options);
  if (!options.ok()) return std::move(options).error().While("--slurm-options");
  slurm.options = std::move(options).value();
  return Ok();
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
  ZEUS_TRY(const SchedulerWishes wishes, ReadSchedulerWishes(ProcessEnvironment()));
  plan.max_slowdown = flags.max_slowdown ? flags.max_slowdown : wishes.max_slowdown;
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

// Where --finish-by is not given, the deadline of the scheduler's job holds.
Result<std::optional<ShiftInvocation>> InterpretShift(ShiftFlags flags, CarbonOptions& carbon,
                                                      WallTime now) {
  const bool open = !flags.goal.empty() && flags.finish_by.empty();
  if (open) flags.finish_by = ProcessEnvironment()("ZEUS_DEADLINE").value_or("");
  auto shift = Interpret(flags, carbon, now);
  if (shift.ok() || !open || flags.finish_by.empty()) return shift;
  return std::move(shift).error().While("ZEUS_DEADLINE, which srun --zeus-deadline sets");
}

Status CheckOutputs(const TrainFlags& flags) {
  if (!flags.json.empty() && flags.json == flags.html)
    return InvalidArgument(
        fmt::format("--json and --html cannot share the file {}", Quote(flags.json)));
  if (!flags.log.empty() && flags.log != "-" &&
      (flags.log == flags.json || flags.log == flags.html))
    return InvalidArgument(
        fmt::format("--log cannot share the file {} with a report", Quote(flags.log)));
  return Ok();
}

LearningRateScaling ParseScaling(const std::string& text) {
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
  AddSlurmFlags(verb, flags);
  verb.AddOption("--json", flags.json, "Write the result to this file (- for standard output)")
      .Check(NotEmpty());
  verb.AddOption("--html", flags.html, "Write a report to this file").Check(NotEmpty());
  verb.AddOption("--log", flags.log,
                 "Append a JSON line per event to this file (- for standard error)")
      .Check(NotEmpty())
      .TypeName("FILE");
  AddCarbonOptions(verb, flags.carbon);
  AddShiftFlags(verb, flags.shift);
  AddNoWaitFlag(verb, flags.shift);
  verb.AddFlag("--quiet", flags.quiet, "Nothing on standard error but errors");
}

Result<TrainInvocation> Interpret(const TrainFlags& flags, std::vector<std::string> command,
                                  WallTime now) {
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
  ZEUS_TRY(invocation.shift, InterpretShift(flags.shift, invocation.carbon, now));
  if (invocation.shift)
    options.shift = ShiftOptions{.wish = invocation.shift->wish, .follow = flags.shift.no_wait};
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
    // Without a target the matches alone count, so no group is needed.
    if (!metric.ok() && flags.job.epochs)
      metric = MetricPattern::Compile("(" + flags.metric_regex + ")");
    if (!metric.ok()) return InvalidArgument("--" + metric.error().message);
    options.metric = std::move(metric).value();
  }
  options.metric_file = flags.metric_file;
  options.no_placeholder = flags.no_placeholder;
  options.learning_rate = flags.learning_rate;
  options.scaling = ParseScaling(flags.scaling);
  if (!flags.gpus.empty()) {
    ZEUS_TRY(invocation.gpus, ParseGpus(flags.gpus));
  }
  invocation.driver_timeout = Seconds(flags.driver_timeout);
  ZEUS_RETURN_IF_ERROR(InterpretLimit(flags, options.limit));
  if (flags.shift.no_wait && options.limit.mode != LimitMode::kJit)
    return InvalidArgument("--no-wait turns the power limit: it needs --power-limit jit");
  if (!flags.progress.empty()) {
    auto progress = ProgressPattern::Compile(flags.progress);
    if (!progress.ok()) return InvalidArgument("--" + progress.error().message);
    options.progress = std::move(progress).value();
  }
  ZEUS_TRY(options.grace, ParseDuration(flags.grace, "--grace"));
  // A run that is as long as it should be saves its model itself.
  options.let_finish = flags.let_finish || HasEpochGoal(options.spec);
  invocation.json = flags.json;
  invocation.html = flags.html;
  invocation.log = flags.log;
  invocation.quiet = flags.quiet;
  ZEUS_RETURN_IF_ERROR(InterpretSlurm(flags, invocation.slurm));
  ZEUS_RETURN_IF_ERROR(CheckTrainOptions(options));
  ZEUS_RETURN_IF_ERROR(CheckOutputs(flags));
  return invocation;
}

}  // namespace zeus::cli
