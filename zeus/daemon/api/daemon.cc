#include "zeus/daemon/api/daemon.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "zeus/base/json.h"
#include "zeus/base/log.h"
#include "zeus/base/random.h"
#include "zeus/base/text.h"
#include "zeus/daemon/coarse_cpu.h"
#include "zeus/daemon/peer_reader.h"
#include "zeus/device/driver_access.h"

namespace zeus::daemon {
namespace {

using namespace std::chrono_literals;

constexpr Seconds kLongestStop = 20s;
constexpr Seconds kSamplePeriod = 1s;           // How often processes are looked at.
constexpr Seconds kLongestWaitForSamples = 3s;  // Processes that do nothing have none.
// Over shorter times the energy of an idle device is not known well enough.
constexpr Seconds kShortestIdleLook = 1s;
constexpr Seconds kLongestPause = 5s;  // Between two looks at deadlines.

// The recorder looks at the devices this seldom while nobody wants readings, and at full rate for
// this long after the last client that asked.
constexpr Seconds kRestingPause = 1s;
constexpr Seconds kWantedFor = 60s;

Scope ControlOf(wire::LeaseKnob knob) {
  return knob == wire::LeaseKnob::kCpuPowerLimit ? Scope::kCpuControl : Scope::kGpuControl;
}

bool IsWithin(const KnobBounds& bounds, const wire::Demand& demand) {
  const auto allows = [&](const Setting& setting) {
    if (const auto* watts = std::get_if<Watts>(&setting))
      return !bounds.min_watts || *watts >= *bounds.min_watts;
    return !bounds.min_hertz || std::get<Hertz>(setting) >= *bounds.min_hertz;
  };
  if (const auto* exactly = std::get_if<wire::Exactly>(&demand)) return allows(exactly->value);
  if (const auto* at_most = std::get_if<wire::AtMost>(&demand)) return allows(at_most->value);
  if (const auto* range = std::get_if<wire::InRange>(&demand)) return allows(range->highest);
  return true;
}

std::size_t CountRestoring(const LeaseBook::Counts& counts) {
  std::size_t restoring = 0;
  for (const auto& [key, count] : counts.present)
    if (key.second == wire::LeaseState::kRestoring) restoring += count;
  return restoring;
}

Json KnobEvent(const wire::KnobKey& knob, const KnobReport& report) {
  const auto value = [](const std::optional<wire::KnobValue>& one) {
    return one ? wire::ToJson(*one) : Json();
  };
  Json event = {{"device", knob.device},
                {"knob", wire::Name(knob.knob)},
                {"effective", value(report.resolution.effective)},
                {"enforced", value(report.enforced)},
                {"baseline", value(report.baseline)},
                {"foreign", report.foreign},
                {"suspended", report.suspended}};
  if (report.trouble) event["trouble"] = report.trouble->message;
  return event;
}

}  // namespace

const Caller& DaemonItself() {
  static const Caller itself{.subject = "zeusd"};
  return itself;
}

const Grant& EverythingGranted() {
  static const Grant everything{.scopes = {Scope::kAdmin}, .all_devices = true};
  return everything;
}

Daemon::Daemon(Clock& clock, DaemonOptions options, Configuration configuration)
    : clock_(clock),
      options_(std::move(options)),
      configuration_(std::make_shared<const Configuration>(std::move(configuration))) {}

Daemon::~Daemon() {
  pod_asker_.reset();
  clerk_.reset();
  teller_.reset();
  sampler_.reset();
  // Its thread calls the book, which calls the desk, whose workers end watches.
  std::unique_ptr<HolderWatch> watch;
  {
    const std::lock_guard lock(mutex_);
    watch = std::move(watch_);
  }
  watch.reset();
  desk_.reset();
}

Result<std::unique_ptr<Daemon>> Daemon::Open(Clock& clock, Node node, Configuration configuration,
                                             DaemonOptions options) {
  std::unique_ptr<Daemon> daemon(new Daemon(clock, std::move(options), std::move(configuration)));
  ZEUS_RETURN_IF_ERROR(daemon->Build(std::move(node)));
  return daemon;
}

Status Daemon::OpenRecorder(Node node) {
  // Programs that use the daemon do not measure these devices by themselves: nothing to share.
  ZEUS_TRY(recorder_, NodeMonitor::Open(clock_, std::move(node),
                                        {.thread = options_.recorder_thread,
                                         .shortest_pause = [this] { return RecorderPause(); },
                                         .share = false,
                                         .recorded =
                                             [this](const std::string& device, TimePoint time,
                                                    const DeviceReading& reading) {
                                               boards_->Record(device, time, reading);
                                               NoteCounter(device, reading);
                                             }}));
  return Ok();
}

Status Daemon::Build(Node node) {
  cpu_energy_period_ = configuration_->cpu_energy_period;
  events_ = std::make_unique<EventStreams>(clock_, fmt::format("{:x}", SystemEntropy()));
  streams_ = std::make_unique<PolledStreams>(clock_);
  waiting_ = std::make_unique<WaitingAnswers>(clock_);
  for (auto& cpu : node.cpus)
    cpu = MakeCoarse(std::move(cpu), clock_, [this] { return cpu_energy_period_.load(); });
  ZEUS_TRY(boards_,
           NodeBoards::Create(node, {.generation = SystemEntropy(),
                                     .cpu_energy_period = configuration_->cpu_energy_period}));
  jobs_ = std::make_unique<JobBook>(clock_, JobBook::Options{.ended =
                                                                 [this](const std::string& job) {
                                                                   book_->JobEnded(job);
                                                                   ShowJobs();
                                                                 },
                                                             .state_file = options_.jobs_file});
  ZEUS_RETURN_IF_ERROR(OpenRecorder(std::move(node)));
  devices_ = std::make_unique<NodeDevices>(*recorder_);
  history_ = std::make_unique<live::NodeHistory>(*recorder_);
  ZEUS_TRY(audit_, AuditLog::Open(options_.audit_file, clock_));
  journal_ = std::make_unique<KnobJournal>(clock_, options_.knob_folder);
  desk_ = std::make_unique<DeviceDesk>(
      clock_, recorder_->node(), *journal_, audit_.get(),
      DeviceDesk::Options{
          .foreign = configuration_->foreign,
          .bounds = configuration_->bounds,
          .wrap = options_.wrap,
          .called = [this](const std::string& device,
                           Seconds duration) { timings_.CountCall(device, duration); },
          .reported = [this](const wire::KnobKey& knob,
                             const KnobReport& report) { KnobReported(knob, report); }});
  book_ = std::make_unique<LeaseBook>(
      clock_, *desk_, audit_.get(),
      LeaseBook::Options{
          .state_file = options_.state_file,
          .standing_file = options_.standing_file,
          .boot_clock = options_.boot_clock,
          .devices_of = [this](const Caller& c) { return jobs_->DevicesOf(c); },
          .belongs_to_job =
              [this](const Caller& caller, std::string_view job) {
                return std::ranges::count(jobs_->JobsOf(caller), job) > 0;
              },
          .job_runs = [this](std::string_view job) { return jobs_->Runs(job); },
          .changed = [this](const std::string& lease) { LeaseChanged(lease); },
          .restored = [this](Seconds duration) { timings_.CountRestore(duration); }});
  ZEUS_TRY(watch_,
           HolderWatch::Start([this](const std::string& lease) { book_->ProcessEnded(lease); }));
  if (options_.pods) WatchPods();
  if (!options_.job_folder.empty()) {
    ZEUS_TRY(job_folder_, JobFolder::Open(options_.job_folder, devices_->gpus().size()));
  }
  return Ok();
}

void Daemon::WatchPods() {
  std::set<std::string> devices;
  for (const NodeDevice& gpu : devices_->gpus()) devices.insert(gpu.id);
  PodWatch::Options options = *options_.pods;
  options.before_change = [this] { BookEnergy(); };
  options.board_of = [this](const std::string& part) { return BoardOf(part); };
  options.begun = [this] { RecorderWanted(); };
  pods_ = std::make_unique<PodWatch>(clock_, *jobs_, std::move(devices), std::move(options));
}

// Parts never move to another board, so the driver is asked once for each.
std::optional<std::string> Daemon::BoardOf(const std::string& part) {
  for (const NodeDevice& gpu : devices_->gpus()) {
    if (boards_of_parts_.contains(part)) break;
    DriverAccess* const driver = DriverAccessOf(*gpu.gpu);
    if (driver == nullptr) continue;
    const auto parts = driver->Partitions();
    if (!parts.ok()) continue;
    for (const std::string& one : parts.value()) boards_of_parts_[one] = gpu.id;
  }
  const auto known = boards_of_parts_.find(part);
  return known == boards_of_parts_.end() ? std::nullopt : std::optional(known->second);
}

Status Daemon::Start() {
  if (const Status loaded = jobs_->Load(); !loaded.ok())
    log::Warning("the jobs of before are forgotten: {}", loaded.error().message);
  BookGap();
  BookEnergy();  // From here on.
  ShowJobs();
  ZEUS_TRY(const auto adopted, book_->Load());
  ZEUS_RETURN_IF_ERROR(desk_->Start(*book_));
  for (const LeaseBook::Adopted& one : adopted) {
    auto pidfd = OpenPidfd(one.process);
    if (pidfd.ok() && watch_->Add(one.lease, pidfd.value()).ok()) continue;
    // It has ended since the book looked, or cannot be watched: then nobody would notice its end.
    book_->ProcessEnded(one.lease);
  }
  // The configuration may have become stricter while there was no daemon.
  book_->Revoke([this](const Caller& owner, const wire::LeaseView& lease) {
    return Allows(*configuration_, owner, lease);
  });
  for (const wire::KnobKey& knob : book_->ClaimedKnobs()) desk_->Wake(knob);
  clerk_ = std::make_unique<Ticker>("zeusd-clerk", [this] { return Step(); });
  const bool tells_processes = std::ranges::any_of(devices_->gpus(), [](const NodeDevice& device) {
    return DriverAccessOf(*device.gpu) != nullptr;
  });
  if (tells_processes)
    sampler_ = std::make_unique<Ticker>("zeusd-samples", [this] { return SampleProcesses(); });
  if (pods_) pod_asker_ = std::make_unique<Ticker>("zeusd-pods", [this] { return pods_->Step(); });
  teller_ = std::make_unique<Ticker>("zeusd-events", [this] {
    return events_->Step([this](const auto& devices) { return ReadingsOf(devices); });
  });
  return Ok();
}

TimePoint Daemon::Step() {
  const TimePoint leases = book_->Step();
  TakePendingJobs();
  const TimePoint jobs = jobs_->Step();
  ShowJobs();
  BookEnergy(Booking::kWhatIsKnown);
  jobs_->SaveEnergy();
  history_->Update();
  return std::min({leases, jobs, clock_.Now() + kLongestPause});
}

std::string Daemon::ReadingsOf(const std::set<std::string>& devices) const {
  std::vector<const NodeDevice*> chosen;
  for (const auto* list : {&devices_->gpus(), &devices_->cpus()})
    for (const NodeDevice& device : *list)
      if (devices.empty() || devices.contains(device.id)) chosen.push_back(&device);
  return chosen.empty() ? "" : ReadingText(*recorder_).Document(chosen);
}

Seconds Daemon::RecorderPause() const {
  const bool wanted = board_clients_ > 0 || clock_.Now() - wanted_at_.load() < kWantedFor ||
                      streams_->size() > 0 || events_->readings_wanted() || jobs_->AnyRunning();
  return wanted ? Seconds(0) : kRestingPause;
}

void Daemon::ReadingsWanted() {
  const TimePoint now = clock_.Now();
  // A recorder that does not rest needs no wake for each of thousands of requests.
  if (now - wanted_at_.exchange(now) >= kWantedFor) recorder_->Wake();
}

void Daemon::SetBoardClients(std::size_t clients) {
  if (board_clients_.exchange(clients) < clients) recorder_->Wake();
}

void Daemon::BookEnergy(Booking booking) {
  const std::set<std::string> waiting =
      booking == Booking::kEverything ? std::set<std::string>() : jobs_->SharedDevices();
  std::vector<JobBook::Slice> slices;
  Joules of_cpus{};
  bool any_cpu = false;
  {
    const std::lock_guard lock(mutex_);
    for (const auto* list : {&devices_->gpus(), &devices_->cpus()})
      for (const NodeDevice& device : *list) {
        if (waiting.contains(device.id) && WaitsForSamples(booked_[device.id])) continue;
        auto slice = NextSlice(device);
        if (!slice) continue;
        if (device.cpu != nullptr) of_cpus += slice->energy;
        any_cpu = any_cpu || device.cpu != nullptr;
        slices.push_back(*std::move(slice));
      }
  }
  for (const JobBook::Slice& slice : slices) jobs_->Book(slice);
  {
    const std::lock_guard lock(counters_mutex_);
    for (const NodeDevice& device : devices_->gpus())
      if (const auto found = counters_.find(device.name); found != counters_.end())
        jobs_->SetCounter(device.id, found->second);
  }
  if (any_cpu) jobs_->BookCpu(of_cpus);
}

bool Daemon::WaitsForSamples(const Booked& booked) const {
  return booked.utilisation_of.empty() && clock_.Now() - booked.time < kLongestWaitForSamples;
}

// The energy of a device since the last slice; nullopt the first time, and where it is not known.
// A device without a job and without work shows what it draws when idle.
std::optional<JobBook::Slice> Daemon::NextSlice(const NodeDevice& device) {
  const auto energy = devices_->EnergyOf(device);
  if (!energy) return std::nullopt;
  Booked& booked = booked_[device.id];
  const auto before = std::exchange(booked.energy, energy);
  const TimePoint now = clock_.Now();
  const Seconds duration = now - std::exchange(booked.time, now);
  const auto present = recorder_->monitor().Now(*device.recorded);
  const bool is_idle = present.utilization.ok() && present.utilization.value().compute == 0.0;
  const bool was_idle = std::exchange(booked.was_idle, is_idle);
  if (!before) return std::nullopt;
  JobBook::Slice slice{.device = device.id,
                       .energy = energy->total - before->total,
                       .sigma = energy->sigma - before->sigma};
  for (const auto& [pid, utilisation] : std::exchange(booked.utilisation_of, {}))
    slice.samples.push_back({.pid = pid, .utilisation = utilisation});
  if (is_idle && was_idle && slice.samples.empty() && duration > kShortestIdleLook) {
    const Watts power = slice.energy / duration;
    booked.idle_power = std::min(booked.idle_power.value_or(power), power);
  }
  if (booked.idle_power) slice.idle = std::min(slice.energy, *booked.idle_power * duration);
  return slice;
}

TimePoint Daemon::SampleProcesses() {
  const std::set<std::string> devices = jobs_->DevicesWithSamples();
  for (const std::string& id : devices) {
    const NodeDevice* device = devices_->Find(id);
    DriverAccess* const driver =
        device == nullptr || device->gpu == nullptr ? nullptr : DriverAccessOf(*device->gpu);
    if (driver == nullptr) continue;
    WallTime since;
    {
      const std::lock_guard lock(mutex_);
      since = booked_[id].sampled_until;
    }
    // Not what was used before the daemon was asked.
    since = std::max(since, clock_.WallNow() - std::chrono::seconds(5));
    const auto samples = driver->ProcessSamples(since);
    if (!samples.ok()) {
      log::Debug("{}: {}", id, samples.error().message);
      continue;
    }
    const std::lock_guard lock(mutex_);
    Booked& booked = booked_[id];
    for (const ProcessSample& sample : samples.value()) {
      booked.utilisation_of[sample.pid] += sample.compute;
      booked.sampled_until = std::max(booked.sampled_until, sample.time);
    }
  }
  return devices.empty() ? Ticker::kWhenWoken : clock_.Now() + kSamplePeriod;
}

Status Daemon::Stop() {
  Status stopped = Ok();
  if (configuration()->stop_policy == StopPolicy::kRestore) stopped = RestoreAll();
  // Those who follow have seen the ends of leases by now.
  events_->EndAll();
  streams_->EndAll();
  waiting_->GiveUpAll();
  return stopped;
}

Status Daemon::RestoreAll() {
  const auto knobs = book_->TurnedKnobs();
  book_->EndAll({}, EndReason::kStopped);
  const TimePoint until = clock_.Now() + kLongestStop;
  bool settled = true;
  for (const wire::KnobKey& knob : knobs) {
    desk_->Wake(knob);
    settled = desk_->WaitUntilSettled(knob, std::max(Seconds(0), until - clock_.Now())) && settled;
  }
  if (settled && CountRestoring(book_->CountLeases()) == 0) return Ok();
  return Error{ErrorCode::kUnavailable,
               "not every knob could be put back: zeusd restore --all tries again"};
}

std::shared_ptr<const Configuration> Daemon::configuration() const {
  const std::lock_guard lock(mutex_);
  return configuration_;
}

Grant Daemon::GrantOf(const Caller& caller) const { return GrantOf(*configuration(), caller); }

Grant Daemon::GrantOf(const Configuration& rules, const Caller& caller) const {
  CallerContext context;
  if (pods_ && !caller.cgroup.empty()) context.pod_name_space = pods_->NamespaceOf(caller.cgroup);
  return GrantFor(rules, caller, context);
}

bool Daemon::Allows(const Configuration& rules, const Caller& owner,
                    const wire::LeaseView& lease) const {
  Grant grant = GrantOf(rules, owner);
  if (grant.admin()) return true;
  if (grant.devices_of_jobs) grant.devices.merge(jobs_->DevicesOf(owner));
  const bool site = lease.lease_class == wire::LeaseClass::kSite;
  if (site && !grant.scopes.Has(Scope::kBudget)) return false;
  if (lease.lease_class == wire::LeaseClass::kJob && !grant.scopes.Has(Scope::kJob)) return false;
  return std::ranges::all_of(lease.knobs, [&](const wire::KnobView& knob) {
    const wire::KnobKey& key = knob.request.key;
    const bool of_budget = site && std::holds_alternative<wire::AtMost>(knob.request.demand);
    if (!of_budget && !grant.scopes.Has(ControlOf(key.knob))) return false;
    if (!grant.all_devices && !grant.devices.contains(key.device)) return false;
    const auto bounds = grant.bounds.find(key.knob);
    return bounds == grant.bounds.end() || IsWithin(bounds->second, knob.request.demand);
  });
}

std::size_t Daemon::Reload(Configuration configuration) {
  auto fresh = std::make_shared<const Configuration>(std::move(configuration));
  {
    const std::lock_guard lock(mutex_);
    configuration_ = fresh;
  }
  ++configuration_number_;
  cpu_energy_period_ = fresh->cpu_energy_period;
  desk_->SetForeignPolicy(fresh->foreign);
  desk_->SetBounds(fresh->bounds);
  const std::size_t revoked = book_->Revoke([&](const Caller& owner, const wire::LeaseView& lease) {
    return Allows(*fresh, owner, lease);
  });
  const Json notice = {{"message", "the configuration was read again"}, {"leases_ended", revoked}};
  events_->Publish({.kind = EventKind::kNotice, .data = JsonText(notice)});
  return revoked;
}

OrRefusal<wire::LeaseView> Daemon::Create(const Caller& caller, const Grant& grant,
                                          const wire::LeaseSpec& spec) {
  OrRefusal<wire::LeaseView> created = book_->Create(caller, grant, spec);
  const auto* lease = std::get_if<wire::LeaseView>(&created);
  if (lease == nullptr) return created;
  if (lease->holder == wire::HolderKind::kProcess && caller.pidfd)
    if (const Status watched = watch_->Add(lease->id, caller.pidfd); !watched.ok()) {
      (void)book_->End(DaemonItself(), EverythingGranted(), lease->id, EndReason::kFailed);
      return wire::LeaseRefusal{.kind = wire::LeaseRefusal::Kind::kUnavailable,
                                .message = watched.error().message};
    }
  // A job that ended meanwhile could not end a lease that was not there yet.
  if (lease->holder == wire::HolderKind::kJob && !jobs_->Runs(lease->job))
    book_->JobEnded(lease->job);
  if (lease->expires_in) DeadlinesChanged();
  return created;
}

OrRefusal<wire::LeaseView> Daemon::HandOver(const Caller& caller, const Grant& grant,
                                            std::string_view lease, std::int64_t pid) {
  using Kind = wire::LeaseRefusal::Kind;
  auto process = ProcessAsSeenBy(caller, pid);
  if (!process.ok())
    return wire::LeaseRefusal{.kind = Kind::kMalformed, .message = process.error().message};
  auto pidfd = OpenPidfd(process.value());
  if (!pidfd.ok())
    return wire::LeaseRefusal{.kind = Kind::kMalformed, .message = pidfd.error().message};
  const Holder holder{
      .kind = wire::HolderKind::kProcess, .process = process.value(), .pidfd = pidfd.value()};
  OrRefusal<wire::LeaseView> changed = book_->HandOver(caller, grant, lease, holder);
  if (std::holds_alternative<wire::LeaseView>(changed)) {
    const std::string key(lease);
    watch_->Remove(key);
    if (!watch_->Add(key, pidfd.value()).ok()) book_->ProcessEnded(key);
  }
  return changed;
}

std::optional<Status> Daemon::Settled(const wire::LeaseView& lease) const {
  using wire::LeaseState;
  if (lease.state == LeaseState::kActive || lease.state == LeaseState::kSuspended) {
    // A replacement of its requests may have been taken back.
    if (const auto trouble = book_->TroubleOf(lease.id)) return *trouble;
    return Ok();
  }
  if (lease.state == LeaseState::kApplying || lease.state == LeaseState::kRestoring)
    return std::nullopt;
  if (const auto trouble = book_->TroubleOf(lease.id)) return *trouble;
  return Error{ErrorCode::kUnavailable,
               fmt::format("the lease ended before its knobs were set: {}", lease.end_reason)};
}

void Daemon::LeaseChanged(const std::string& lease) {
  waiting_->Notify(lease);
  const auto found = book_->View(DaemonItself(), EverythingGranted(), lease);
  const auto* view = std::get_if<wire::LeaseView>(&found);
  if (view == nullptr) return;
  if (view->state == wire::LeaseState::kEnded) {
    const std::lock_guard lock(mutex_);
    if (watch_) watch_->Remove(lease);
  }
  events_->Publish({.kind = EventKind::kLease,
                    .device = view->knobs.empty() ? "" : view->knobs.front().request.key.device,
                    .subject = view->subject,
                    .data = JsonText(wire::ToJson(*view))});
}

void Daemon::KnobReported(const wire::KnobKey& knob, const KnobReport& report) {
  std::string data = JsonText(KnobEvent(knob, report));
  {
    const std::lock_guard lock(mutex_);
    std::string& shown = shown_[knob];
    if (shown == data) return;
    shown = data;
  }
  events_->Publish({.kind = EventKind::kKnob, .device = knob.device, .data = std::move(data)});
}

}  // namespace zeus::daemon
