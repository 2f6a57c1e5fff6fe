#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "zeus/base/result.h"

namespace zeus::recording {

struct BundleFile {
  std::string name;  // At most 99 bytes, without folders.
  std::string content;
};

// Writes the files into a compressed archive (tar and gzip) that any tar can unpack, readable by
// its owner only. An existing file is replaced.
Status WriteBundle(const std::filesystem::path& path, const std::vector<BundleFile>& files);

}  // namespace zeus::recording
