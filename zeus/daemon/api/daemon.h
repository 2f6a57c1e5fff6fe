#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/process.h"
#include "zeus/base/result.h"
#include "zeus/base/ticker.h"
#include "zeus/daemon/access_rules.h"
#include "zeus/daemon/api/knob_timings.h"
#include "zeus/daemon/api/polled_streams.h"
#include "zeus/daemon/api/waiting_answers.h"
#include "zeus/daemon/audit_log.h"
#include "zeus/daemon/board.h"
#include "zeus/daemon/device_desk.h"
#include "zeus/daemon/holder_watch.h"
#include "zeus/daemon/job_book.h"
#include "zeus/daemon/job_folder.h"
#include "zeus/daemon/lease_book.h"
#include "zeus/daemon/pod_watch.h"
#include "zeus/device/knobs/knob_journal.h"
#include "zeus/live/event_stream.h"
#include "zeus/live/node_devices.h"
#include "zeus/live/node_history.h"
#include "zeus/monitor/node_monitor.h"

namespace zeus::daemon {

using live::EventFilter;
using live::EventKind;
using live::EventStreams;
using live::NodeDevice;
using live::NodeDevices;
using live::ParseEventKind;
using live::ReadingText;

struct DaemonOptions {
  std::filesystem::path knob_folder{};    // The folder of the journal; must exist.
  std::filesystem::path state_file{};     // leases.json; empty: state is not kept.
  std::filesystem::path standing_file{};  // standing.json
  std::filesystem::path jobs_file{};      // Empty: jobs do not survive a restart.
  std::filesystem::path audit_file{};     // Empty: entries are kept in memory only.
  // Where hooks of schedulers leave messages while no daemon answers; empty: nowhere.
  std::filesystem::path pending_jobs{};
  std::filesystem::path job_folder{};                 // See JobFolder; empty: none.
  std::map<std::string, std::string> device_files{};  // By UUID: "/dev/nvidia0".
  Seconds longest_apply{12};                          // Beyond it a request for a lease fails.
  bool recorder_thread = true;
  BootClock boot_clock = CurrentBootTime;
  // Where this node is one of Kubernetes: how pods are found. The daemon sets the callbacks.
  std::optional<PodWatch::Options> pods{};
  // For tests: see DeviceDesk::Options.
  std::function<std::unique_ptr<KnobActuator>(std::unique_ptr<KnobActuator>)> wrap{};
};

// The node daemon without its sockets: leases, devices, holders, jobs, the recorder and the audit
// log, put together. Thread-safe. The clock must outlive it; it must outlive the HTTP server, whose
// answers it completes.
class Daemon {
 public:
  // This node's side of a cluster's power budget, as people look at it.
  struct BudgetState {
    std::string server{};
    std::string node{};                  // Its name in the budget.
    std::optional<TimePoint> granted{};  // When the latest grant came; nullopt: none so far.
    bool fallback = true;                // The fallback holds, and no grant.
    std::string trouble{};               // Why the latest report brought no grant.
  };
  // Opens the recorder and the audit log. No knob is touched before Start().
  static Result<std::unique_ptr<Daemon>> Open(Clock& clock, Node node, Configuration configuration,
                                              DaemonOptions options);
  ~Daemon();  // Knobs stay as they are: Stop() puts them back.
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  // Repairs what earlier processes left changed, and takes over the leases of an earlier run whose
  // holders still live. To be called before the first request.
  Status Start();
  // Ends all leases but standing ones and waits until their knobs are back, or keeps everything for
  // the next start: as the configuration says. kUnavailable when a knob could not be put back yet.
  Status Stop();

  // The rules from now on. Leases that they forbid end; returns how many do.
  std::size_t Reload(Configuration configuration);
  std::shared_ptr<const Configuration> configuration() const;
  // Grows with every Reload(): what was derived from an older configuration is void.
  std::uint64_t configuration_number() const { return configuration_number_; }

  // Ok, or why no knob can be set: kUnavailable.
  Status Ready() const { return journal_->Usable(); }

  // Returns what the caller may do now. Which devices its jobs have is found out when it asks for
  // one.
  Grant GrantOf(const Caller& caller) const;

  // As those of the book, and the holder is watched.
  OrRefusal<wire::LeaseView> Create(const Caller& caller, const Grant& grant,
                                    const wire::LeaseSpec& spec);
  OrRefusal<wire::LeaseView> HandOver(const Caller& caller, const Grant& grant,
                                      std::string_view lease, std::int64_t pid);
  // Makes the book look at its deadlines again.
  void DeadlinesChanged() { clerk_->Wake(); }

  // Books what the devices have used since the last time to their jobs. Before a job begins or ends
  // that is everything; where somebody only asks, devices that several jobs share wait for the next
  // look at their processes, since nobody knows whose the energy in between is.
  enum class Booking { kEverything, kWhatIsKnown };
  void BookEnergy(Booking booking = Booking::kEverything);

  // Registers a job for the caller, with the limit that it asks for. A limit that is refused leaves
  // the job without one, and is told.
  struct JobStart {
    std::string id{};
    std::string limit_refused{};
  };
  Result<JobStart> BeginJob(const Caller& caller, const Grant& grant, JobSpec spec,
                            std::optional<WallTime> begun = {});
  // As that of the book. A job that goes on has its limit again.
  Status BeginStep(const Caller& caller, const Grant& grant, std::string_view job,
                   const StepSpec& step);

  // Whether the knobs of a lease agree with it: nullopt while they do not, else Ok or why not.
  std::optional<Status> Settled(const wire::LeaseView& lease) const;

  Clock& clock() { return clock_; }
  const DaemonOptions& options() const { return options_; }
  NodeMonitor& recorder() { return *recorder_; }
  const NodeBoards& boards() const { return *boards_; }
  const NodeDevices& devices() const { return *devices_; }
  live::NodeHistory& history() { return *history_; }
  AuditLog& audit() { return *audit_; }
  DeviceDesk& desk() { return *desk_; }
  LeaseBook& book() { return *book_; }
  JobBook& jobs() { return *jobs_; }
  const PodWatch* pods() const { return pods_.get(); }  // Null where there is no Kubernetes.
  EventStreams& events() { return *events_; }
  // The present readings of these devices (empty: of all) as one object; "" where there are none.
  std::string ReadingsOf(const std::set<std::string>& devices) const;
  // A client follows the events: those of readings are made as long as there are some.
  void Followed() {
    recorder_->Wake();
    teller_->Wake();
  }

  // The devices are recorded at full rate while somebody wants readings, and seldom otherwise: see
  // RecorderPause(). A client has asked for readings, and may do so again.
  void ReadingsWanted();
  // So many clients have the boards of readings.
  void SetBoardClients(std::size_t clients);
  // A job was registered, or a client follows polled streams.
  void RecorderWanted() {
    recorder_->Wake();
    if (sampler_) sampler_->Wake();
  }
  // The least time until the recorder looks at the devices again.
  Seconds RecorderPause() const;
  const KnobTimings& timings() const { return timings_; }
  void SetBudgetState(BudgetState state) {
    const std::lock_guard lock(mutex_);
    budget_ = std::move(state);
  }
  // nullopt where the node keeps to no budget.
  std::optional<BudgetState> budget_state() const {
    const std::lock_guard lock(mutex_);
    return budget_;
  }
  PolledStreams& streams() { return *streams_; }
  WaitingAnswers& waiting() { return *waiting_; }

 private:
  Daemon(Clock& clock, DaemonOptions options, Configuration configuration);
  Status OpenRecorder(Node node);
  Status Build(Node node);
  void LeaseChanged(const std::string& lease);
  void KnobReported(const wire::KnobKey& knob, const KnobReport& report);
  Status RestoreAll();
  TimePoint SampleProcesses();
  void WatchPods();
  std::optional<std::string> BoardOf(const std::string& part);
  void ShowJobs();
  Grant GrantOf(const Configuration& rules, const Caller& caller) const;
  Result<std::vector<std::string>> DevicesAt(const std::vector<std::int64_t>& positions) const;
  std::string LimitJob(const Caller& caller, const Grant& grant, const JobSpec& spec);
  void TakePendingJobs();
  void TakePendingJob(const std::filesystem::path& file);
  void NoteCounter(const std::string& device, const DeviceReading& reading);
  // Books what devices used while there was no daemon.
  void BookGap();
  bool Allows(const Configuration& rules, const Caller& owner, const wire::LeaseView& lease) const;
  TimePoint Step();

  // The part of a device that was booked so far, and what is known for its next slice.
  struct Booked {
    std::optional<NodeDevices::Energy> energy{};
    TimePoint time{};
    bool was_idle = false;
    std::optional<Watts> idle_power{};                // The lowest draw seen without work.
    std::map<std::int64_t, double> utilisation_of{};  // By pid, since the last slice.
    WallTime sampled_until{};
  };
  std::optional<JobBook::Slice> NextSlice(const NodeDevice& device);
  bool WaitsForSamples(const Booked& booked) const;

  Clock& clock_;
  const DaemonOptions options_;
  mutable std::mutex mutex_;
  std::shared_ptr<const Configuration> configuration_;  // Guarded by mutex_, as are the next two.
  std::map<wire::KnobKey, std::string> shown_{};        // The latest event of each knob.
  std::optional<BudgetState> budget_{};                 // Guarded by mutex_.
  std::map<std::string, Booked> booked_{};              // By device.
  std::mutex counters_mutex_;
  std::map<std::string, Joules> counters_{};  // Guarded by it. By name: as the driver shows them.
  KnobTimings timings_;
  std::atomic<std::uint64_t> configuration_number_ = 0;
  std::atomic<Seconds> cpu_energy_period_{Seconds(0)};
  std::atomic<std::size_t> board_clients_ = 0;
  std::atomic<TimePoint> wanted_at_{TimePoint::min()};  // When readings were asked for last.

  // In the order in which they need each other.
  std::unique_ptr<EventStreams> events_;
  std::unique_ptr<PolledStreams> streams_;
  std::unique_ptr<WaitingAnswers> waiting_;
  std::unique_ptr<NodeBoards> boards_;
  std::unique_ptr<JobBook> jobs_;
  std::unique_ptr<NodeMonitor> recorder_;  // Its thread asks those above whether it may rest.
  std::unique_ptr<NodeDevices> devices_;
  std::unique_ptr<live::NodeHistory> history_;
  std::unique_ptr<AuditLog> audit_;
  std::unique_ptr<KnobJournal> journal_;
  std::unique_ptr<DeviceDesk> desk_;
  std::unique_ptr<LeaseBook> book_;
  std::unique_ptr<HolderWatch> watch_;
  std::unique_ptr<PodWatch> pods_;
  std::map<std::string, std::string> boards_of_parts_{};  // Used by pods_ alone.
  std::mutex showing_;                                    // Later jobs are shown later.
  std::unique_ptr<JobFolder> job_folder_{};               // Null where it is not asked for.
  std::unique_ptr<Ticker> pod_asker_;  // Asks the kubelet; null where there is none.
  std::unique_ptr<Ticker> clerk_;      // Deadlines of leases, jobs.
  std::unique_ptr<Ticker> sampler_;    // Utilisation by processes; null where nothing tells it.
  std::unique_ptr<Ticker> teller_;     // Events of readings, and comments in silent streams.
};

// The daemon's own identity, for looking at everybody's leases.
const Caller& DaemonItself();
const Grant& EverythingGranted();

}  // namespace zeus::daemon
