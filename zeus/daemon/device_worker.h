#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/daemon/device_desk.h"
#include "zeus/daemon/knob_desk.h"
#include "zeus/daemon/knob_worker.h"
#include "zeus/daemon/persistence_worker.h"
#include "zeus/daemon/watched_actuator.h"
#include "zeus/device/cpu_package.h"
#include "zeus/device/gpu.h"

namespace zeus::daemon {

// The present rules and the ends of waits, shared by the workers of a desk. Thread-safe.
struct DeskRules {
  mutable std::mutex mutex;
  mutable std::condition_variable changed;          // A worker has served a knob.
  ForeignPolicy foreign = ForeignPolicy::kRespect;  // Guarded by mutex.
  std::map<wire::LeaseKnob, KnobBounds> bounds{};   // Guarded by mutex.
  std::atomic<bool> stopping{false};
};

// The knobs of one device and what is to be done with them. Step() runs on the thread of the
// device; the other members are thread-safe and never wait for the driver.
class DeviceWorker {
 public:
  // One of the pointers is null.
  struct Device {
    Gpu* gpu = nullptr;
    CpuPackage* cpu = nullptr;

    std::string key() const;  // As KnobKey has it.
    const std::string& name() const;
  };

  DeviceWorker(Device device, DeskPlaces places, const DeviceDesk::Options& options,
               std::shared_ptr<DeskRules> rules);

  // To be called before the first Step().
  void Serve(ClaimSource& source) { source_ = &source; }

  // Serves the knobs that are woken or due; returns when to come again, in real time.
  TimePoint Step();
  // Says once that the worker does not return from its driver. Called from another thread.
  void ReportIfStuck();

  // False for a knob that the device does not have.
  bool Wake(wire::LeaseKnob knob);
  void WakeAll();
  void BeginMaintenance(Seconds duration);
  void EndMaintenance();
  void Abandon() { watch_.Abandon(); }

  const std::string& key() const { return key_; }
  Status Ready() const;
  bool prepared() const;  // It has served all knobs once, or the device cannot be asked.
  bool AllReleased() const;
  // During a maintenance: whether the knobs are back and the driver is closed, so that the device
  // may be reset. An error once it could not be closed; nullopt before.
  std::optional<Status> Free() const;
  // Whether all wakes of the knob were heeded, and the version that was heeded.
  bool Settled(wire::LeaseKnob knob, std::uint64_t version) const;

  std::optional<KnobFacts> Find(wire::LeaseKnob knob) const;
  std::vector<KnobFacts> Knobs() const;
  std::optional<KnobReport> Latest(wire::LeaseKnob knob) const;
  DeviceDesk::DeviceState State() const;

 private:
  // The view of a knob that other threads have.
  struct Slot {
    std::optional<KnobChoices> choices{};  // The device's own; nullopt for persistence.
    std::optional<Watts> default_limit{};  // As KnobFacts has it, like the next.
    std::optional<Persistence> mode{};
    std::uint64_t wakes = 1;
    std::uint64_t heeded = 0;
    TimePoint due = TimePoint::max();
    std::optional<KnobReport> latest{};
    bool taken = false;
    bool restore_pending = false;
    std::uint64_t foreign_changes = 0;
  };
  // One knob that is to be served in this step.
  struct Work {
    wire::LeaseKnob knob;
    std::uint64_t wakes;
    KnobRules rules{};
    Claims claims{};
  };

  wire::KnobKey KeyOf(wire::LeaseKnob knob) const { return {.device = key_, .knob = knob}; }
  void PrepareKnobs();
  Status PrepareKnob(wire::LeaseKnob knob);
  Result<std::unique_ptr<KnobActuator>> MakeKnob(wire::LeaseKnob knob);
  std::optional<Watts> ReadDefaultLimit();
  std::vector<Work> CollectWork();
  KnobRules RulesOf(wire::LeaseKnob knob) const;
  void ServePersistence(const std::optional<Work>& own, bool needed);
  void ServeKnob(const Work& work);
  void Publish(const Work& work, KnobReport report, Slot seen);
  bool OthersTaken() const;
  void LetGo();
  void TakeBack();
  TimePoint NextStep();
  bool InMaintenance() const;
  Error Stuck() const;

  const Device device_;
  const std::string key_;
  const DeskPlaces places_;
  const DeviceDesk::Options options_;
  const bool may_raise_;
  const std::shared_ptr<DeskRules> rules_;
  ClaimSource* source_ = nullptr;
  CallWatch watch_;
  std::atomic<bool> prepare_now_{false};
  bool let_go_ = false;  // The driver is closed; used by the device's thread only.

  // Used by the device's thread only.
  std::map<wire::LeaseKnob, std::unique_ptr<KnobWorker>> workers_;
  std::unique_ptr<PersistenceWorker> persistence_;
  std::vector<wire::LeaseKnob> missing_;  // Knobs that could not be asked for yet.
  TimePoint prepare_again_{};

  mutable std::mutex mutex_;
  std::map<wire::LeaseKnob, Slot> slots_;         // Guarded by mutex_.
  bool prepared_ = false;                         // Guarded by mutex_.
  bool lost_ = false;                             // Guarded by mutex_.
  std::optional<TimePoint> maintenance_until_{};  // Guarded by mutex_.
  std::optional<Status> free_{};                  // Guarded by mutex_. See Free().
  bool stuck_told_ = false;                       // Used by ReportIfStuck() only.
};

}  // namespace zeus::daemon
