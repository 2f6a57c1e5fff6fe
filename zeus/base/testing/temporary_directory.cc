#include "zeus/base/testing/temporary_directory.h"

#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <system_error>

namespace zeus::testing {

TemporaryDirectory::TemporaryDirectory() {
  std::string name = (std::filesystem::temp_directory_path() / "zeus-test-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed: " + name);
  path_ = name;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::filesystem::path TemporaryDirectory::AddFile(const std::filesystem::path& relative,
                                                  std::string_view content) {
  auto path = path_ / relative;
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
  return path;
}

std::filesystem::path TemporaryDirectory::AddLink(const std::filesystem::path& relative,
                                                  const std::filesystem::path& target) {
  auto path = path_ / relative;
  std::filesystem::create_directories(path.parent_path());
  std::filesystem::create_symlink(target, path);
  return path;
}

}  // namespace zeus::testing
