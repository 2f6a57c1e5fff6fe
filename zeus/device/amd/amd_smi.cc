#include "zeus/device/amd/amd_smi.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include "zeus/device/amd/amdgpu_sysfs.h"
#include "zeus/device/shared_library.h"

namespace zeus::amd {
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

}  // namespace zeus::amd
