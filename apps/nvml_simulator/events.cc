// NVML's event sets: a program waits until something happens to a GPU. Here a GPU that falls off
// the bus raises a critical Xid, and work that begins or ends changes the performance state.

#include <algorithm>
#include <cstring>
#include <list>
#include <mutex>
#include <vector>

#include "apps/nvml_simulator/library.h"

namespace zeus::nvml_simulator {
namespace {

constexpr unsigned long long kXidFellOffTheBus = 79;
constexpr unsigned long long kSupported = nvml::kEventSingleBitEcc | nvml::kEventDoubleBitEcc |
                                          nvml::kEventPerformanceState | nvml::kEventCriticalXid;
constexpr Seconds kPollPeriod{0.02};

// A GPU in a set and its state when it was looked at last.
struct Watched {
  Device device;
  unsigned long long types;
  bool lost;
  int performance_state;
};

// Programs keep a set as an opaque pointer, so a set stays where it is until it is freed. A set
// that one thread frees while another waits in it is gone for the waiting one as well.
class EventSets {
 public:
  static EventSets& Instance() {
    static auto* const instance = new EventSets;  // Used in exit handlers: never destroyed.
    return *instance;
  }

  nvml::EventSet Create() {
    const std::lock_guard guard(mutex_);
    return ToHandle(&sets_.emplace_back());
  }

  Return Free(nvml::EventSet handle) {
    const std::lock_guard guard(mutex_);
    const auto removed = sets_.remove_if([&](Set& set) { return ToHandle(&set) == handle; });
    return removed == 0 ? nvml::kInvalidArgument : nvml::kSuccess;
  }

  Return Register(nvml::EventSet handle, const Watched& watched) {
    const std::lock_guard guard(mutex_);
    Set* const set = Find(handle);
    if (set == nullptr) return nvml::kInvalidArgument;
    set->push_back(watched);
    return nvml::kSuccess;
  }

  // Stores the first event that has happened since the last look; kNoData if there is none.
  Return Take(nvml::EventSet handle, nvml::EventData& event) {
    const std::lock_guard guard(mutex_);
    Set* const set = Find(handle);
    if (set == nullptr) return nvml::kInvalidArgument;
    for (Watched& watched : *set)
      if (Look(watched, event)) return nvml::kSuccess;
    return nvml::kNoData;
  }

 private:
  using Set = std::vector<Watched>;

  static nvml::EventSet ToHandle(Set* set) { return reinterpret_cast<nvml::EventSet>(set); }

  Set* Find(nvml::EventSet handle) {
    for (Set& set : sets_)
      if (ToHandle(&set) == handle) return &set;
    return nullptr;
  }

  static bool Look(Watched& watched, nvml::EventData& event) {
    int state = watched.performance_state;
    const bool lost = Library::Instance().Read(watched.device, {}, [&](const GpuCall& gpu) {
      state = gpu.performance_state();
      return nvml::kSuccess;
    }) == nvml::kGpuIsLost;
    const bool fell = lost && !watched.lost;
    const bool changed = !lost && state != watched.performance_state;
    watched.lost = lost;
    watched.performance_state = state;
    event = {.device = watched.device,
             .type = fell ? nvml::kEventCriticalXid : nvml::kEventPerformanceState,
             .data = fell ? kXidFellOffTheBus : 0,
             .gpu_instance_id = nvml::kNoMigInstance,
             .compute_instance_id = nvml::kNoMigInstance};
    return (fell || changed) && (watched.types & event.type) != 0;
  }

  std::mutex mutex_;
  std::list<Set> sets_;
};

Return Initialized() {
  return Library::Instance().OnNode({}, [](const auto&) { return nvml::kSuccess; });
}

Return Wait(nvml::EventSet set, nvml::EventData* event, unsigned milliseconds) {
  if (event == nullptr) return nvml::kInvalidArgument;
  Clock& clock = Library::Instance().clock();
  const TimePoint deadline = clock.Now() + Seconds(milliseconds / 1000.0);
  while (true) {
    if (const Return failure = Initialized(); failure != nvml::kSuccess) return failure;
    const Return taken = EventSets::Instance().Take(set, *event);
    if (taken != nvml::kNoData) return taken;
    if (clock.Now() >= deadline) return nvml::kTimeout;
    clock.SleepUntil(std::min(deadline, clock.Now() + kPollPeriod));
  }
}

}  // namespace
}  // namespace zeus::nvml_simulator

using namespace zeus;
using namespace zeus::nvml_simulator;

NVML_FUNCTION nvmlDeviceGetSupportedEventTypes(Device device, unsigned long long* types) {
  return Give(device, types, kSupported);
}

NVML_FUNCTION nvmlEventSetCreate(nvml::EventSet* set) {
  return Library::Instance().OnNode({set}, [&](const auto&) {
    *set = EventSets::Instance().Create();
    return nvml::kSuccess;
  });
}

NVML_FUNCTION nvmlEventSetFree(nvml::EventSet set) {
  if (const Return failure = Initialized(); failure != nvml::kSuccess) return failure;
  return EventSets::Instance().Free(set);
}

NVML_FUNCTION nvmlDeviceRegisterEvents(Device device, unsigned long long types,
                                       nvml::EventSet set) {
  Watched watched{.device = device, .types = types, .lost = false, .performance_state = 0};
  const Return seen = Library::Instance().Read(device, {set}, [&](const GpuCall& gpu) -> Return {
    if ((types & ~kSupported) != 0) return nvml::kNotSupported;
    watched.performance_state = gpu.performance_state();
    return nvml::kSuccess;
  });
  return seen == nvml::kSuccess ? EventSets::Instance().Register(set, watched) : seen;
}

NVML_FUNCTION nvmlEventSetWait_v2(nvml::EventSet set, nvml::EventData* event,
                                  unsigned milliseconds) {
  return Wait(set, event, milliseconds);
}

// The older structure ends before the instances of MIG.
NVML_FUNCTION nvmlEventSetWait(nvml::EventSet set, nvml::EventData* event, unsigned milliseconds) {
  if (event == nullptr) return nvml::kInvalidArgument;
  nvml::EventData full{};
  const Return outcome = Wait(set, &full, milliseconds);
  if (outcome == nvml::kSuccess)
    std::memcpy(static_cast<void*>(event), &full, offsetof(nvml::EventData, gpu_instance_id));
  return outcome;
}
