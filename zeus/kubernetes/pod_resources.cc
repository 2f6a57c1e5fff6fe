#include "zeus/kubernetes/pod_resources.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "zeus/base/text.h"
#include "zeus/kubernetes/grpc_call.h"
#include "zeus/kubernetes/protobuf_reader.h"

namespace zeus::kubernetes {
namespace {

// Far above what a node can have: Kubernetes promises 110 pods on a node. They bound the memory
// that a hostile message can take.
constexpr std::size_t kMostContainers = 16384;
constexpr std::size_t kMostDevices = 65536;
constexpr std::size_t kLongestName = 253;  // A DNS name.
constexpr std::size_t kLongestDeviceText = 512;

using Field = ProtobufReader::Field;

bool IsNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
}

bool IsDeviceCharacter(char c) { return c > ' ' && c < 127; }

// Names of Kubernetes become labels of metrics and parts of paths.
Status CheckName(std::string_view what, std::string_view name) {
  if (!name.empty() && name.size() <= kLongestName && std::ranges::all_of(name, IsNameCharacter))
    return Ok();
  return InvalidArgument(fmt::format("{} is no name of a {}", Quote(name), what));
}

Status CheckDeviceText(std::string_view text) {
  if (!text.empty() && text.size() <= kLongestDeviceText &&
      std::ranges::all_of(text, IsDeviceCharacter))
    return Ok();
  return InvalidArgument(fmt::format("{} is no id of a device", Quote(text)));
}

// Calls `use` for each field that is a text or a message. Others are of newer versions.
template <class Use>
Status ForEachText(std::string_view message, const Use& use) {
  ProtobufReader reader(message);
  for (;;) {
    ZEUS_TRY(const auto field, reader.Next());
    if (!field) return Ok();
    if (field->type == ProtobufReader::Type::kBytes)
      ZEUS_RETURN_IF_ERROR(use(field->number, field->bytes));
  }
}

// Reads one response; counts what it has taken so far.
class ResponseReader {
 public:
  Result<std::vector<ContainerResources>> Read(std::string_view message) {
    Status read =
        ForEachText(message, [this](std::uint32_t number, std::string_view text) -> Status {
          return number == 1 ? ReadPod(text) : Ok();
        });
    if (!read.ok()) return read.error();
    return std::move(found_);
  }

 private:
  // Its names may stand behind its containers.
  Status ReadPod(std::string_view message) {
    ContainerResources names;
    const std::size_t first = found_.size();
    Status read = ForEachText(message, [&](std::uint32_t number, std::string_view text) -> Status {
      if (number == 1) names.pod = text;
      if (number == 2) names.name_space = text;
      return number == 3 ? ReadContainer(text) : Ok();
    });
    if (!read.ok()) return read;
    if (found_.size() == first) return Ok();
    ZEUS_RETURN_IF_ERROR(CheckName("pod", names.pod));
    ZEUS_RETURN_IF_ERROR(CheckName("namespace", names.name_space));
    for (std::size_t i = first; i < found_.size(); ++i) {
      found_[i].pod = names.pod;
      found_[i].name_space = names.name_space;
    }
    return Ok();
  }

  Status ReadContainer(std::string_view message) {
    ContainerResources container;
    Status read = ForEachText(message, [&](std::uint32_t number, std::string_view text) -> Status {
      if (number == 1) container.container = text;
      if (number == 2) return ReadDevices(text, container);
      return number == 5 ? ReadClaim(text, container) : Ok();
    });
    if (!read.ok()) return read;
    if (container.plugin_devices.empty() && container.claimed.empty()) return Ok();
    ZEUS_RETURN_IF_ERROR(CheckName("container", container.container));
    if (found_.size() >= kMostContainers)
      return InvalidArgument(fmt::format("more than {} containers have devices", kMostContainers));
    found_.push_back(std::move(container));
    return Ok();
  }

  Status ReadDevices(std::string_view message, ContainerResources& container) {
    PluginDevices devices;
    Status read = ForEachText(message, [&](std::uint32_t number, std::string_view text) -> Status {
      if (number != 1 && number != 2) return Ok();
      ZEUS_RETURN_IF_ERROR(CheckDeviceText(text));
      if (number == 1) devices.resource = text;
      return number == 2 ? AddTo(devices.ids, std::string(text)) : Ok();
    });
    if (!read.ok()) return read;
    if (!devices.ids.empty()) container.plugin_devices.push_back(std::move(devices));
    return Ok();
  }

  // DynamicResource has the devices of a claim in its fourth field.
  Status ReadClaim(std::string_view message, ContainerResources& container) {
    return ForEachText(message, [&](std::uint32_t number, std::string_view text) -> Status {
      return number == 4 ? ReadClaimed(text, container) : Ok();
    });
  }

  // ClaimResource: 1 the names for the container runtime, 2 driver, 3 pool, 4 device.
  Status ReadClaimed(std::string_view message, ContainerResources& container) {
    ClaimedDevice device;
    Status read = ForEachText(message, [&](std::uint32_t number, std::string_view text) -> Status {
      if (number < 2 || number > 4) return Ok();
      ZEUS_RETURN_IF_ERROR(CheckDeviceText(text));
      (number == 2 ? device.driver : number == 3 ? device.pool : device.device) = text;
      return Ok();
    });
    if (!read.ok()) return read;
    // Kubelets before 1.31 name the devices for the container runtime alone.
    if (device.device.empty()) return Ok();
    return AddTo(container.claimed, std::move(device));
  }

  template <class T>
  Status AddTo(std::vector<T>& list, T entry) {
    if (++devices_ > kMostDevices)
      return InvalidArgument(fmt::format("containers have more than {} devices", kMostDevices));
    list.push_back(std::move(entry));
    return Ok();
  }

  std::vector<ContainerResources> found_{};
  std::size_t devices_ = 0;
};

}  // namespace

Result<std::vector<ContainerResources>> ParsePodResources(std::string_view message) {
  return ResponseReader().Read(message);
}

DeviceId ParseDeviceId(std::string_view id) {
  constexpr std::string_view kPartition = "MIG-";
  constexpr std::string_view kPartitionOfBoard = "MIG-GPU-";
  // The plugin of NVIDIA numbers replicas of time slicing and MPS like this.
  id = id.substr(0, id.find("::"));
  if (!id.starts_with(kPartition)) return {.board = std::string(id)};
  DeviceId parsed{.partition = std::string(id)};
  // Drivers before 470: board, GPU instance, compute instance.
  if (id.starts_with(kPartitionOfBoard)) {
    id.remove_prefix(kPartition.size());
    parsed.board = id.substr(0, id.find('/'));
  }
  return parsed;
}

Result<std::vector<ContainerResources>> ListPodResources(const std::string& socket,
                                                         const Clock& clock) {
  ZEUS_TRY(const std::string answer,
           CallGrpc({.socket = socket, .method = "/v1.PodResourcesLister/List"}, clock));
  auto parsed = ParsePodResources(answer);
  if (!parsed.ok()) return std::move(parsed).error().While(Printable(socket));
  return parsed;
}

}  // namespace zeus::kubernetes
