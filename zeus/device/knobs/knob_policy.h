#pragma once

#include <filesystem>

#include "zeus/base/result.h"
#include "zeus/device/knobs/knob.h"

namespace zeus {

// The rules of a machine's administrator for its knobs, in a file that belongs to root:
// docs/knobs.md.
struct KnobPolicy {
  bool may_raise = false;          // Programs may set more than they found.
  bool caps_are_intended = false;  // Limits below the default are no leftovers: no warning.

  Ceiling Allowed(Ceiling asked) const { return may_raise ? Ceiling::kOfDevice : asked; }
};

// Returns the default policy without a file. kPermissionDenied for a file that others than root
// could have written, kInvalidArgument for a malformed one.
Result<KnobPolicy> ReadKnobPolicy(const std::filesystem::path& file);

// That of /etc/zeus/knobs.json. A file that cannot be used is said in the log, once, and allows
// nothing.
const KnobPolicy& KnobPolicyOfMachine();

}  // namespace zeus
