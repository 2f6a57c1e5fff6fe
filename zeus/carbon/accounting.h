#pragma once

#include <span>
#include <string>
#include <vector>

#include "zeus/carbon/intensity_source.h"
#include "zeus/carbon/quantities.h"
#include "zeus/carbon/tariff.h"

namespace zeus {

// Energy that was used evenly between two moments.
struct EnergyPiece {
  WallTime begin;
  WallTime end;  // Not before `begin`; the same moment is allowed.
  Joules energy;
};

// Energy over time: one piece when only the total of a window is known, many along a time line.
struct EnergyUse {
  std::vector<EnergyPiece> pieces;
  Joules sigma;  // Sigma of the sum; mostly the gain of the sensor, which all pieces share.

  Joules Sum() const;
};

// The part of a result that emissions and cost have in common.
struct Accounted {
  Joules energy;                     // Energy for which there was a value.
  Joules missing;                    // Energy for which there was none.
  std::vector<std::string> sources;  // Without duplicates, in the order of use.
  std::vector<std::string> notes;    // Stale values, fallbacks, reasons for gaps.
  bool estimated = false;

  bool complete() const { return missing == Joules(0); }
};

// Energy times intensity, cut wherever the intensity changes. Cutting neither adds nor loses:
// at a constant intensity the sum is energy times intensity, whatever the pieces.
struct Emissions {
  GramsCo2e amount;
  GramsCo2e sigma;  // From the errors of energy and intensity; intensities share one error.
  Accounted accounted;
};
Emissions ComputeEmissions(const EnergyUse& use, IntensitySource& source);

struct Cost {
  Money amount;
  Money sigma;
  std::string currency;
  Accounted accounted;
};
Cost ComputeCost(const EnergyUse& use, PriceSource& source);

}  // namespace zeus
