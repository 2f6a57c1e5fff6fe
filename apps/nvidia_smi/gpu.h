#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/base/shared_library.h"
#include "zeus/device/nvml/nvml_abi.h"

namespace zeus::nvidia_smi {

using nvml::Device;
using nvml::Return;

// The driver's library, opened and initialised until the program ends. One owner.
class Driver {
 public:
  // Opens the library beside this program, or the one that ZEUS_NVML_LIBRARY names.
  static Result<Driver> Open();

  // Calls a function of NVML by its name; kFunctionNotFound where the library lacks it.
  template <class... Arguments>
  Return Call(const char* function, Arguments... arguments) const {
    Return (*address)(Arguments...) = nullptr;
    library_.FindOptional(address, {function});
    return address == nullptr ? nvml::kFunctionNotFound : address(arguments...);
  }

  // The text that a function writes into a buffer; nothing if it fails.
  template <class... Arguments>
  std::optional<std::string> Text(const char* function, Arguments... arguments) const {
    char buffer[256] = {};
    if (Call(function, arguments..., &buffer[0], static_cast<unsigned>(sizeof(buffer))) !=
        nvml::kSuccess)
      return std::nullopt;
    return buffer;
  }

  const char* Explain(Return code) const;

 private:
  explicit Driver(SharedLibrary library) : library_(std::move(library)) {}

  SharedLibrary library_;
};

// One GPU of the driver, which must outlive it.
struct Gpu {
  const Driver* driver;
  Device device;
  unsigned index;

  template <class Value>
  std::optional<Value> Get(const char* function) const {
    Value value{};
    if (driver->Call(function, device, &value) != nvml::kSuccess) return std::nullopt;
    return value;
  }
  // The same for a function that wants to know a kind of value.
  template <class Value>
  std::optional<Value> GetKind(const char* function, int kind) const {
    Value value{};
    if (driver->Call(function, device, kind, &value) != nvml::kSuccess) return std::nullopt;
    return value;
  }
  std::optional<std::string> Text(const char* function) const {
    return driver->Text(function, device);
  }
  std::string bus_id() const;
};

// The exit codes of nvidia-smi are those of NVML; this one is also for a wrong command line.
inline constexpr int kExitInvalid = 2;

// All GPUs, or those that a list such as "0,GPU-1b…,00000000:02:00.0" names.
Result<std::vector<Gpu>> FindGpus(const Driver& driver, std::string_view wanted);

}  // namespace zeus::nvidia_smi
