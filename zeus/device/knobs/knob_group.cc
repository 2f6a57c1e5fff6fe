#include "zeus/device/knobs/knob_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "zeus/base/text.h"
#include "zeus/device/knobs/guarded_knob.h"

namespace zeus {
namespace {

using Members = std::vector<std::unique_ptr<DeviceKnob>>;

// The 3 of "gpu:3".
std::optional<std::int64_t> DeviceNumber(const std::string& device) {
  const auto number = ParseInteger(std::string_view(device).substr(device.find(':') + 1));
  return number.ok() ? std::optional(number.value()) : std::nullopt;
}

bool Consecutive(const Members& members) {
  const auto next = [](const auto& a, const auto& b) {
    const auto first = DeviceNumber(a->device().name);
    return first && DeviceNumber(b->device().name) == *first + 1;
  };
  return std::ranges::adjacent_find(members, std::not_fn(next)) == members.end();
}

// "gpu:0", "gpu:0 to gpu:3", "gpu:0, gpu:2"
std::string ListDevices(const Members& members) {
  if (members.size() > 2 && Consecutive(members)) {
    return fmt::format("{} to {}", members.front()->device().name, members.back()->device().name);
  }
  std::string names;
  for (const auto& member : members) names += (names.empty() ? "" : ", ") + member->device().name;
  return names;
}

}  // namespace

Result<std::unique_ptr<KnobGroup>> KnobGroup::Of(Members members) {
  if (members.empty())
    return Error{ErrorCode::kInvalidArgument, "there is no device whose knob could be turned"};
  const KnobKind kind = members.front()->kind();
  for (const auto& member : members) {
    if (member->kind() != kind) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("{} and {} cannot have the same setting", members.front()->name(),
                               member->name())};
    }
  }
  return std::unique_ptr<KnobGroup>(new KnobGroup(std::move(members)));
}

KnobGroup::KnobGroup(Members members)
    : members_(std::move(members)), name_(KnobName(kind(), ListDevices(members_))) {}

Result<std::vector<Setting>> KnobGroup::Settings(const Setting& stride) {
  ZEUS_TRY(KnobChoices common, members_.front()->Choices());
  for (const auto& member : members_) {
    auto choices = member->Choices();
    if (!choices.ok()) return std::move(choices).error().While(member->name());
    auto both = InBoth(common, choices.value());
    if (!both.ok()) return std::move(both).error().While(name_);
    common = std::move(both).value();
  }
  return Spread(common, stride);
}

Result<Setting> KnobGroup::Current() {
  ZEUS_TRY(const Setting first, members_.front()->Current());
  for (const auto& member : members_) {
    ZEUS_TRY(const Setting setting, member->Current());
    if (setting == first) continue;
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("the {} is {} and the {} is {}: set the same on all, or choose GPUs of one "
                    "model, as in --gpus 0",
                    members_.front()->name(), ToText(first), member->name(), ToText(setting))};
  }
  return first;
}

Watts KnobGroup::max_power() const {
  Watts sum(0);
  for (const auto& member : members_) sum += member->max_power();
  return sum;
}

Status KnobGroup::Set(const Setting& setting) {
  const std::lock_guard lock(mutex_);
  for (const auto& member : members_) {
    Status set = member->Set(setting);
    if (set.ok()) continue;
    for (const auto& changed : members_) {
      if (const Status restored = changed->Restore(); !restored.ok())
        LogFailedRestore(restored.error());
    }
    return set;
  }
  return Ok();
}

Status KnobGroup::CheckInForce(const Setting& setting) {
  for (const auto& member : members_) ZEUS_RETURN_IF_ERROR(member->CheckInForce(setting));
  return Ok();
}

Status KnobGroup::Restore() {
  if (members_.front()->InForkedChild()) return Ok();
  const std::lock_guard lock(mutex_);
  Status outcome = Ok();
  for (const auto& member : members_) {
    Status restored = member->Restore();
    if (outcome.ok()) {
      outcome = std::move(restored);
    } else if (!restored.ok()) {
      LogFailedRestore(restored.error());
    }
  }
  return outcome;
}

}  // namespace zeus
