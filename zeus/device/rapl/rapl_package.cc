#include "zeus/device/rapl/rapl_package.h"

#include <utility>

namespace zeus::rapl {

namespace {

Error NoPowerReading(const std::string& name) {
  return {ErrorCode::kNotSupported,
          name + ": RAPL counts energy only: power is the growth of energy over time"};
}

}  // namespace

Result<Watts> RaplMemory::Power() { return NoPowerReading(name_); }

RaplPackage::RaplPackage(Parts parts)
    : name_("cpu:" + std::to_string(parts.identity.package)), parts_(std::move(parts)) {}

Result<Watts> RaplPackage::Power() { return NoPowerReading(name_); }

Result<PowerLimit> RaplPackage::CurrentPowerLimit() {
  if (!parts_.limit.ok()) return parts_.limit.error();
  return parts_.limit.value().Current();
}

Result<PowerLimit> RaplPackage::SetPowerLimitWithoutJournal(Watts limit) {
  if (!parts_.limit.ok()) return parts_.limit.error();
  auto set = parts_.limit.value().Set(limit);
  if (!set.ok()) return std::move(set).error().While("set power limit of " + name_);
  return set;
}

}  // namespace zeus::rapl
