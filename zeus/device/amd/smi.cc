#include "zeus/device/amd/smi.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "zeus/base/shared_library.h"
#include "zeus/device/amd/sysfs_board.h"
#include "zeus/device/privilege.h"

namespace zeus::amd {

Error SmiCaller::ErrorFor(std::uint32_t status, const char* name) const {
  for (const SmiStatus& row : statuses) {
    if (row.status != status) continue;
    const bool refused = row.code == ErrorCode::kPermissionDenied;
    return {row.code, fmt::format("{}: {}{}{} (status {})", name, row.meaning, refused ? "; " : "",
                                  refused ? RefusalAdvice() : "", status)};
  }
  return {ErrorCode::kInternal, fmt::format("{}: unknown status {}", name, status)};
}

Error SmiCaller::Missing(const char* name) const {
  return {ErrorCode::kNotSupported, fmt::format("this {} has no {}", library, name)};
}

Result<CounterSample> SampleFromSmi(std::uint64_t ticks, float microjoules_per_tick) {
  constexpr float kAnnounced = 15.3F;
  constexpr float kTolerance = 0.05F;  // Also covers 15.259, said by a library that says it right.
  if (ticks == std::numeric_limits<std::uint64_t>::max())
    return Error{ErrorCode::kNotSupported, "the library has no energy counter for this board"};
  if (std::abs(microjoules_per_tick - kAnnounced) < kTolerance)
    return CounterSample{.ticks = ticks, .tick = kEnergyTick};
  if (!(microjoules_per_tick > 0.0F) || !std::isfinite(microjoules_per_tick)) {
    return Error{ErrorCode::kUnavailable,
                 fmt::format("the library says that a tick of the energy counter is {} uJ",
                             microjoules_per_tick)};
  }
  return CounterSample{.ticks = ticks,
                       .tick = Joules::FromMicro(static_cast<double>(microjoules_per_tick))};
}

double MicrowattsPerUnit(const RawCap& cap) {
  constexpr std::uint64_t kMostWatts = 100'000;
  return cap.max < kMostWatts ? 1e6 : 1.0;
}

PowerCap CapFromSmi(const RawCap& cap) {
  const auto watts = [scale = MicrowattsPerUnit(cap)](std::uint64_t units) {
    return Watts::FromMicro(static_cast<double>(units) * scale);
  };
  return {.range = {.min = watts(cap.min), .max = watts(cap.max)},
          .default_limit = watts(cap.default_limit),
          .current = watts(cap.current)};
}

namespace {

bool LibraryCannot(const Error& error) {
  return error.code == ErrorCode::kNotSupported || error.code == ErrorCode::kNotFound;
}

// sysfs knows the board under names that do not depend on the library; the library may know a
// better model name than a number.
GpuIdentity Merge(GpuIdentity identity, const Smi::Device& device) {
  if (!device.model.empty() && identity.model.starts_with("AMD GPU "))
    identity.model = device.model;
  if (identity.uuid.empty()) identity.uuid = device.uuid;
  return identity;
}

}  // namespace

SmiBoard::SmiBoard(std::shared_ptr<Smi> smi, const Smi::Device& device,
                   std::unique_ptr<Board> beneath)
    : Board(Merge(beneath->identity(), device)),
      smi_(std::move(smi)),
      handle_(device.handle),
      beneath_(std::move(beneath)) {}

Result<CounterSample> SmiBoard::Energy() {
  auto sample = smi_->Energy(handle_);
  return !sample.ok() && LibraryCannot(sample.error()) ? beneath_->Energy() : sample;
}

Result<Watts> SmiBoard::Power(PowerKind kind) {
  auto power = smi_->Power(handle_, kind);
  return !power.ok() && LibraryCannot(power.error()) ? beneath_->Power(kind) : power;
}

Result<PowerCap> SmiBoard::Cap() {
  auto cap = smi_->Cap(handle_);
  return !cap.ok() && LibraryCannot(cap.error()) ? beneath_->Cap() : cap;
}

Status SmiBoard::SetCap(Watts limit) {
  auto set = smi_->SetCap(handle_, limit);
  return !set.ok() && LibraryCannot(set.error()) ? beneath_->SetCap(limit) : set;
}

GpuIdentity IdentityFromSmi(const Smi::Device& device) {
  return {.uuid = device.uuid,
          .pci_address = device.pci_address,
          .model = device.model.empty() ? "AMD GPU of unknown type" : device.model,
          .driver = "",
          .vendor = Vendor::kAmd};
}

namespace {

constexpr std::uint32_t kSensor = 0;
constexpr std::uint64_t kInitGpus = 2;

constexpr std::array kAmdStatuses = {
    SmiStatus{1, ErrorCode::kInvalidArgument, "invalid parameters"},
    SmiStatus{2, ErrorCode::kNotSupported, "not supported"},
    SmiStatus{3, ErrorCode::kNotSupported, "not implemented yet"},
    SmiStatus{4, ErrorCode::kUnavailable, "could not load a module"},
    SmiStatus{5, ErrorCode::kUnavailable, "could not load a symbol"},
    SmiStatus{6, ErrorCode::kUnavailable, "libdrm failed"},
    SmiStatus{7, ErrorCode::kUnavailable, "call failed"},
    SmiStatus{8, ErrorCode::kUnavailable, "timeout"},
    SmiStatus{9, ErrorCode::kUnavailable, "try again"},
    SmiStatus{10, ErrorCode::kPermissionDenied, "permission denied"},
    SmiStatus{11, ErrorCode::kUnavailable, "interrupted"},
    SmiStatus{12, ErrorCode::kUnavailable, "input/output error"},
    SmiStatus{13, ErrorCode::kInternal, "bad address"},
    SmiStatus{14, ErrorCode::kUnavailable, "a file of the driver could not be read"},
    SmiStatus{15, ErrorCode::kUnavailable, "out of resources"},
    SmiStatus{16, ErrorCode::kInternal, "internal exception"},
    SmiStatus{17, ErrorCode::kInvalidArgument, "value out of bounds"},
    SmiStatus{18, ErrorCode::kUnavailable, "could not initialise"},
    SmiStatus{19, ErrorCode::kInternal, "reference count overflow"},
    SmiStatus{30, ErrorCode::kUnavailable, "busy"},
    SmiStatus{31, ErrorCode::kNotFound, "not found"},
    SmiStatus{32, ErrorCode::kUnavailable, "not initialised"},
    SmiStatus{33, ErrorCode::kUnavailable, "no free slot"},
    SmiStatus{34, ErrorCode::kUnavailable, "the driver is not loaded"},
    SmiStatus{40, ErrorCode::kUnavailable, "no data"},
    SmiStatus{41, ErrorCode::kInternal, "buffer too small"},
    SmiStatus{42, ErrorCode::kUnavailable, "unexpected amount of data"},
    SmiStatus{43, ErrorCode::kUnavailable, "unexpected data"},
    SmiStatus{0xfffffffe, ErrorCode::kInternal, "error without a translation"},
    SmiStatus{0xffffffff, ErrorCode::kInternal, "unknown error"},
};

// amdsmi_power_cap_info_t.
struct PowerCapInfo {
  std::uint64_t power_cap;
  std::uint64_t default_power_cap;
  std::uint64_t dpm_cap;
  std::uint64_t min_power_cap;
  std::uint64_t max_power_cap;
  std::uint64_t reserved[3];
};
static_assert(sizeof(PowerCapInfo) == 64);

constexpr SmiCaller kAmdSmi{"AMD SMI", kAmdStatuses};

class AmdSmi final : public Smi {
 public:
  explicit AmdSmi(const AmdSmiApi& api) : api_(api) {}
  ~AmdSmi() override { api_.shut_down(); }

  Result<std::vector<Device>> Devices() override {
    std::uint32_t count = 0;
    AmdSmiApi::Socket* const count_only = nullptr;
    ZEUS_RETURN_IF_ERROR(
        kAmdSmi.Call("amdsmi_get_socket_handles", api_.get_socket_handles, &count, count_only));
    std::vector<AmdSmiApi::Socket> sockets(count);
    ZEUS_RETURN_IF_ERROR(
        kAmdSmi.Call("amdsmi_get_socket_handles", api_.get_socket_handles, &count, sockets.data()));
    sockets.resize(std::min<std::size_t>(count, sockets.size()));
    std::vector<Device> devices;
    for (AmdSmiApi::Socket socket : sockets) {
      ZEUS_TRY(const auto processors, Processors(socket));
      for (AmdSmiApi::Processor processor : processors) {
        std::uint64_t bdf = 0;
        ZEUS_RETURN_IF_ERROR(
            kAmdSmi.Call("amdsmi_get_gpu_bdf_id", api_.get_gpu_bdf_id, processor, &bdf));
        devices.push_back(
            {reinterpret_cast<Handle>(processor), PciAddress(bdf >> 32U, bdf & 0xffffU), "", ""});
      }
    }
    return devices;
  }

  Result<CounterSample> Energy(Handle device) override {
    std::uint64_t ticks = 0;
    float microjoules_per_tick = 0;
    std::uint64_t nanoseconds = 0;
    ZEUS_RETURN_IF_ERROR(kAmdSmi.Call("amdsmi_get_energy_count", api_.get_energy_count,
                                      Pointer(device), &ticks, &microjoules_per_tick,
                                      &nanoseconds));
    return SampleFromSmi(ticks, microjoules_per_tick);
  }

  Result<Watts> Power(Handle /*device*/, PowerKind /*kind*/) override {
    return Error{ErrorCode::kNotSupported, "the layout of AMD SMI's power depends on its version"};
  }

  Result<PowerCap> Cap(Handle device) override {
    ZEUS_TRY(const RawCap cap, Caps(device));
    return CapFromSmi(cap);
  }

  Status SetCap(Handle device, Watts limit) override {
    ZEUS_TRY(const RawCap cap, Caps(device));
    const double units = limit.ToMicro() / MicrowattsPerUnit(cap);
    return kAmdSmi.Call("amdsmi_set_power_cap", api_.set_power_cap, Pointer(device), kSensor,
                        static_cast<std::uint64_t>(std::llround(units)));
  }

 private:
  static AmdSmiApi::Processor Pointer(Handle device) {
    return reinterpret_cast<AmdSmiApi::Processor>(device);  // NOLINT(performance-no-int-to-ptr)
  }

  Result<std::vector<AmdSmiApi::Processor>> Processors(AmdSmiApi::Socket socket) const {
    std::uint32_t count = 0;
    AmdSmiApi::Processor* const count_only = nullptr;
    ZEUS_RETURN_IF_ERROR(kAmdSmi.Call("amdsmi_get_processor_handles", api_.get_processor_handles,
                                      socket, &count, count_only));
    std::vector<AmdSmiApi::Processor> processors(count);
    ZEUS_RETURN_IF_ERROR(kAmdSmi.Call("amdsmi_get_processor_handles", api_.get_processor_handles,
                                      socket, &count, processors.data()));
    processors.resize(std::min<std::size_t>(count, processors.size()));
    return processors;
  }

  Result<RawCap> Caps(Handle device) const {
    // Far more than any version writes: a struct that grew must not smash the stack.
    alignas(PowerCapInfo) std::array<std::byte, 4096> buffer{};
    ZEUS_RETURN_IF_ERROR(kAmdSmi.Call("amdsmi_get_power_cap_info", api_.get_power_cap_info,
                                      Pointer(device), kSensor, static_cast<void*>(buffer.data())));
    PowerCapInfo info{};
    std::memcpy(&info, buffer.data(), sizeof(info));
    return RawCap{.min = info.min_power_cap,
                  .max = info.max_power_cap,
                  .default_limit = info.default_power_cap,
                  .current = info.power_cap};
  }

  const AmdSmiApi api_;
};

}  // namespace

Result<AmdSmiApi> LoadAmdSmi(const std::optional<std::string>& path) {
  ZEUS_TRY(SharedLibrary library,
           SharedLibrary::Open(path, {"libamd_smi.so.26", "libamd_smi.so.25", "libamd_smi.so.24",
                                      "libamd_smi.so", "/opt/rocm/lib/libamd_smi.so"}));
  AmdSmiApi api;
  library.FindRequired(api.init, {"amdsmi_init"});
  library.FindRequired(api.shut_down, {"amdsmi_shut_down"});
  library.FindRequired(api.get_socket_handles, {"amdsmi_get_socket_handles"});
  library.FindRequired(api.get_processor_handles, {"amdsmi_get_processor_handles"});
  library.FindRequired(api.get_gpu_bdf_id, {"amdsmi_get_gpu_bdf_id"});
  library.FindOptional(api.get_energy_count, {"amdsmi_get_energy_count"});
  library.FindOptional(api.get_power_cap_info, {"amdsmi_get_power_cap_info"});
  library.FindOptional(api.set_power_cap, {"amdsmi_set_power_cap"});
  ZEUS_RETURN_IF_ERROR(library.CheckComplete("AMD SMI"));
  return api;
}

Result<std::shared_ptr<Smi>> StartAmdSmi(const AmdSmiApi& api) {
  ZEUS_RETURN_IF_ERROR(kAmdSmi.Call("amdsmi_init", api.init, kInitGpus));
  return std::shared_ptr<Smi>(std::make_shared<AmdSmi>(api));
}

namespace {

constexpr std::uint32_t kEdgeSensor = 0;

constexpr std::array kRocmStatuses = {
    SmiStatus{1, ErrorCode::kInvalidArgument, "invalid arguments"},
    SmiStatus{2, ErrorCode::kNotSupported, "not supported"},
    SmiStatus{3, ErrorCode::kUnavailable, "a file of the driver could not be read"},
    SmiStatus{4, ErrorCode::kPermissionDenied, "permission denied"},
    SmiStatus{5, ErrorCode::kUnavailable, "out of resources"},
    SmiStatus{6, ErrorCode::kInternal, "internal exception"},
    SmiStatus{7, ErrorCode::kInvalidArgument, "value out of bounds"},
    SmiStatus{8, ErrorCode::kUnavailable, "could not initialise"},
    SmiStatus{9, ErrorCode::kNotSupported, "not implemented yet"},
    SmiStatus{10, ErrorCode::kNotFound, "not found"},
    SmiStatus{11, ErrorCode::kInternal, "buffer too small"},
    SmiStatus{12, ErrorCode::kUnavailable, "interrupted"},
    SmiStatus{13, ErrorCode::kUnavailable, "unexpected amount of data"},
    SmiStatus{14, ErrorCode::kUnavailable, "no data"},
    SmiStatus{15, ErrorCode::kUnavailable, "unexpected data"},
    SmiStatus{16, ErrorCode::kUnavailable, "busy"},
    SmiStatus{17, ErrorCode::kInternal, "reference count overflow"},
    SmiStatus{0xffffffff, ErrorCode::kInternal, "unknown error"},
};

constexpr SmiCaller kRocmSmi{"ROCm SMI", kRocmStatuses};

class RocmSmi final : public Smi {
 public:
  explicit RocmSmi(const RocmSmiApi& api) : api_(api) {}
  ~RocmSmi() override { api_.shut_down(); }

  Result<std::vector<Device>> Devices() override {
    std::uint32_t count = 0;
    ZEUS_RETURN_IF_ERROR(
        kRocmSmi.Call("rsmi_num_monitor_devices", api_.num_monitor_devices, &count));
    std::vector<Device> devices;
    for (std::uint32_t index = 0; index < count; ++index) {
      std::uint64_t bdf = 0;
      ZEUS_RETURN_IF_ERROR(kRocmSmi.Call("rsmi_dev_pci_id_get", api_.dev_pci_id_get, index, &bdf));
      devices.push_back({index, PciAddress(bdf >> 32U, bdf & 0xffffU), Name(index), Uuid(index)});
    }
    return devices;
  }

  Result<CounterSample> Energy(Handle device) override {
    std::uint64_t ticks = 0;
    float microjoules_per_tick = 0;
    std::uint64_t nanoseconds = 0;
    ZEUS_RETURN_IF_ERROR(kRocmSmi.Call("rsmi_dev_energy_count_get", api_.dev_energy_count_get,
                                       Index(device), &ticks, &microjoules_per_tick, &nanoseconds));
    return SampleFromSmi(ticks, microjoules_per_tick);
  }

  Result<Watts> Power(Handle device, PowerKind kind) override {
    std::uint64_t microwatts = 0;
    if (kind == PowerKind::kInstant) {
      ZEUS_RETURN_IF_ERROR(kRocmSmi.Call("rsmi_dev_current_socket_power_get",
                                         api_.dev_current_socket_power_get, Index(device),
                                         &microwatts));
    } else {
      ZEUS_RETURN_IF_ERROR(kRocmSmi.Call("rsmi_dev_power_ave_get", api_.dev_power_ave_get,
                                         Index(device), kEdgeSensor, &microwatts));
    }
    return Watts::FromMicro(static_cast<double>(microwatts));
  }

  Result<PowerCap> Cap(Handle device) override {
    std::uint64_t current = 0;
    std::uint64_t max = 0;
    std::uint64_t min = 0;
    ZEUS_RETURN_IF_ERROR(kRocmSmi.Call("rsmi_dev_power_cap_get", api_.dev_power_cap_get,
                                       Index(device), kEdgeSensor, &current));
    ZEUS_RETURN_IF_ERROR(kRocmSmi.Call("rsmi_dev_power_cap_range_get", api_.dev_power_cap_range_get,
                                       Index(device), kEdgeSensor, &max, &min));
    std::uint64_t fallback =
        max;  // Old libraries do not tell; without overdrive it is the maximum.
    if (api_.dev_power_cap_default_get != nullptr) {
      ZEUS_RETURN_IF_ERROR(kRocmSmi.Call("rsmi_dev_power_cap_default_get",
                                         api_.dev_power_cap_default_get, Index(device), &fallback));
    }
    return CapFromSmi({.min = min, .max = max, .default_limit = fallback, .current = current});
  }

  Status SetCap(Handle device, Watts limit) override {
    return kRocmSmi.Call("rsmi_dev_power_cap_set", api_.dev_power_cap_set, Index(device),
                         kEdgeSensor, static_cast<std::uint64_t>(std::llround(limit.ToMicro())));
  }

 private:
  static std::uint32_t Index(Handle device) { return static_cast<std::uint32_t>(device); }

  std::string Name(std::uint32_t index) const {
    std::array<char, 256> name{};
    if (!kRocmSmi.Call("rsmi_dev_name_get", api_.dev_name_get, index, name.data(), name.size() - 1)
             .ok())
      return "";
    return name.data();
  }

  std::string Uuid(std::uint32_t index) const {
    std::uint64_t id = 0;
    if (!kRocmSmi.Call("rsmi_dev_unique_id_get", api_.dev_unique_id_get, index, &id).ok())
      return "";
    return fmt::format("{:016x}", id);
  }

  const RocmSmiApi api_;
};

}  // namespace

Result<RocmSmiApi> LoadRocmSmi(const std::optional<std::string>& path) {
  ZEUS_TRY(SharedLibrary library,
           SharedLibrary::Open(
               path, {"librocm_smi64.so.7", "librocm_smi64.so.6", "librocm_smi64.so.5",
                      "librocm_smi64.so.1", "librocm_smi64.so", "/opt/rocm/lib/librocm_smi64.so"}));
  RocmSmiApi api;
  library.FindRequired(api.init, {"rsmi_init"});
  library.FindRequired(api.shut_down, {"rsmi_shut_down"});
  library.FindRequired(api.num_monitor_devices, {"rsmi_num_monitor_devices"});
  library.FindRequired(api.dev_pci_id_get, {"rsmi_dev_pci_id_get"});
  library.FindOptional(api.dev_name_get, {"rsmi_dev_name_get"});
  library.FindOptional(api.dev_unique_id_get, {"rsmi_dev_unique_id_get"});
  library.FindOptional(api.dev_energy_count_get, {"rsmi_dev_energy_count_get"});
  library.FindOptional(api.dev_power_ave_get, {"rsmi_dev_power_ave_get"});
  library.FindOptional(api.dev_current_socket_power_get, {"rsmi_dev_current_socket_power_get"});
  library.FindOptional(api.dev_power_cap_get, {"rsmi_dev_power_cap_get"});
  library.FindOptional(api.dev_power_cap_default_get, {"rsmi_dev_power_cap_default_get"});
  library.FindOptional(api.dev_power_cap_range_get, {"rsmi_dev_power_cap_range_get"});
  library.FindOptional(api.dev_power_cap_set, {"rsmi_dev_power_cap_set"});
  ZEUS_RETURN_IF_ERROR(library.CheckComplete("ROCm SMI"));
  return api;
}

Result<std::shared_ptr<Smi>> StartRocmSmi(const RocmSmiApi& api) {
  ZEUS_RETURN_IF_ERROR(kRocmSmi.Call("rsmi_init", api.init, std::uint64_t{0}));
  return std::shared_ptr<Smi>(std::make_shared<RocmSmi>(api));
}

}  // namespace zeus::amd
