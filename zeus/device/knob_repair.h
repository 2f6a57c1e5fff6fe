#pragma once

#include <string>
#include <vector>

#include "zeus/device/knob_journal.h"
#include "zeus/device/node.h"

namespace zeus {

// What happened to a knob that a dead process left changed.
struct KnobRepair {
  enum class Outcome {
    kRestored,
    kDiscarded,  // Of an earlier boot or driver epoch: it is at its default already.
    kFailed,
  };
  KnobEntry entry;
  Outcome outcome;
  std::string reason{};  // Why it failed.
};

// "power limit of gpu:0 put back to 250 W"
std::string ToText(const KnobRepair& repair);

// Puts back everything that dead owners left on the devices of this node; the rest is reported as
// failed. Nothing to do is an empty list. Trouble with the journal as a whole is an error.
Result<std::vector<KnobRepair>> RepairKnobs(KnobJournal& journal, const Node& node);

// The same on all devices of the machine, also those that CUDA_VISIBLE_DEVICES and its relatives
// hide: a rank that was killed leaves its GPU to its peers. Looks for devices only if there is
// something to repair.
Result<std::vector<KnobRepair>> RepairKnobs(KnobJournal& journal, const Surroundings& machine);

}  // namespace zeus
