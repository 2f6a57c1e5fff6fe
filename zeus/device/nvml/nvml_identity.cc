#include "zeus/device/nvml/nvml_identity.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <string_view>

namespace zeus::nvml {
namespace {

// A buffer that NVML filled; it need not be terminated when the driver misbehaves.
template <std::size_t kSize>
std::string Text(const std::array<char, kSize>& buffer) {
  return {buffer.data(), ::strnlen(buffer.data(), kSize)};
}

template <std::size_t kSize, class... Parameters, class... Arguments>
Return ReadText(std::string* text, Return (*function)(Parameters...), Arguments... arguments) {
  std::array<char, kSize> buffer{};
  const Return code =
      Call(function, arguments..., buffer.data(), static_cast<unsigned>(buffer.size()));
  if (code == kSuccess) *text = Text(buffer);
  return code;
}

}  // namespace

Result<std::string> ReadUuid(const Target& target) {
  std::string uuid;
  const Return code = ReadText<kUuidBufferSize>(&uuid, target.api.get_uuid, target.device);
  if (code != kSuccess) return NvmlError(code, "read the UUID of a GPU");
  return uuid;
}

Result<GpuIdentity> ReadIdentity(const Target& target) {
  GpuIdentity identity{
      .uuid = "", .pci_address = "", .model = "", .driver = "", .vendor = Vendor::kNvidia};
  ZEUS_TRY(identity.uuid, ReadUuid(target));

  PciInfo pci{};
  const Return pci_code = Call(target.api.get_pci_info, target.device, &pci);
  if (DeviceIsGone(pci_code)) return NvmlError(pci_code, identity.uuid);
  // Its own text has an eight-digit domain and upper case; the kernel writes four and lower.
  if (pci_code == kSuccess)
    identity.pci_address = fmt::format("{:04x}:{:02x}:{:02x}.0", pci.domain, pci.bus, pci.device);

  const Return name_code =
      ReadText<kNameBufferSize>(&identity.model, target.api.get_name, target.device);
  if (DeviceIsGone(name_code)) return NvmlError(name_code, identity.uuid);
  if (name_code != kSuccess || identity.model.empty()) identity.model = "NVIDIA GPU";

  (void)ReadText<kVersionBufferSize>(&identity.driver, target.api.get_driver_version);
  return identity;
}

}  // namespace zeus::nvml
