#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "zeus/base/clock.h"
#include "zeus/base/file.h"
#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/kubernetes/pod_resources.h"

namespace zeus::kubernetes {

// By claimed device: its UUID, or that of the board that it is a part of, or its PCI address.
using SlicedDevices = std::map<ClaimedDevice, std::string>;

// Reads a list of ResourceSlices, versions v1beta1 to v1 of resource.k8s.io. Devices that name no
// such attribute are left out. kInvalidArgument for something else.
Result<SlicedDevices> ParseResourceSlices(const Json& list);

// Knows which GPU a claimed device is, from the ResourceSlices that drivers publish for this node
// at the API server. It asks when a device is not known, at most every 10 s. One owner.
class ResourceSlices {
 public:
  // Returns the body of a GET of the API server; kNotFound for status 404.
  using Get = std::function<Result<std::string>(const std::string& path)>;

  ResourceSlices(const Clock& clock, std::string node, Get get);

  // The API server that runs the pod of this process; nullopt outside of pods, and where the pod
  // has no account or does not know its node (variable NODE_NAME).
  static std::optional<ResourceSlices> OfThisPod(const Clock& clock,
                                                 const Environment& environment);

  std::optional<std::string> Find(const ClaimedDevice& device);

 private:
  Result<SlicedDevices> Ask() const;

  const Clock* clock_;
  std::string node_;
  Get get_;
  SlicedDevices devices_{};
  std::optional<TimePoint> asked_{};
};

}  // namespace zeus::kubernetes
