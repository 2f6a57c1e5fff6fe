#pragma once

#include <string>
#include <vector>

#include "zeus/base/json_fwd.h"

namespace zeus::cli {

enum class CheckVerdict {
  kHeld,     // The promise is kept.
  kBroken,   // It is not.
  kNotHere,  // This machine cannot show it.
};

// The result of one check.
struct Check {
  std::string name;     // "energy counter"
  std::string promise;  // "agrees with integrated power within 5 %"
  CheckVerdict verdict = CheckVerdict::kNotHere;
  std::string finding{};  // The numbers, or why it is not possible here.
};

struct FirstGpuReport {
  std::string zeus;
  std::string gpu;  // Its model.
  std::string driver;
  std::string kernel;
  std::vector<Check> checks;

  bool AnyBroken() const;
};

std::string ToText(const FirstGpuReport& report);
Json ToJson(const FirstGpuReport& report);

}  // namespace zeus::cli
