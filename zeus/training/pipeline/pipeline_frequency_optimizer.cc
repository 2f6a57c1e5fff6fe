#include "zeus/training/pipeline/pipeline_frequency_optimizer.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "zeus/base/clock.h"
#include "zeus/base/json.h"
#include "zeus/base/log.h"
#include "zeus/base/result.h"
#include "zeus/device/knobs/guarded_knob.h"
#include "zeus/device/knobs/knob_repair.h"
#include "zeus/optimizer/collective.h"
#include "zeus/optimizer/pipeline/plan.h"
#include "zeus/plan/plan_service.h"
#include "zeus/training/global_power_limit_optimizer.h"
#include "zeus/training/pipeline/clock_setter.h"
#include "zeus/training/pipeline/pipeline_profiler.h"

namespace zeus {

// Sets the planned clocks of one stage as its instructions begin, and compares their times with the
// plan. One owner; setter and clock must outlive it.
class PlanFollower {
 public:
  // `highest` is the clock of the stage while it does not follow its plan.
  PlanFollower(ClockSetter& setter, Clock& clock, int stage, Hertz highest);

  // Follows the plan from the next instruction on, which must be the first of an iteration.
  void Adopt(const CurrentPlan& current);
  const std::optional<CurrentPlan>& current() const { return current_; }
  // With true, the stage keeps the last plan without a straggler: it is the straggler itself, and
  // must not become even slower by the plan for its own pace.
  void KeepUnpaced(bool keep);

  void Begin(std::string_view instruction);
  void End();
  struct Iteration {
    double slowdown = 1;  // Time of its instructions relative to the plan.
    Seconds time{0};      // Time since its first instruction began.
  };
  Iteration EndIteration();

  // Set if the program does not follow the plan.
  const std::optional<Error>& trouble() const { return trouble_; }
  // Time of an iteration without a straggler.
  Seconds unpaced_time() const;

 private:
  void Follow(const CurrentPlan& plan);
  void GiveUp(Error error);
  void RequestClock(Hertz clock);

  ClockSetter& setter_;
  Clock& clock_;
  const std::size_t stage_;
  const Hertz highest_;
  std::optional<CurrentPlan> current_;
  std::optional<CurrentPlan> unpaced_;  // The last plan that was made without a straggler.
  bool keeps_unpaced_ = false;
  pipeline::StageClocks clocks_{{}};
  std::optional<TimePoint> begun_;            // Begin of the open instruction.
  std::optional<TimePoint> iteration_begun_;  // nullopt before the first instruction.
  Seconds busy_{0};
  std::optional<Error> trouble_;
  bool complained_ = false;
};

PlanFollower::PlanFollower(ClockSetter& setter, Clock& clock, int stage, Hertz highest)
    : setter_(setter), clock_(clock), stage_(static_cast<std::size_t>(stage)), highest_(highest) {}

void PlanFollower::Adopt(const CurrentPlan& current) {
  current_ = current;
  if (!current.pace) unpaced_ = current;
  Follow(keeps_unpaced_ && unpaced_ ? *unpaced_ : current);
}

void PlanFollower::KeepUnpaced(bool keep) {
  if (!current_ || std::exchange(keeps_unpaced_, keep) == keep) return;
  Follow(keep && unpaced_ ? *unpaced_ : *current_);
}

void PlanFollower::Follow(const CurrentPlan& plan) {
  trouble_.reset();
  if (stage_ >= plan.plan.stages.size())
    return GiveUp({ErrorCode::kInvalidArgument,
                   "the plan is of fewer stages than this job has: plan for this job"});
  clocks_ = pipeline::StageClocks(plan.plan.stages[stage_]);
  busy_ = Seconds(0);
  RequestClock(clocks_.Next());
}

void PlanFollower::Begin(std::string_view instruction) {
  if (!current_ || trouble_) return;
  const auto clock = clocks_.Begin(instruction);
  if (!clock.ok()) return GiveUp(clock.error());
  RequestClock(clock.value());
  begun_ = clock_.Now();
  if (!iteration_begun_) iteration_begun_ = begun_;
}

// Requests the clock of the next instruction at once, so that the driver changes it while the stage
// waits.
void PlanFollower::End() {
  if (!begun_) return;
  busy_ += clock_.Now() - *std::exchange(begun_, std::nullopt);
  if (current_ && !trouble_) RequestClock(clocks_.Next());
}

PlanFollower::Iteration PlanFollower::EndIteration() {
  Iteration iteration;
  if (const auto begun = std::exchange(iteration_begun_, std::nullopt))
    iteration.time = clock_.Now() - *begun;
  if (!current_ || trouble_) return iteration;
  const Seconds planned = clocks_.planned_time();
  if (planned > Seconds(0)) iteration.slowdown = busy_ / planned;
  busy_ = Seconds(0);
  if (const Status ended = clocks_.EndIteration(); !ended.ok()) GiveUp(ended.error());
  return iteration;
}

Seconds PlanFollower::unpaced_time() const {
  if (unpaced_) return unpaced_->plan.time;
  return current_ ? current_->baseline_time : Seconds(0);
}

void PlanFollower::GiveUp(Error error) {
  trouble_ = std::move(error);
  begun_.reset();
  if (!std::exchange(complained_, true))
    log::Warning("{}; until there is another plan this stage runs at its highest clock",
                 trouble_->message);
  setter_.Request(highest_);
}

void PlanFollower::RequestClock(Hertz clock) {
  // The plan may have been made where higher clocks were allowed.
  if (clock > Hertz(0)) setter_.Request(std::min(clock, highest_));
}

// The text of a plan, in which rank 0 sends it to the other ranks.
std::string ToText(const CurrentPlan& plan);
Result<CurrentPlan> PlanFromText(const std::string& text);

std::string ToText(const CurrentPlan& plan) {
  Json json{{"id", plan.id},
            {"version", plan.version},
            {"baseline_time_seconds", plan.baseline_time.count()},
            {"baseline_energy_joules", plan.baseline_energy.value()},
            {"plan", pipeline::ToJson(plan.plan)}};
  if (plan.pace) json["pace_seconds"] = plan.pace->count();
  return JsonText(json);
}

Result<CurrentPlan> PlanFromText(const std::string& text) {
  CurrentPlan plan;
  ZEUS_TRY(const Json json, ParseJson(text));
  ZEUS_TRY(plan.id, GetField<std::string>(json, "id"));
  ZEUS_TRY(plan.version, GetField<std::int64_t>(json, "version"));
  ZEUS_TRY(const double time, GetField<double>(json, "baseline_time_seconds"));
  ZEUS_TRY(const double energy, GetField<double>(json, "baseline_energy_joules"));
  ZEUS_TRY(const std::optional<double> pace, GetOptionalField<double>(json, "pace_seconds"));
  ZEUS_TRY(const Json parts, GetField<Json>(json, "plan"));
  ZEUS_TRY(plan.plan, pipeline::PlanFromJson(parts));
  plan.baseline_time = Seconds(time);
  plan.baseline_energy = Joules(energy);
  if (pace) plan.pace = Seconds(*pace);
  return plan;
}

namespace {

// A straggler whose pace changed by less is not reported again.
constexpr double kSameSlowdown = 0.03;

// After a failure the service is not called for this many iterations, doubled with every further
// failure in a row up to the greatest number. A call may take seconds, in which all ranks wait.
constexpr int kFirstPause = 16;
constexpr int kLongestPause = 1024;

}  // namespace

class PipelineFrequencyOptimizer::Session {
 public:
  Session(NodeMonitor& monitor, PipelineOptions options)
      : monitor_(monitor),
        options_(std::move(options)),
        collective_(options_.collective != nullptr ? *options_.collective : alone_),
        ranks_(collective_) {
    Start();
  }
  ~Session() { End(); }

  void OnInstructionBegin(std::string_view instruction);
  void OnInstructionEnd(std::string_view instruction);
  void OnStepEnd();
  void End();

  void ReportStraggler(double slowdown) { user_slowdown_ = slowdown; }
  const CurrentPlan* plan() const {
    return follower_ && follower_->current() ? &*follower_->current() : nullptr;
  }
  const pipeline::PipelineProfile* profile() const { return profile_ ? &*profile_ : nullptr; }
  int profiling_iterations() const { return profiler_ ? profiler_->iterations() : 0; }
  std::int64_t clock_changes() const { return setter_ ? setter_->changes() : changes_; }
  std::optional<Error> trouble() const;
  void WaitForClock() {
    if (setter_) setter_->WaitUntilDone();
  }

 private:
  void Start();
  Status FindClocks();
  Status AskForKnownPlan();
  Status FinishProfile();
  Status FollowPlan();
  Status Share(const std::optional<CurrentPlan>& plan);
  Result<std::optional<CurrentPlan>> ReportPace(const CurrentPlan& present, double slowdown,
                                                Seconds iteration);
  std::optional<CurrentPlan> NewPlan(double slowdown, Seconds iteration);
  void PauseService(const Error& error);
  double Slowdown(double measured) const;
  void GiveUp(Error error);
  void RepairPeers();
  bool leads() const { return ranks_.leader(); }
  bool profiling() const { return profiler_ && !profiler_->done(); }

  NodeMonitor& monitor_;
  PipelineOptions options_;
  SingleProcess alone_;
  Collective& collective_;
  Agreement ranks_;
  JobKnob job_;
  std::unique_ptr<KnobGuard> guard_;
  std::unique_ptr<ClockSetter> setter_;  // Null after End().
  Hertz highest_{};
  std::unique_ptr<PipelineProfiler> profiler_;
  std::unique_ptr<PlanFollower> follower_;
  std::optional<pipeline::PipelineProfile> profile_;
  std::optional<Error> trouble_;
  std::optional<double> user_slowdown_;  // Slowdown that the program reported itself.
  double reported_slowdown_ = 1;         // Slowdown that the leader reported to the service last.
  TimePoint asked_{};                    // When the leader last asked for a new plan.
  int pause_ = 0;             // Iterations of the last pause; 0: the last call succeeded.
  int pause_left_ = 0;        // Iterations that are left of it.
  std::int64_t changes_ = 0;  // Changes of the clock until End().
  int forwards_ = 0;          // Forwards of this rank in the present iteration.
  bool ended_ = false;
};

// --- beginning and end ---

void PipelineFrequencyOptimizer::Session::Start() {
  Status begun = FindClocks();
  if (begun.ok() && leads() && options_.service == nullptr)
    begun =
        Error{ErrorCode::kInvalidArgument, "rank 0 has no plan service: give PipelineOptions one"};
  begun = ranks_.Together(std::move(begun));
  if (begun.ok()) begun = AskForKnownPlan();
  if (!begun.ok()) return GiveUp(begun.error());
  if (plan() != nullptr) return;
  profiler_ = std::make_unique<PipelineProfiler>(
      PipelineProfiler::Parts{monitor_.monitor(), job_.devices, *guard_, *setter_, collective_},
      PipelineProfiler::Options{.rank = options_.rank,
                                .rules = options_.sweep,
                                .stride = options_.stride,
                                .synchronize = options_.synchronize});
}

Status PipelineFrequencyOptimizer::Session::FindClocks() {
  ZEUS_TRY(job_, FindJobKnob(KnobKind::kGraphicsClock, monitor_, options_.ceiling));
  guard_ = std::make_unique<KnobGuard>(*job_.knob, [this] { RepairPeers(); });
  ZEUS_TRY(const std::vector<Setting> settings, guard_->Settings(options_.stride));
  highest_ = std::get<Hertz>(settings.front());
  setter_ = std::make_unique<ClockSetter>(*guard_);
  follower_ = std::make_unique<PlanFollower>(*setter_, monitor_.monitor().clock(),
                                             options_.rank.pp_rank, highest_);
  return Ok();
}

// Ends the setter first, so that it does not set the knob again after it was restored.
void PipelineFrequencyOptimizer::Session::End() {
  if (std::exchange(ended_, true)) return;
  changes_ = clock_changes();
  setter_.reset();
  if (!guard_) return;
  if (const Status restored = guard_->Restore(); !restored.ok()) LogFailedRestore(restored.error());
}

// The job goes on without planned clocks. Errors are agreed on, so all ranks give up together.
void PipelineFrequencyOptimizer::Session::GiveUp(Error error) {
  trouble_ = std::move(error);
  log::Warning("the clocks of the pipeline are not planned: {}", trouble_->message);
  End();
  RepairPeers();
}

// Unlocks the clocks of ranks that were killed, which cannot do so themselves.
void PipelineFrequencyOptimizer::Session::RepairPeers() {
  if (job_.journal && !ranks_.alone())
    (void)RepairKnobs(*job_.journal, RealSurroundings(monitor_.monitor().clock()));
}

std::optional<Error> PipelineFrequencyOptimizer::Session::trouble() const {
  if (trouble_) return trouble_;
  if (follower_ && follower_->trouble()) return follower_->trouble();
  return setter_ ? setter_->trouble() : std::nullopt;
}

// --- instructions ---

void PipelineFrequencyOptimizer::Session::OnInstructionBegin(std::string_view instruction) {
  if (ended_) return;
  if (profiling()) {
    if (instruction == pipeline::kForward) ++forwards_;
    return profiler_->OnInstructionBegin(instruction);
  }
  if (options_.synchronize && options_.straggler_threshold) options_.synchronize();
  follower_->Begin(instruction);
}

void PipelineFrequencyOptimizer::Session::OnInstructionEnd(std::string_view instruction) {
  if (ended_) return;
  if (profiling()) return profiler_->OnInstructionEnd(instruction);
  if (options_.synchronize && options_.straggler_threshold) options_.synchronize();
  follower_->End();
}

void PipelineFrequencyOptimizer::Session::OnStepEnd() {
  if (ended_) return;
  Status done = Ok();
  if (profiling()) {
    profiler_->OnStepEnd();
    if (profiler_->done()) done = FinishProfile();
    forwards_ = 0;
  } else {
    done = FollowPlan();
  }
  if (!done.ok()) GiveUp(done.error());
}

// --- plans ---

Status PipelineFrequencyOptimizer::Session::AskForKnownPlan() {
  std::optional<CurrentPlan> known;
  if (leads() && !options_.job.id.empty())
    if (auto found = options_.service->Get(options_.job.id); found.ok())
      known = std::move(found).value();
  return Share(known);
}

Status PipelineFrequencyOptimizer::Session::FinishProfile() {
  ZEUS_TRY(profile_, profiler_->Gather());
  Status submitted = Ok();
  std::optional<CurrentPlan> plan;
  if (leads()) {
    PlanSpec spec = options_.job;
    spec.profile = *profile_;
    if (spec.microbatches == 0 && spec.custom_schedule.empty())
      spec.microbatches = forwards_ / std::max(spec.chunks, 1);
    spec.data_parallel = options_.rank.dp_degree;
    spec.tensor_parallel = options_.rank.tp_degree;
    if (auto made = options_.service->Submit(spec); made.ok())
      plan = std::move(made).value();
    else
      submitted = made.error().While("plan the pipeline");
  }
  ZEUS_RETURN_IF_ERROR(ranks_.Together(std::move(submitted)));
  return Share(plan);
}

// All ranks follow the leader's plan, if it has a new one.
Status PipelineFrequencyOptimizer::Session::Share(const std::optional<CurrentPlan>& plan) {
  ZEUS_TRY(const bool is_new, ranks_.AtLeader(plan.has_value()));
  if (!is_new) return Ok();
  ZEUS_TRY(const std::string text, ranks_.TextFromLeader(plan ? ToText(*plan) : ""));
  ZEUS_TRY(const CurrentPlan shared, PlanFromText(text));
  follower_->Adopt(shared);
  asked_ = monitor_.monitor().clock().Now();
  return Ok();
}

double PipelineFrequencyOptimizer::Session::Slowdown(double measured) const {
  if (user_slowdown_) return *user_slowdown_;
  const bool slow = options_.straggler_threshold && measured > *options_.straggler_threshold;
  return slow ? measured : 1;
}

Status PipelineFrequencyOptimizer::Session::FollowPlan() {
  const PlanFollower::Iteration iteration = follower_->EndIteration();
  const double slowdown = Slowdown(iteration.slowdown);
  follower_->KeepUnpaced(slowdown > 1);
  std::vector<double> worst{slowdown, iteration.time.count()};
  ZEUS_RETURN_IF_ERROR(ranks_.Max(worst));
  std::optional<CurrentPlan> plan;
  if (leads()) plan = NewPlan(worst[0], Seconds(worst[1]));
  return Share(plan);
}

// The pace is at most the measured iteration, because a straggler that is not always on the
// critical path slows the pipeline by less than itself; and at most what the slowdown explains,
// because something else may have delayed the iteration.
Result<std::optional<CurrentPlan>> PipelineFrequencyOptimizer::Session::ReportPace(
    const CurrentPlan& present, double slowdown, Seconds iteration) {
  std::optional<Seconds> pace;
  if (slowdown > 1) pace = std::min(iteration, slowdown * follower_->unpaced_time());
  ZEUS_TRY(CurrentPlan answer, options_.service->ReportPace(present.id, pace));
  reported_slowdown_ = slowdown;
  if (answer.version == present.version) return std::optional<CurrentPlan>();
  return std::optional(std::move(answer));
}

std::optional<CurrentPlan> PipelineFrequencyOptimizer::Session::NewPlan(double slowdown,
                                                                        Seconds iteration) {
  if (pause_left_ > 0) {
    --pause_left_;
    return std::nullopt;
  }
  const TimePoint now = monitor_.monitor().clock().Now();
  const bool changed = std::abs(slowdown - reported_slowdown_) > kSameSlowdown * reported_slowdown_;
  if (!changed && now < asked_ + options_.poll_interval) return std::nullopt;
  asked_ = now;
  const CurrentPlan& present = *follower_->current();
  auto answer = changed ? ReportPace(present, slowdown, iteration)
                        : options_.service->GetNewer(present.id, present.version);
  if (!answer.ok()) {
    PauseService(answer.error());
    return std::nullopt;
  }
  pause_ = 0;
  return std::move(answer).value();
}

// While the service cannot be reached, the plan stays as it is.
void PipelineFrequencyOptimizer::Session::PauseService(const Error& error) {
  if (pause_ == 0) log::Warning("the plan of the pipeline stays as it is: {}", error.message);
  pause_ = pause_ == 0 ? kFirstPause : std::min(2 * pause_, kLongestPause);
  pause_left_ = pause_;
}

// --- the public face ---

PipelineFrequencyOptimizer::PipelineFrequencyOptimizer(NodeMonitor& monitor,
                                                       PipelineOptions options)
    : session_(std::make_unique<Session>(monitor, std::move(options))) {}

PipelineFrequencyOptimizer::~PipelineFrequencyOptimizer() = default;

void PipelineFrequencyOptimizer::OnInstructionBegin(std::string_view instruction) {
  session_->OnInstructionBegin(instruction);
}
void PipelineFrequencyOptimizer::OnInstructionEnd(std::string_view instruction) {
  session_->OnInstructionEnd(instruction);
}
void PipelineFrequencyOptimizer::OnStepEnd() { session_->OnStepEnd(); }
void PipelineFrequencyOptimizer::OnTrainEnd() { session_->End(); }
void PipelineFrequencyOptimizer::ReportStraggler(double slowdown) {
  session_->ReportStraggler(slowdown);
}
const CurrentPlan* PipelineFrequencyOptimizer::plan() const { return session_->plan(); }
const pipeline::PipelineProfile* PipelineFrequencyOptimizer::profile() const {
  return session_->profile();
}
int PipelineFrequencyOptimizer::profiling_iterations() const {
  return session_->profiling_iterations();
}
std::int64_t PipelineFrequencyOptimizer::clock_changes() const { return session_->clock_changes(); }
std::optional<Error> PipelineFrequencyOptimizer::trouble() const { return session_->trouble(); }
void PipelineFrequencyOptimizer::WaitForClock() { session_->WaitForClock(); }

}  // namespace zeus
