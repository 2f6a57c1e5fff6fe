#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace zeus::testing {

// A directory that lives as long as the test: fixture trees for sysfs readers, sockets, databases.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }

  // Creates parent directories as needed; replaces an existing file. Returns the full path.
  std::filesystem::path AddFile(const std::filesystem::path& relative, std::string_view content);

  // A symbolic link, as sysfs uses them between class and device directories.
  std::filesystem::path AddLink(const std::filesystem::path& relative,
                                const std::filesystem::path& target);

 private:
  std::filesystem::path path_;
};

}  // namespace zeus::testing
