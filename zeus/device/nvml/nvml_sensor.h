#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "zeus/base/result.h"
#include "zeus/device/nvml/nvml_api.h"
#include "zeus/device/nvml/nvml_error.h"

namespace zeus::nvml {

// The device to read and the functions to read it with.
struct Target {
  const NvmlApi& api;
  Device device;
};

// Notes whether the device disappeared while its sensors were tried one after the other.
struct Probe {
  Target target;
  std::optional<Return> gone;

  void Note(Return code) {
    if (DeviceIsGone(code)) gone = code;
  }
};

// One value of a device for which NVML has several ways, newest first. The way that works is found
// out once; a device that has none costs no call later, only the reason. Immutable.
template <class T>
class Sensor {
 public:
  using Way = Return (*)(const Target&, T*);

  // A way that fails for a passing reason counts as one that works.
  Sensor(Probe& probe, std::string doing, std::initializer_list<Way> ways)
      : doing_(std::move(doing)) {
    for (const Way way : ways) {
      T ignored{};
      const Return code = way(probe.target, &ignored);
      probe.Note(code);
      if (!NeverWorks(code)) {
        way_ = way;
        return;
      }
      // "Not supported" says more than "this driver lacks the function".
      if (!unsupported_ || unsupported_code_ == kFunctionNotFound) Refuse(code);
    }
  }

  Result<T> Read(const Target& target) const {
    if (way_ == nullptr) return *unsupported_;
    T value{};
    const Return code = way_(target, &value);
    if (code != kSuccess) return NvmlError(code, doing_);
    return value;
  }

 private:
  void Refuse(Return code) {
    unsupported_ = NvmlError(code, doing_);
    unsupported_->code = ErrorCode::kNotSupported;
    unsupported_code_ = code;
  }

  std::string doing_;
  Way way_ = nullptr;
  std::optional<Error> unsupported_;
  Return unsupported_code_ = kSuccess;
};

}  // namespace zeus::nvml
