#pragma once

#include <filesystem>
#include <vector>

#include "zeus/base/file.h"

namespace zeus::cli {

struct ConfigurationPlaces {
  std::vector<std::filesystem::path>
      files;  // From weak to strong. Those that are missing are skipped.
  Environment environment = ProcessEnvironment();
  // Whether another program has checked the files, which knows more verbs: then what this one does
  // not know is skipped instead of being a mistake.
  bool checked = false;
};

// The files of a machine and of its user; or the one that ZEUS_CONFIG names, which may be empty for
// none.
ConfigurationPlaces UserConfiguration(const Environment& environment = ProcessEnvironment());

}  // namespace zeus::cli
