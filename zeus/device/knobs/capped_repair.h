#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "zeus/device/knobs/knob_repair.h"

// Repairs beside a power budget, which has given the watts above its caps to others.
namespace zeus {

// The most that GPUs may be limited to, by UUID.
using PowerCaps = std::map<std::string, Watts>;

struct CappedRepair {
  KnobRepair repair;
  // The power limit that stays in force, because putting it back would exceed the cap; then the
  // outcome of the repair means nothing, and the entry of the journal stays: whoever works with the
  // budget again finds there what the limit was before.
  std::optional<Setting> capped{};
};

std::string ToText(const CappedRepair& repair);

// As RepairAllKnobs() of knob_repair.h, but power limits of GPUs with a cap are lowered to it, or
// stay below it.
Result<std::vector<CappedRepair>> RepairAllKnobs(KnobJournal& journal, const Surroundings& machine,
                                                 KnobJournal::Holders holders,
                                                 const PowerCaps& caps);

}  // namespace zeus
