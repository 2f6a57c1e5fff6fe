#pragma once

#include <filesystem>
#include <functional>
#include <string_view>
#include <vector>

#include "zeus/base/file.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/device/gpu.h"

namespace zeus {

// Entries of a directory whose names start with `prefix`, in natural order (card2 before card10).
// Empty when the directory is missing or cannot be listed: the caller reports what it looked for.
std::vector<std::filesystem::path> ListEntries(const std::filesystem::path& directory,
                                               std::string_view prefix = {});

// Whether every byte is a printable ASCII character: what goes into names and messages.
bool IsPrintable(std::string_view text);

// A power limit that the kernel keeps in sysfs attributes, in microwatts: a powercap constraint, a
// hwmon power1_max.
//
// The kernel tells neither the lowest limit nor the factory setting, so
//  - range.min is 1 W, the lowest that we send: the value read back tells what the hardware made
//    of it;
//  - range.max is the rated power, or the limit found at Open() where that is higher or the rated
//    power is unknown;
//  - default_limit is the limit found at Open().
// Where the stored limit is 0 or the limit is disabled there is none: requested and enforced are
// then range.max.
//
// Thread-safe: the kernel serialises the attribute.
class SysfsPowerLimit {
 public:
  using Writer = std::function<Status(const std::filesystem::path&, std::string_view)>;

  struct Attributes {
    std::filesystem::path limit;    // Holds the limit, readable and writable.
    std::filesystem::path rated;    // Holds the rated power; the file may be missing.
    std::filesystem::path enabled;  // "0" when the limit is stored but not obeyed; may be empty.
  };

  // Fails when there is no limit attribute, or when nothing tells an upper bound. Tests pass a
  // `write` that fails the way a kernel does and files cannot.
  static Result<SysfsPowerLimit> Open(Attributes attributes, Writer write = WriteAttribute);

  Result<PowerLimit> Current() const;

  // Reads the value back. kNotSupported when firmware has locked the limit.
  Result<PowerLimit> Set(Watts limit) const;

 private:
  SysfsPowerLimit(Attributes attributes, Writer write)
      : attributes_(std::move(attributes)), write_(std::move(write)) {}

  Result<Watts> Stored() const;
  bool Enabled() const;
  Error WriteError(Error error) const;

  Attributes attributes_;
  Writer write_;
  Watts highest_;
  Watts found_;
};

}  // namespace zeus
