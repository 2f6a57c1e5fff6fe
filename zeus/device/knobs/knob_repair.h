#pragma once

#include <string>
#include <vector>

#include "zeus/device/knobs/knob_journal.h"
#include "zeus/device/node.h"

namespace zeus {

// The repair of a knob that a process left changed.
struct KnobRepair {
  enum class Outcome {
    kRestored,
    kDiscarded,  // The entry is of an earlier boot or driver epoch: the knob is at its default
                 // already.
    kNotOurs,    // Another program has set it since: it is left as it is.
    kHeld,       // A living process holds it: it was left as it is.
    kFailed,
  };
  KnobEntry entry;
  Outcome outcome;
  std::string reason{};  // Why it failed, or who holds it.
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

// The same, and of what is held too: it is reported, or put back all the same.
Result<std::vector<KnobRepair>> RepairAllKnobs(KnobJournal& journal, const Surroundings& machine,
                                               KnobJournal::Holders holders);

// The outcome of putting a knob to its default.
struct KnobReset {
  std::string knob;  // "power limit of gpu:0"
  Status done;
  std::string setting{};  // "250 W"
};
// Puts every knob of every GPU of the machine to the setting of its driver, whatever the journal
// says, and forgets the entries. Knobs that a GPU does not have are left out. Of CPUs the entries
// are put back: their kernel tells no default.
Result<std::vector<KnobReset>> ResetKnobs(KnobJournal& journal, const Surroundings& machine,
                                          KnobJournal::Holders holders);

// A power limit below the default of its device that no entry of the journal explains: set by an
// administrator, or left by a program whose journal is lost.
struct UnexplainedLimit {
  KnobDevice device;
  Watts limit;
  Watts default_limit;
};
// Nothing where the machine's policy says that such limits are intended.
std::vector<UnexplainedLimit> FindUnexplainedLimits(const Node& node, const KnobJournal& journal);
std::string ToText(const UnexplainedLimit& limit);
// Logs a warning for each. A journal that cannot be opened explains nothing.
void WarnOfUnexplainedLimits(const Node& node, Clock& clock);

}  // namespace zeus
