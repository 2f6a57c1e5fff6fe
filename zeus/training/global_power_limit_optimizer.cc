#include "zeus/training/global_power_limit_optimizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "zeus/base/file.h"
#include "zeus/base/log.h"
#include "zeus/base/quantity_text.h"
#include "zeus/device/knobs/device_knob.h"
#include "zeus/device/knobs/guarded_knob.h"
#include "zeus/device/knobs/knob.h"
#include "zeus/device/knobs/knob_group.h"
#include "zeus/device/knobs/knob_repair.h"
#include "zeus/optimizer/collective.h"
#include "zeus/optimizer/power_limit/profile.h"
#include "zeus/optimizer/power_limit/scheduler_wishes.h"
#include "zeus/optimizer/power_limit/slice_meter.h"
#include "zeus/training/epoch_meter.h"
#include "zeus/training/profile_folder.h"

namespace zeus {
namespace {

using Members = std::vector<std::unique_ptr<DeviceKnob>>;

class KnobThatIsAbsent final : public Knob {
 public:
  KnobThatIsAbsent(KnobKind kind, Error reason) : kind_(kind), reason_(std::move(reason)) {}

  const std::string& name() const override { return name_; }
  KnobKind kind() const override { return kind_; }
  Result<std::vector<Setting>> Settings(const Setting&) override { return reason_; }
  Result<Setting> Current() override { return reason_; }
  Watts max_power() const override { return Watts(0); }
  Status Set(const Setting&) override { return reason_; }
  Status Restore() override { return Ok(); }

 private:
  const std::string name_ = "absent knob";
  const KnobKind kind_;
  const Error reason_;
};

struct Wanted {
  KnobKind kind;
  Ceiling ceiling;
};

Result<Members> GpuMembers(const Wanted& wanted, NodeMonitor& monitor, JobKnob& job) {
  const auto [kind, ceiling] = wanted;
  Members members;
  for (std::size_t position = 0; position < monitor.monitor().device_count(); ++position) {
    Gpu* const gpu = monitor.gpu(position);
    if (gpu == nullptr) continue;
    ZEUS_TRY(std::unique_ptr<DeviceKnob> knob,
             gpu->NeedsJournal() ? DeviceKnob::Of(kind, *gpu, *job.journal, ceiling)
                                 : DeviceKnob::WithoutJournal(kind, *gpu, ceiling));
    members.push_back(std::move(knob));
    const GpuIdentity& identity = gpu->identity();
    job.devices.push_back(position);
    job.turned.push_back({.name = gpu->name(), .model = identity.model, .uuid = identity.uuid});
    job.driver = identity.driver;
  }
  if (members.empty())
    return Error{ErrorCode::kNotFound, "there is no GPU to optimise: zeus doctor says why"};
  return members;
}

Result<Members> CpuMembers(Ceiling ceiling, NodeMonitor& monitor, JobKnob& job) {
  Members members;
  for (const std::unique_ptr<CpuPackage>& cpu : monitor.node().cpus) {
    ZEUS_TRY(std::unique_ptr<DeviceKnob> knob, cpu->lender() == nullptr
                                                   ? DeviceKnob::Of(*cpu, *job.journal, ceiling)
                                                   : DeviceKnob::WithoutJournal(*cpu, ceiling));
    members.push_back(std::move(knob));
    job.turned.push_back({.name = cpu->name(), .model = cpu->identity().model, .uuid = ""});
  }
  for (std::size_t position = 0; position < monitor.monitor().device_count(); ++position)
    if (monitor.gpu(position) == nullptr && monitor.monitor().device_in_total(position))
      job.devices.push_back(position);
  if (members.empty() || job.devices.empty())
    return Error{ErrorCode::kNotFound,
                 "there is no CPU package whose energy can be read: zeus doctor says why"};
  return members;
}

// Restores the settings that killed programs left behind, so that the job begins without them.
void RepairLeftovers(KnobJournal& journal, Clock& clock) {
  const auto repairs = RepairKnobs(journal, RealSurroundings(clock));
  if (!repairs.ok()) return log::Warning("{}", repairs.error().message);
  for (const KnobRepair& repair : repairs.value())
    if (repair.outcome == KnobRepair::Outcome::kFailed ||
        repair.outcome == KnobRepair::Outcome::kNotOurs)
      log::Warning("{}", ToText(repair));
}

}  // namespace

Result<JobKnob> FindJobKnob(KnobKind kind, NodeMonitor& monitor, Ceiling asked) {
  JobKnob job;
  const Ceiling ceiling = KnobPolicyOfMachine().Allowed(asked);
  const bool lasting =
      kind == KnobKind::kCpuPowerLimit ||
      std::ranges::any_of(monitor.node().gpus, [](const auto& gpu) { return gpu->NeedsJournal(); });
  if (lasting) {
    ZEUS_TRY(std::filesystem::path folder, KnobFolder());
    job.journal = std::make_unique<KnobJournal>(monitor.monitor().clock(), std::move(folder));
    RepairLeftovers(*job.journal, monitor.monitor().clock());
    for (const UnexplainedLimit& limit : FindUnexplainedLimits(monitor.node(), *job.journal))
      log::Warning("{}", ToText(limit));
  }
  ZEUS_TRY(Members members, kind == KnobKind::kCpuPowerLimit
                                ? CpuMembers(ceiling, monitor, job)
                                : GpuMembers({kind, ceiling}, monitor, job));
  ZEUS_TRY(job.knob, KnobGroup::Of(std::move(members)));
  return job;
}

std::unique_ptr<Knob> AbsentKnob(KnobKind kind, Error reason) {
  return std::make_unique<KnobThatIsAbsent>(kind, std::move(reason));
}

// Stores the profiles of a job between its runs: in a folder, in one file, or not at all. Failures
// are logged, and only cost that the job is profiled again. One owner.
class ProfileKeeper {
 public:
  // Only one rank of a job writes.
  enum class Access { kReadWrite, kReadOnly };

  ProfileKeeper(std::filesystem::path folder, std::filesystem::path file, Access access);

  std::optional<Profile> Find(const ProfileContext& context, KnobKind knob);
  // Does not overwrite files that may still be needed, such as the profile of another device.
  void Keep(const Profile& profile);

 private:
  std::optional<Profile> FindInFile(const ProfileContext& context, KnobKind knob);

  const std::filesystem::path folder_;
  const std::filesystem::path file_;
  const Access access_;
  bool file_is_of_others_ = false;  // The file must not be overwritten.
};

namespace {

constexpr std::size_t kLargestText = 1 << 20;  // Larger files are no profiles.

// Whether a file that could not be parsed may be replaced: an empty file, or a profile that was cut
// off. Any other file was not written by Zeus.
bool MayBeReplaced(const std::filesystem::path& file) {
  const auto text = ReadSmallFile(file, kLargestText);
  if (!text.ok()) return text.error().code == ErrorCode::kNotFound;
  const auto has = [&](const char* words) { return text.value().find(words) != std::string::npos; };
  return text.value().empty() || has(R"("zeus.power_profile/1")") ||
         (has(R"("measurements")") && !has(R"("schema")"));
}

}  // namespace

ProfileKeeper::ProfileKeeper(std::filesystem::path folder, std::filesystem::path file,
                             Access access)
    : folder_(std::move(folder)), file_(std::move(file)), access_(access) {}

std::optional<Profile> ProfileKeeper::Find(const ProfileContext& context, KnobKind knob) {
  if (!file_.empty()) return FindInFile(context, knob);
  if (!folder_.empty()) return ProfileFolder(folder_).Find(context, knob);
  return std::nullopt;
}

std::optional<Profile> ProfileKeeper::FindInFile(const ProfileContext& context, KnobKind knob) {
  std::error_code failure;
  if (std::filesystem::exists(file_, failure) &&
      !std::filesystem::is_regular_file(file_, failure)) {
    log::Warning("{} is no regular file: the profile of this job is not kept", file_.string());
    file_is_of_others_ = true;
    return std::nullopt;
  }
  auto profile = ReadProfileFile(file_, context.devices);
  if (!profile.ok()) {
    file_is_of_others_ = !MayBeReplaced(file_);
    if (profile.error().code != ErrorCode::kNotFound)
      log::Warning("{}: the job is profiled again and the file {}", profile.error().message,
                   file_is_of_others_ ? "left as it is" : "replaced");
    return std::nullopt;
  }
  std::optional<std::string> reason = WhyProfileDoesNotHold(profile.value().context, context);
  if (profile.value().knob != knob) reason = "it is of another knob";
  if (!reason) return std::move(profile).value();
  log::Warning("{} is not used, {}: the job is profiled again and the file left as it is",
               file_.string(), *reason);
  file_is_of_others_ = true;
  return std::nullopt;
}

void ProfileKeeper::Keep(const Profile& profile) {
  if (access_ == Access::kReadOnly || profile.points.empty()) return;
  Status kept = Ok();
  if (!file_.empty()) {
    if (!file_is_of_others_) kept = WriteProfileFile(file_, profile);
  } else if (!folder_.empty()) {
    const auto saved = ProfileFolder(folder_).Save(profile);
    if (!saved.ok()) kept = saved.error();
  }
  if (!kept.ok()) log::Warning("the profile of this job is not kept: {}", kept.error().message);
}

namespace {

using namespace std::chrono_literals;

// Returns a new name each time, since several optimisers may use one monitor.
std::string NewJobWindowName() {
  static std::atomic<int> made = 0;
  return fmt::format("__zeus_job_{}", ++made);
}

// How long to wait for other ranks to restore their knobs: mpirun sends SIGKILL one second after
// SIGTERM.
constexpr Seconds kPeerTimeout = 800ms;
constexpr Seconds kPeerPollInterval = 10ms;

// Checks that a profile is plausible for the steps of this job: a stored profile may belong to
// another job of the same name.
Status CheckFit(const Profile& profile, const std::vector<std::int64_t>& steps,
                const JobUse& used) {
  constexpr double kTolerance = 1.5;
  Seconds expected{0};
  for (std::size_t i = 0; i < steps.size(); ++i)
    expected += static_cast<double>(steps[i]) * profile.points[i].time_per_step;
  if (expected <= kTolerance * used.time) return Ok();
  return Error{
      ErrorCode::kInvalidArgument,
      fmt::format("the profile is of another job: by it these steps take {:.1f} s, and the "
                  "job took {:.1f} s in all",
                  expected.count(), used.time.count())};
}

// A wish of the scheduler's user bounds every objective. One that cannot be read does not stop the
// training.
Selector WithinWishes(Selector objective) {
  const auto wishes = ReadSchedulerWishes(ProcessEnvironment());
  if (wishes.ok()) return Within(wishes.value(), std::move(objective));
  log::Warning("{}; it is left out", wishes.error().message);
  return objective;
}

}  // namespace

class GlobalPowerLimitOptimizer::Session {
 public:
  Session(NodeMonitor& monitor, Selector selector, JitOptions options)
      : monitor_(monitor),
        selector_(WithinWishes(std::move(selector))),
        options_(std::move(options)),
        collective_(options_.collective != nullptr ? *options_.collective : alone_),
        ranks_(collective_),
        keeper_(options_.profile_folder, options_.profile_file,
                ranks_.leader() ? ProfileKeeper::Access::kReadWrite
                                : ProfileKeeper::Access::kReadOnly) {
    if (options_.knobs.empty()) options_.knobs = {KnobKind::kGpuPowerLimit};
    StartStage();
    Proceed();
  }
  ~Session() {
    RestoreKilledPeers();
    (void)monitor_.monitor().CancelWindow(job_window_);
  }

  void OnStepBegin() {
    if (ended_) return;
    if (!begun_) Begin();
    for (const auto& stage : stages_) stage->optimizer.OnStepBegin();
    if (!decided_) Proceed();
  }
  void OnEpochEnd() {
    if (ended_) return;
    for (const auto& stage : stages_) stage->optimizer.OnEpochEnd();
    if (!decided_) Proceed();
  }
  void Begin();
  void End();

  bool decided() const { return decided_; }
  const PowerLimitOptimizer& current() const { return stages_.back()->optimizer; }
  std::size_t profile_count() const { return stages_.size(); }
  const Profile& profile(std::size_t knob) const { return stages_[knob]->optimizer.profile(); }
  std::vector<Setting> chosen() const;
  std::optional<Error> trouble() const;
  Result<JobUse> Used();
  Result<std::vector<SavingsReport>> Savings();

 private:
  struct Stage {
    Stage(Session& session, JobKnob job_knob, PowerLimitOptimizer::Options options)
        : job(std::move(job_knob)),
          guard(*job.knob,
                [&session, this] {
                  if (job.journal) session.RepairPeers(*job.journal);
                }),
          meter(session.monitor_.monitor(), job.devices, session.options_.measured),
          optimizer({session.monitor_.monitor().clock(), guard,
                     session.options_.meter != nullptr ? *session.options_.meter : meter,
                     session.collective_},
                    std::move(options)) {}

    JobKnob job;
    KnobGuard guard;
    MonitorSliceMeter meter;
    PowerLimitOptimizer optimizer;
    bool kept = false;  // Whether its profile is stored, now or by an earlier run.
  };

  void RepairPeers(KnobJournal& journal);
  void RestoreKilledPeers();
  Status CheckThatRanksAgree();
  Result<JobKnob> FindOwnKnob(KnobKind kind);
  void StartStage();
  void Proceed();
  void Conclude();
  void Resume();
  void Keep(Stage& stage);
  ProfileContext MakeContext(const JobKnob& job);

  NodeMonitor& monitor_;
  const Selector selector_;
  JitOptions options_;
  SingleProcess alone_;
  Collective& collective_;
  Agreement ranks_;
  ProfileKeeper keeper_;
  std::vector<std::unique_ptr<Stage>> stages_;
  JobUse before_{};  // Time and energy of earlier parts of a training that was interrupted.
  const std::string job_window_ = NewJobWindowName();
  std::optional<JobUse> final_use_;
  bool begun_ = false;
  bool decided_ = false;
  bool ended_ = false;
};

// --- the course of a job ---

void GlobalPowerLimitOptimizer::Session::Begin() {
  if (begun_ && !ended_) return;
  if (ended_) Resume();
  begun_ = true;
  // If the window cannot be opened, Used() returns the error.
  (void)monitor_.monitor().BeginWindow(job_window_, {.if_open = IfOpen::kRestart});
}

// Continues a training that had ended.
void GlobalPowerLimitOptimizer::Session::Resume() {
  ended_ = false;
  before_ = final_use_.value_or(before_);
  final_use_.reset();
  for (const auto& stage : stages_)
    if (const Status resumed = stage->optimizer.Resume(); !resumed.ok())
      log::Warning("the job goes on but is not optimised: {}", resumed.error().message);
}

// Restores the knobs of ranks that were killed, which cannot do so themselves. A launcher may kill
// all ranks as soon as the first one has ended, so each rank waits until the others have restored
// theirs.
void GlobalPowerLimitOptimizer::Session::RepairPeers(KnobJournal& journal) {
  Clock& clock = monitor_.monitor().clock();
  const auto others_hold = [&journal] {
    const auto records = journal.List();
    return records.ok() && std::ranges::any_of(records.value(), [](const auto& record) {
             return record.standing == KnobJournal::Standing::kHeld;
           });
  };
  const TimePoint deadline = clock.Now() + kPeerTimeout;
  while (!ranks_.alone() && others_hold() && clock.Now() < deadline)
    clock.SleepFor(kPeerPollInterval);
  (void)RepairKnobs(journal, RealSurroundings(clock));
}

// Restores the knobs of ranks that have died, without waiting for the others.
void GlobalPowerLimitOptimizer::Session::RestoreKilledPeers() {
  if (ranks_.alone()) return;
  for (const auto& stage : stages_)
    if (stage->job.journal)
      (void)RepairKnobs(*stage->job.journal, RealSurroundings(monitor_.monitor().clock()));
}

// Checks that all ranks have the same options. Otherwise their collective calls would not match,
// and they would disturb those of the training.
Status GlobalPowerLimitOptimizer::Session::CheckThatRanksAgree() {
  if (ranks_.alone()) return Ok();
  std::string mine = fmt::format("{} {} {} {}", static_cast<int>(options_.mode),
                                 static_cast<int>(options_.ceiling), options_.rule.wait_steps,
                                 options_.rule.enough_precision);
  for (const SliceRule::Length& length : {options_.rule.warmup, options_.rule.profile})
    mine +=
        fmt::format(" {} {}", length.steps.value_or(-1), length.time.value_or(Seconds(-1)).count());
  for (const KnobKind knob : options_.knobs) mine += fmt::format(" {}", KnobKindName(knob));
  const auto all = ranks_.Gather(mine);
  if (!all.ok()) return all.error();
  if (std::ranges::all_of(all.value(), [&](const auto& other) { return other == mine; }))
    return Ok();
  options_.knobs.resize(1);
  return Error{ErrorCode::kInvalidArgument,
               "the ranks of the job were given different options: give the same to all"};
}

Result<JobKnob> GlobalPowerLimitOptimizer::Session::FindOwnKnob(KnobKind kind) {
  if (stages_.empty()) ZEUS_RETURN_IF_ERROR(CheckThatRanksAgree());
  // An error here means that a rank is gone, which the optimiser notices and logs, too.
  const auto shared = GpusOfEarlierRanks(monitor_, collective_);
  if (shared.ok() && !shared.value().empty() && kind != KnobKind::kCpuPowerLimit)
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} is measured by rank {}, too: give the monitor of each rank the "
                             "GPUs of that rank",
                             monitor_.monitor().device_name(shared.value().front().device),
                             shared.value().front().first_rank)};
  return FindJobKnob(kind, monitor_, options_.ceiling);
}

void GlobalPowerLimitOptimizer::Session::StartStage() {
  const bool first = stages_.empty();
  const KnobKind kind = options_.knobs[stages_.size()];
  JobKnob job;
  if (auto found = FindOwnKnob(kind); found.ok())
    job = std::move(found).value();
  else
    job.knob = AbsentKnob(kind, found.error());
  PowerLimitOptimizer::Options options{.selector = selector_,
                                       .mode = options_.mode,
                                       .rule = options_.rule,
                                       .context = MakeContext(job)};
  if (first) options.settings = options_.settings;
  if (first) options.stride = options_.stride;
  // The profile of a second knob depends on the setting of the first one, so it is not reused.
  if (first) options.known = keeper_.Find(options.context, kind);
  stages_.push_back(std::make_unique<Stage>(*this, std::move(job), std::move(options)));
  stages_.back()->kept = !first || stages_.back()->optimizer.done();
}

void GlobalPowerLimitOptimizer::Session::Keep(Stage& stage) {
  if (!std::exchange(stage.kept, true)) keeper_.Keep(stage.optimizer.profile());
}

void GlobalPowerLimitOptimizer::Session::Proceed() {
  while (stages_.back()->optimizer.done()) {
    Keep(*stages_.back());
    if (stages_.size() == options_.knobs.size()) {
      decided_ = true;
      return;
    }
    StartStage();
  }
}

void GlobalPowerLimitOptimizer::Session::End() {
  if (std::exchange(ended_, true)) return;
  for (const auto& stage : stages_)
    if (const Status restored = stage->guard.Restore(); !restored.ok())
      LogFailedRestore(restored.error());
  RestoreKilledPeers();
  // A rank that leaves by an exception does so alone, and collective calls would hang.
  if (ranks_.alone() || std::uncaught_exceptions() == 0) Conclude();
  (void)monitor_.monitor().CancelWindow(job_window_);
}

void GlobalPowerLimitOptimizer::Session::Conclude() {
  for (const auto& stage : stages_) {
    stage->optimizer.Conclude();
    Keep(*stage);
  }
  if (auto used = Used(); used.ok()) final_use_ = used.value();
}

ProfileContext GlobalPowerLimitOptimizer::Session::MakeContext(const JobKnob& job) {
  std::vector<double> devices{static_cast<double>(job.turned.size())};
  std::vector<std::string> uuids;
  for (const JobKnob::Device& device : job.turned)
    if (!device.uuid.empty()) uuids.push_back(device.uuid);
  // An error here means that a rank is gone, which the optimiser notices and logs, too.
  (void)ranks_.Sum(devices);
  return {.job = options_.job,
          .batch_size = options_.batch_size,
          .device_model = job.turned.empty() ? "" : job.turned.front().model,
          .uuids = std::move(uuids),
          .devices = static_cast<int>(devices.front()),
          .driver = job.driver,
          .date = monitor_.monitor().clock().WallNow()};
}

// --- results ---

std::vector<Setting> GlobalPowerLimitOptimizer::Session::chosen() const {
  std::vector<Setting> chosen;
  for (const auto& stage : stages_)
    if (const auto best = stage->optimizer.best())
      chosen.push_back(stage->optimizer.profile().points[*best].setting);
  return chosen;
}

std::optional<Error> GlobalPowerLimitOptimizer::Session::trouble() const {
  for (const auto& stage : stages_)
    if (stage->optimizer.trouble()) return stage->optimizer.trouble();
  return std::nullopt;
}

Result<JobUse> GlobalPowerLimitOptimizer::Session::Used() {
  if (final_use_) return *final_use_;
  std::vector<double> sums{0, 0};
  std::vector<double> time{0};
  Status outcome = Ok();
  const auto measured = monitor_.monitor().PeekWindow(job_window_);
  if (!measured.ok()) outcome = Error{ErrorCode::kUnavailable, "the job has not begun"};
  if (measured.ok()) {
    time[0] = measured.value().time.count();
    for (const std::size_t device : stages_.front()->job.devices) {
      const DeviceMeasurement& part = measured.value().devices[device];
      if (!part.energy.ok()) {
        outcome = part.energy.error().While("measure " + part.device);
        continue;
      }
      sums[0] += part.energy.value().energy.value();
      sums[1] += std::pow(part.energy.value().sigma.value(), 2);
    }
  }
  ZEUS_RETURN_IF_ERROR(ranks_.Together(std::move(outcome)));
  ZEUS_RETURN_IF_ERROR(ranks_.Sum(sums));
  ZEUS_RETURN_IF_ERROR(ranks_.Max(time));
  return JobUse{.time = before_.time + Seconds(time[0]),
                .energy = before_.energy + Joules(sums[0]),
                .energy_sigma = before_.energy_sigma + Joules(std::sqrt(sums[1]))};
}

Result<std::vector<SavingsReport>> GlobalPowerLimitOptimizer::Session::Savings() {
  ZEUS_TRY(const JobUse used, Used());
  std::vector<SavingsReport> reports;
  for (const auto& stage : stages_) {
    const PowerLimitOptimizer& optimizer = stage->optimizer;
    const auto original = optimizer.original();
    const auto best = optimizer.best();
    if (!original || !best) continue;
    const Profile& profile = optimizer.profile();
    const std::vector<std::int64_t> steps = optimizer.StepsAtPoints();
    ZEUS_RETURN_IF_ERROR(CheckFit(profile, steps, used));
    reports.push_back({.knob = profile.knob,
                       .steps = optimizer.steps(),
                       .original = profile.points[*original].setting,
                       .best = profile.points[*best].setting,
                       .used = used,
                       .at_original = UseAtPoint(used, profile, steps, *original),
                       .at_best = UseAtPoint(used, profile, steps, *best),
                       .change = ChangeBetween(profile, optimizer.steps(), *original, *best)});
  }
  if (!reports.empty()) return reports;
  const std::optional<Error> reason = trouble();
  if (reason) return reason->While("nothing to compare");
  return Error{ErrorCode::kUnavailable, "the job is still being profiled"};
}

// --- the public face ---

GlobalPowerLimitOptimizer::GlobalPowerLimitOptimizer(NodeMonitor& monitor, Selector selector,
                                                     JitOptions options)
    : session_(std::make_unique<Session>(monitor, std::move(selector), std::move(options))) {}

GlobalPowerLimitOptimizer::~GlobalPowerLimitOptimizer() = default;

void GlobalPowerLimitOptimizer::OnTrainBegin() { session_->Begin(); }
void GlobalPowerLimitOptimizer::OnStepBegin() { session_->OnStepBegin(); }
void GlobalPowerLimitOptimizer::OnEpochEnd(std::int64_t) { session_->OnEpochEnd(); }
void GlobalPowerLimitOptimizer::OnTrainEnd() { session_->End(); }
bool GlobalPowerLimitOptimizer::done() const { return session_->decided(); }
const PowerLimitOptimizer& GlobalPowerLimitOptimizer::current() const {
  return session_->current();
}
std::size_t GlobalPowerLimitOptimizer::profile_count() const { return session_->profile_count(); }
const Profile& GlobalPowerLimitOptimizer::profile(std::size_t knob) const {
  return session_->profile(knob);
}
std::vector<Setting> GlobalPowerLimitOptimizer::chosen() const { return session_->chosen(); }
std::optional<Error> GlobalPowerLimitOptimizer::trouble() const { return session_->trouble(); }
Result<JobUse> GlobalPowerLimitOptimizer::Used() { return session_->Used(); }
Result<std::vector<SavingsReport>> GlobalPowerLimitOptimizer::Savings() {
  return session_->Savings();
}

std::string ToText(const SavingsReport& report) {
  if (report.best == report.original)
    return fmt::format("{}, as before, is best", ToText(report.best));
  const auto percent = [](double change, double sigma, double of) {
    return ChangeWithSigma(100 * change / of, 100 * sigma / of);
  };
  const JobUse& change = report.change;
  const JobUse& of = report.at_original;
  return fmt::format("{} instead of {}: energy {}, time {}", ToText(report.best),
                     ToText(report.original),
                     percent(change.energy.value(), change.energy_sigma.value(), of.energy.value()),
                     percent(change.time.count(), change.time_sigma.count(), of.time.count()));
}

}  // namespace zeus
