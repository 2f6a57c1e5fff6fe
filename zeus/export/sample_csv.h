#pragma once

#include <string>
#include <vector>

#include "zeus/export/sample.h"

namespace zeus {

// Samples as comma-separated values: a row per device, so that the columns are the same on every
// machine. Unknown values are empty cells. See docs/formats.md.
std::string SampleCsvHeader();
std::vector<std::string> SampleCsvRows(const Sample& sample);

}  // namespace zeus
