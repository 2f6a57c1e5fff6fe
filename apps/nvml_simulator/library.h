#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <shared_mutex>
#include <string>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/random.h"
#include "zeus/base/result.h"
#include "zeus/device/nvml/nvml_abi.h"
#include "zeus/device/sim/shared_node.h"

namespace zeus::nvml_simulator {

using nvml::Device;
using nvml::Return;

// What a call gets to see of a GPU: its state at the moment of the call.
struct GpuCall {
  const sim::GpuCore& core;
  unsigned index;
  std::uint64_t seed;  // Of the node.
  const Clock& clock;
  bool power_fault;  // Power is not available to this call.

  Result<Watts> Power(PowerKind kind) const;
  long long Timestamp() const;  // Microseconds since 1970.
};

// The process-wide state behind the C functions: a node while initialised, and per GPU a private
// copy that is advanced from call to call. There is one instance, because C's functions have no
// object to carry it. Thread-safe; a forked child starts uninitialised, as with the real library.
class Library {
 public:
  static Library& Instance();

  // kNoPermission and kLibRmVersionMismatch (a node of another build) say why there is no node,
  // kDriverNotLoaded stands for everything else.
  Return Initialize();
  // Why the last Initialize() failed, if it did with this code; null otherwise. Valid for ever.
  const char* InitializationError(Return code);
  Return Shutdown();

  // Runs `body` for a call that concerns no GPU. Null among `arguments` is an invalid argument.
  using NodeBody = std::function<Return(const sim::SharedNode&)>;
  Return OnNode(std::initializer_list<const void*> arguments, const NodeBody& body);

  // Runs `body` on a GPU's present state after the faults that concern every call.
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

  // Changes a GPU: for root only, as with the real library.
  using Change = std::function<Status(sim::GpuCore&)>;
  Return Write(Device device, const Change& change);

  // Opaque to callers; never dereferenced.
  static Device HandleOf(unsigned index);

  void LockForFork() { mutex_->lock(); }
  void UnlockAfterFork() { mutex_->unlock(); }
  void AbandonAfterFork();

 private:
  struct GpuState {
    std::mutex mutex;
    unsigned index = 0;
    std::unique_ptr<sim::SharedNode::View> view;  // None before the first call.
    Random random{0};                             // For faults that hit a share of the calls.
  };

  // Runs `body` under the GPU's lock. A slow call waits outside of all locks, and then sees the
  // state after the wait.
  using GpuBody = std::function<Return(GpuState&)>;
  using Arguments = std::initializer_list<const void*>;
  Return Call(Device device, Arguments arguments, const GpuBody& body);
  // The same at once: if `delay` is given and the call is a slow one, only sets `delay`.
  Return Attempt(Device device, Arguments arguments, const GpuBody& body,
                 std::optional<Seconds>* delay);
  Return Prepare(Device device, Arguments arguments, GpuState*& gpu);
  Return Refresh(GpuState& gpu);
  Return RefuseChange(GpuState& gpu);
  static bool HidesPower(GpuState& gpu);
  static bool Strikes(GpuState& gpu, const std::optional<sim::Fault>& fault);

  // Exclusive to come and go, shared to call. Replaced in a forked child.
  std::unique_ptr<std::shared_mutex> mutex_ = std::make_unique<std::shared_mutex>();
  SystemClock clock_;
  unsigned references_ = 0;
  Return initialization_ = nvml::kSuccess;
  std::set<std::string> initialization_errors_;  // C callers keep pointers: none is ever removed.
  const char* initialization_error_ = nullptr;
  std::unique_ptr<sim::SharedNode> node_;
  std::vector<std::unique_ptr<GpuState>> gpus_;

  // What a fork()ed child may neither use nor destroy.
  struct Abandoned {
    std::unique_ptr<std::shared_mutex> mutex;
    std::unique_ptr<sim::SharedNode> node;
    std::vector<std::unique_ptr<GpuState>> gpus;
  };
  std::vector<Abandoned> abandoned_;
};

// The code a C caller gets for one of our errors.
Return ToReturn(const Error& error);

// Stores a Result's value, or says why there is none.
template <class T, class Out, class Convert>
Return Answer(const Result<T>& result, Out* out, Convert&& convert) {
  if (!result.ok()) return ToReturn(result.error());
  *out = convert(result.value());
  return nvml::kSuccess;
}

}  // namespace zeus::nvml_simulator
