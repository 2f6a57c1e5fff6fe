#pragma once

#include <string_view>
#include <vector>

#include "apps/nvidia_smi/gpu.h"
#include "zeus/base/result.h"

namespace zeus::nvidia_smi {

// How a query prints its table.
struct CsvFormat {
  bool header = true;
  bool units = true;
};

// Parses "csv", "csv,noheader" or "csv,noheader,nounits".
Result<CsvFormat> ParseCsvFormat(std::string_view text);

void PrintList(const std::vector<Gpu>& gpus);   // -L
void PrintTable(const std::vector<Gpu>& gpus);  // Without options.
// -q: the sections that `display` names, such as "POWER,CLOCK", or all.
Status PrintSections(const std::vector<Gpu>& gpus, std::string_view display);
Status QueryGpus(const std::vector<Gpu>& gpus, std::string_view fields, const CsvFormat& format);
Status QueryProcesses(const std::vector<Gpu>& gpus, std::string_view fields,
                      const CsvFormat& format);
void PrintFieldNames();  // --help-query-gpu and --help-query-compute-apps

}  // namespace zeus::nvidia_smi
