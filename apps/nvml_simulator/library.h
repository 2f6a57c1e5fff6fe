#pragma once

#include <cmath>
#include <functional>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/file_descriptor.h"
#include "zeus/base/random.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/device/nvml/nvml_abi.h"
#include "zeus/device/sim/shared_node.h"

// Marks a function of NVML's C interface. Everything else in the library stays hidden.
#define NVML_FUNCTION extern "C" __attribute__((visibility("default"))) zeus::nvml::Return

namespace zeus::nvml_simulator {

// Copies text by NVML's rule: the caller's buffer must hold the text and its terminator.
inline nvml::Return CopyText(std::string_view text, char* buffer, unsigned length) {
  if (length < text.size() + 1) return nvml::kInsufficientSize;
  text.copy(buffer, text.size());
  buffer[text.size()] = '\0';
  return nvml::kSuccess;
}

// Conversions to NVML's units: milliwatts, megahertz, whole degrees and percent.

inline unsigned ToMilliwatts(Watts power) {
  return static_cast<unsigned>(std::lround(std::fmax(power.ToMilli(), 0.0)));
}

inline unsigned ToMegahertz(Hertz clock) {
  return static_cast<unsigned>(std::lround(clock.ToMega()));
}

inline unsigned ToDegrees(Celsius temperature) {
  return static_cast<unsigned>(std::lround(std::fmax(temperature.value(), 0.0)));
}

inline unsigned ToPercent(double share) { return static_cast<unsigned>(std::lround(share * 100)); }

// Opens the node that this process sees: the one named by ZEUS_SIM_NODE, else the node "default" if
// it runs, else a private one described by ZEUS_SIM ("2xA100"), else returns an error.
Result<sim::SharedNode> ChooseNode(Clock& clock);

using nvml::Device;
using nvml::Return;

// The state of a GPU at the moment of a call.
struct GpuCall {
  const sim::GpuCore& core;
  unsigned index;
  std::uint64_t seed;  // Seed of the node.
  const Clock& clock;
  bool power_fault;  // An injected fault hides the power from this call.

  Result<Watts> Power(PowerKind kind) const;
  int performance_state() const {  // nvmlPstates_t
    return core.throttle().idle ? nvml::kPerformanceStateIdle : nvml::kPerformanceStateMax;
  }
  long long Timestamp() const;  // In microseconds since 1970.
};

// The process-wide state behind the C functions: a node while initialised, and per GPU a private
// copy that is advanced from call to call. There is one instance, because C functions have no
// object to hold it. Thread-safe; a forked child starts uninitialised, as with the real library.
class Library {
 public:
  static Library& Instance();

  // Returns kNoPermission or kLibRmVersionMismatch (a node of another build) if that is why there
  // is no node, and kDriverNotLoaded for every other reason.
  Return Initialize();
  // Returns why the last Initialize() failed with this code; null if it did not. The pointer is
  // valid for ever.
  const char* InitializationError(Return code);
  Return Shutdown();

  // Runs `body` for a call that concerns no GPU. A null among `arguments` is an invalid argument.
  using NodeBody = std::function<Return(const sim::SharedNode&)>;
  Return OnNode(std::initializer_list<const void*> arguments, const NodeBody& body);

  // Runs `body` on the present state of a GPU, unless a fault makes the call fail.
  template <class Body>
  Return Read(Device device, std::initializer_list<const void*> arguments, Body&& body) {
    return Call(device, arguments, [&](GpuState& gpu) -> Return {
      return body(GpuCall{.core = gpu.view->core,
                          .index = gpu.index,
                          .seed = node_->seed(),
                          .clock = clock_,
                          .power_fault = HidesPower(gpu)});
    });
  }

  // Opens a GPU until the last Shutdown(), as searches for handles do: the process then has a
  // descriptor by the name of "zeus-sim-gpu<index>", where with a real driver it has /dev/nvidia0.
  Return OpenDevice(Device device);

  // Changes a GPU; allowed for root only, as with the real library.
  using Change = std::function<Status(sim::GpuCore&)>;
  Return Write(Device device, const Change& change);

  // Real time, which passes as in the program that calls.
  Clock& clock() { return clock_; }

  // Returns a handle, which callers must not dereference.
  static Device MakeHandle(unsigned index);

  void LockForFork() { mutex_->lock(); }
  void UnlockAfterFork() { mutex_->unlock(); }
  void AbandonAfterFork();

 private:
  struct GpuState {
    std::mutex mutex;
    unsigned index = 0;
    std::unique_ptr<sim::SharedNode::View> view;  // Null before the first call.
    Random random{0};                        // Decides about faults that hit a share of the calls.
    std::unique_ptr<FileDescriptor> opened;  // Null before OpenDevice().
  };

  // Runs `body` under the lock of the GPU. A call that a fault delays waits outside of all locks,
  // and then sees the state after the wait.
  using GpuBody = std::function<Return(GpuState&)>;
  using Arguments = std::initializer_list<const void*>;
  Return Call(Device device, Arguments arguments, const GpuBody& body);
  // Does the same without waiting: if `delay` is given and the call is to be delayed, only sets
  // `delay`.
  Return Attempt(Device device, Arguments arguments, const GpuBody& body,
                 std::optional<Seconds>* delay);
  Return Prepare(Device device, Arguments arguments, GpuState*& gpu);
  Return Refresh(GpuState& gpu);
  Return RefuseChange(GpuState& gpu);
  static bool HidesPower(GpuState& gpu);
  static bool Strikes(GpuState& gpu, const std::optional<sim::Fault>& fault);

  // Held exclusively by Initialize() and Shutdown(), shared by calls. Replaced in a forked child.
  std::unique_ptr<std::shared_mutex> mutex_ = std::make_unique<std::shared_mutex>();
  SystemClock clock_;
  unsigned references_ = 0;
  Return initialization_ = nvml::kSuccess;
  std::set<std::string> initialization_errors_;  // Never shrinks: C callers keep pointers.
  const char* initialization_error_ = nullptr;
  std::unique_ptr<sim::SharedNode> node_;
  std::vector<std::unique_ptr<GpuState>> gpus_;

  // The objects of the parent, which a forked child may neither use nor destroy.
  struct Abandoned {
    std::unique_ptr<std::shared_mutex> mutex;
    std::unique_ptr<sim::SharedNode> node;
    std::vector<std::unique_ptr<GpuState>> gpus;
  };
  std::vector<Abandoned> abandoned_;
};

// Stores what `select` reads from a GPU; it may be a constant.
template <class Value, class Select>
Return Give(Device device, Value* value, Select&& select) {
  return Library::Instance().Read(device, {value}, [&](const GpuCall& gpu) {
    if constexpr (std::is_invocable_v<Select, const GpuCall&>)
      *value = static_cast<Value>(select(gpu));
    else
      *value = static_cast<Value>(select);
    return nvml::kSuccess;
  });
}

// Maps an error to NVML's return code.
Return ToReturn(const Error& error);

// Stores the value of a result, or returns the code of its error.
template <class T, class Out, class Convert>
Return Answer(const Result<T>& result, Out* out, Convert&& convert) {
  if (!result.ok()) return ToReturn(result.error());
  *out = convert(result.value());
  return nvml::kSuccess;
}

}  // namespace zeus::nvml_simulator
