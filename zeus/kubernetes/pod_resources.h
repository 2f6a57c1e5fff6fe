#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"

// The kubelet's answer to "which container has which devices": package v1 of its pod-resources API,
// https://kubernetes.io/docs/concepts/extend-kubernetes/compute-storage-net/device-plugins/#monitoring-device-plugin-resources
namespace zeus::kubernetes {

// The socket where a kubelet answers.
inline constexpr const char* kPodResourcesSocket = "/var/lib/kubelet/pod-resources/kubelet.sock";

// Devices of one kind that a device plugin gave to a container.
struct PluginDevices {
  std::string resource{};  // "nvidia.com/gpu", "nvidia.com/mig-1g.5gb", "amd.com/gpu"
  std::vector<std::string> ids{};

  friend bool operator==(const PluginDevices&, const PluginDevices&) = default;
};

// A device that a container got by a claim (dynamic resource allocation). Only a ResourceSlice of
// the API server says which one it is.
struct ClaimedDevice {
  std::string driver{};  // "gpu.nvidia.com"
  std::string pool{};    // The node, mostly.
  std::string device{};  // "gpu-0"

  friend auto operator<=>(const ClaimedDevice&, const ClaimedDevice&) = default;
};

// One container with devices.
struct ContainerResources {
  std::string name_space{};
  std::string pod{};
  std::string container{};
  std::vector<PluginDevices> plugin_devices{};
  std::vector<ClaimedDevice> claimed{};

  friend bool operator==(const ContainerResources&, const ContainerResources&) = default;
};

// Reads a ListPodResourcesResponse: the containers that have devices, in the order of the message.
// kInvalidArgument for one that is malformed, whose names are none of Kubernetes, or that has more
// containers or devices than a node can have.
Result<std::vector<ContainerResources>> ParsePodResources(std::string_view message);

// The parts of a device id, found without asking a driver. "GPU-1b…::2" is the second replica of a
// board that is shared by time slices; "MIG-GPU-1b…/7/0" is a part of the board GPU-1b….
struct DeviceId {
  std::string board{};      // UUID or PCI address; empty for a part whose board is not named.
  std::string partition{};  // "MIG-…"; empty for a whole board.

  friend bool operator==(const DeviceId&, const DeviceId&) = default;
};
DeviceId ParseDeviceId(std::string_view id);

// Asks the kubelet. kNotFound without a socket, kUnavailable when it does not answer within 2 s,
// kNotSupported where it does not serve this API.
Result<std::vector<ContainerResources>> ListPodResources(const std::string& socket,
                                                         const Clock& clock);

}  // namespace zeus::kubernetes
