#include "zeus/base/own_program.h"

#include <errno.h>

#include <algorithm>
#include <cstddef>
#include <system_error>

#include "zeus/base/file.h"

namespace zeus {
namespace {

constexpr std::size_t kLongestCommandLine = std::size_t{8} << 20U;

bool IsLoader(const std::filesystem::path& program) {
  return program.filename().string().starts_with("ld-");
}

// Leaves the words of the program: a loader stands in front of it with its options, each of which
// has a value.
void RemoveLoader(std::vector<std::string>& words) {
  std::size_t program = 1;
  while (program < words.size() && words[program].starts_with("--")) program += 2;
  words.erase(words.begin(),
              words.begin() + static_cast<std::ptrdiff_t>(std::min(program, words.size())));
}

Result<std::filesystem::path> RunningFile() {
  std::error_code failure;
  auto program = std::filesystem::read_symlink("/proc/self/exe", failure);
  if (failure) return Error{ErrorCode::kUnavailable, "cannot tell where this program is"};
  return program;
}

}  // namespace

Result<std::filesystem::path> OwnProgram() {
  ZEUS_TRY(std::filesystem::path program, RunningFile());
  const std::filesystem::path called = program_invocation_name;
  if (IsLoader(program) && called.is_absolute()) return called;
  return program;
}

Result<std::vector<std::string>> OwnCommandLine() {
  ZEUS_TRY(const std::string text, ReadSmallFile("/proc/self/cmdline", kLongestCommandLine));
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\0', begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  ZEUS_TRY(const std::filesystem::path program, RunningFile());
  if (IsLoader(program)) RemoveLoader(words);
  return words;
}

}  // namespace zeus
