#include "apps/nvml_simulator/library.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "zeus/device/privilege.h"
#include "zeus/device/sim/node_directory.h"

namespace zeus::nvml_simulator {
namespace {

std::string_view Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Opens the node for writing if permitted; each call decides by itself whether a change is allowed.
Result<sim::SharedNode> Open(const sim::NodeDirectory& directory, std::string_view name) {
  auto node = directory.Open(name, sim::Access::kWrite);
  if (!node.ok() && node.error().code == ErrorCode::kPermissionDenied)
    return directory.Open(name, sim::Access::kRead);
  return node;
}

}  // namespace

Result<sim::SharedNode> ChooseNode(Clock& clock) {
  ZEUS_TRY(const sim::NodeDirectory directory, sim::NodeDirectory::FromEnvironment(clock));
  if (const auto name = Environment("ZEUS_SIM_NODE"); !name.empty()) return Open(directory, name);
  auto shared = Open(directory, sim::kDefaultNodeName);
  if (shared.ok()) return shared;
  const auto description = Environment("ZEUS_SIM");
  if (description.empty()) return shared;
  sim::NodeSpec spec;
  auto gpus = sim::ParseGpuList(description);
  if (!gpus.ok()) return std::move(gpus).error().While("ZEUS_SIM");
  spec.gpus = std::move(gpus).value();
  return sim::SharedNode::CreatePrivate(spec, clock);
}

namespace {

// A handle is the address of one of these bytes: it is cheap to check, and a wrong one does no
// harm.
std::array<char, sim::kMaxGpusPerNode> handles;

Return WhyNotInitialized(ErrorCode code) {
  if (code == ErrorCode::kPermissionDenied) return nvml::kNoPermission;
  if (code == ErrorCode::kNotSupported) return nvml::kLibRmVersionMismatch;
  return nvml::kDriverNotLoaded;
}

}  // namespace

Library& Library::Instance() {
  // The instance is never destroyed, because programs call NVML from exit handlers.
  static Library* const instance = [] {
    ::pthread_atfork([] { Instance().LockForFork(); }, [] { Instance().UnlockAfterFork(); },
                     [] { Instance().AbandonAfterFork(); });
    return new Library;
  }();
  return *instance;
}

Return Library::Initialize() {
  const std::unique_lock guard(*mutex_);
  if (references_ == 0) {
    auto node = ChooseNode(clock_);
    if (!node.ok()) {
      initialization_error_ = initialization_errors_.insert(node.error().message).first->c_str();
      initialization_ = WhyNotInitialized(node.error().code);
      return initialization_;
    }
    initialization_ = nvml::kSuccess;
    node_ = std::make_unique<sim::SharedNode>(std::move(node).value());
    const Random random(node_->seed() ^ static_cast<std::uint64_t>(::getpid()));
    for (unsigned i = 0; i < node_->gpu_count(); ++i) {
      auto gpu = std::make_unique<GpuState>();
      gpu->index = i;
      gpu->random = random.Fork("faults of gpu " + std::to_string(i));
      gpus_.push_back(std::move(gpu));
    }
  }
  ++references_;
  return nvml::kSuccess;
}

const char* Library::InitializationError(Return code) {
  const std::shared_lock guard(*mutex_);
  const bool asked = code != nvml::kSuccess && code == initialization_;
  return asked ? initialization_error_ : nullptr;
}

Return Library::Shutdown() {
  const std::unique_lock guard(*mutex_);
  if (references_ == 0) return nvml::kUninitialized;
  if (--references_ > 0) return nvml::kSuccess;
  gpus_.clear();
  node_.reset();
  return nvml::kSuccess;
}

void Library::AbandonAfterFork() {
  // Locks inside these objects may have been held by threads that do not exist in the child, so the
  // objects are left alone. glibc lets only the locking thread unlock the mutex, and the child's
  // thread has another id, so the child gets a new mutex.
  abandoned_.push_back({.mutex = std::exchange(mutex_, std::make_unique<std::shared_mutex>()),
                        .node = std::move(node_),
                        .gpus = std::exchange(gpus_, {})});
  references_ = 0;
}

Device Library::MakeHandle(unsigned index) { return reinterpret_cast<Device>(&handles[index]); }

Return Library::OnNode(std::initializer_list<const void*> arguments, const NodeBody& body) {
  const std::shared_lock guard(*mutex_);
  if (!node_) return nvml::kUninitialized;
  if (std::find(arguments.begin(), arguments.end(), nullptr) != arguments.end())
    return nvml::kInvalidArgument;
  return body(*node_);
}

Return Library::Prepare(Device device, std::initializer_list<const void*> arguments,
                        GpuState*& gpu) {
  if (!node_) return nvml::kUninitialized;
  if (std::find(arguments.begin(), arguments.end(), nullptr) != arguments.end())
    return nvml::kInvalidArgument;
  const auto index =
      reinterpret_cast<std::uintptr_t>(device) - reinterpret_cast<std::uintptr_t>(handles.data());
  if (index >= gpus_.size()) return nvml::kInvalidArgument;
  gpu = gpus_[index].get();
  return nvml::kSuccess;
}

bool Library::Strikes(GpuState& gpu, const std::optional<sim::Fault>& fault) {
  return fault && (fault->probability >= 1.0 || gpu.random.Uniform() < fault->probability);
}

bool Library::HidesPower(GpuState& gpu) {
  return Strikes(gpu, gpu.view->core.fault(sim::FaultKind::kPowerUnavailable));
}

Return Library::Refresh(GpuState& gpu) {
  if (node_->stopped()) return nvml::kGpuIsLost;
  // Refreshing fails only if the file of the node is damaged.
  if (gpu.view) {
    if (!node_->Refresh(gpu.index, node_->Now(), *gpu.view).ok()) return nvml::kUnknown;
  } else {
    auto view = node_->Read(gpu.index, node_->Now());
    if (!view.ok()) return nvml::kUnknown;
    gpu.view = std::make_unique<sim::SharedNode::View>(std::move(view).value());
  }
  return nvml::kSuccess;
}

Return Library::Attempt(Device device, Arguments arguments, const GpuBody& body,
                        std::optional<Seconds>* delay) {
  const std::shared_lock guard(*mutex_);
  GpuState* gpu = nullptr;
  if (const Return failure = Prepare(device, arguments, gpu); failure != nvml::kSuccess)
    return failure;
  const std::lock_guard lock(gpu->mutex);
  if (const Return failure = Refresh(*gpu); failure != nvml::kSuccess) return failure;
  const sim::GpuCore& core = gpu->view->core;
  if (delay != nullptr) {
    if (const auto slow = core.fault(sim::FaultKind::kSlowCall); slow && Strikes(*gpu, slow)) {
      *delay = slow->delay;
      return nvml::kSuccess;
    }
  }
  if (Strikes(*gpu, core.fault(sim::FaultKind::kLost))) return nvml::kGpuIsLost;
  return body(*gpu);
}

Return Library::Call(Device device, Arguments arguments, const GpuBody& body) {
  std::optional<Seconds> delay;
  const Return outcome = Attempt(device, arguments, body, &delay);
  if (!delay) return outcome;
  clock_.SleepFor(*delay);
  return Attempt(device, arguments, body, nullptr);
}

Return Library::RefuseChange(GpuState& gpu) {
  const sim::GpuCore& core = gpu.view->core;
  if (Strikes(gpu, core.fault(sim::FaultKind::kSetterUnsupported))) return nvml::kNotSupported;
  // NVIDIA's driver asks for CAP_SYS_ADMIN with every call, not for a user.
  if (CurrentPrivilege() != Privilege::kRoot) return nvml::kNoPermission;
  if (Strikes(gpu, core.fault(sim::FaultKind::kNoPermission))) return nvml::kNoPermission;
  return nvml::kSuccess;
}

Return Library::OpenDevice(Device device) {
  return Call(device, {}, [](GpuState& gpu) -> Return {
    if (gpu.opened) return nvml::kSuccess;
    const std::string name = "zeus-sim-gpu" + std::to_string(gpu.index);
    gpu.opened = std::make_unique<FileDescriptor>(::memfd_create(name.c_str(), MFD_CLOEXEC));
    return nvml::kSuccess;
  });
}

Return Library::Write(Device device, const Change& change) {
  return Call(device, {}, [&](GpuState& gpu) -> Return {
    if (const Return failure = RefuseChange(gpu); failure != nvml::kSuccess) return failure;
    const Status status = node_->Update(gpu.index, change);
    if (status.ok()) return nvml::kSuccess;
    // Another process held the lock of the GPU for too long.
    if (status.error().code == ErrorCode::kUnavailable) return nvml::kTimeout;
    return ToReturn(status.error());
  });
}

Result<Watts> GpuCall::Power(PowerKind kind) const {
  if (power_fault) return Error{ErrorCode::kUnavailable, "power is not available"};
  return core.power(kind);
}

long long GpuCall::Timestamp() const { return clock.WallNow().time_since_epoch().count(); }

Return ToReturn(const Error& error) {
  switch (error.code) {
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kConflict:
      return nvml::kInvalidArgument;
    case ErrorCode::kNotFound:
      return nvml::kNotFound;
    case ErrorCode::kNotSupported:
      return nvml::kNotSupported;
    case ErrorCode::kPermissionDenied:
      return nvml::kNoPermission;
    case ErrorCode::kUnavailable:
      return nvml::kNoData;
    case ErrorCode::kInternal:
      return nvml::kUnknown;
  }
  return nvml::kUnknown;
}

}  // namespace zeus::nvml_simulator
