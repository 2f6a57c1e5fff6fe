#include "zeus/device/amd/rocm_smi.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "zeus/device/amd/amdgpu_sysfs.h"
#include "zeus/device/shared_library.h"

namespace zeus::amd {
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
