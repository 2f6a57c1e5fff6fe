#include "zeus/gateway/listening_process.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <system_error>

#include "zeus/base/text.h"

namespace zeus::gateway {
namespace {

namespace fs = std::filesystem;

// The inodes of the sockets that listen on the port, from a table such as /proc/net/tcp: "sl
// local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode".
void AddListeningInodes(const fs::path& table, std::uint16_t port, std::set<std::string>& inodes) {
  std::ifstream file(table);
  std::string line;
  const std::string wanted = fmt::format(":{:04X}", port);
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string word;
    std::vector<std::string> fields;
    while (words >> word) fields.push_back(word);
    constexpr std::string_view kListening = "0A";
    if (fields.size() > 9 && fields[1].ends_with(wanted) && fields[3] == kListening)
      inodes.insert(fmt::format("socket:[{}]", fields[9]));
  }
}

bool HoldsSocket(const fs::path& process, const std::set<std::string>& inodes) {
  std::error_code failure;
  for (fs::directory_iterator entry(process / "fd", failure), end; !failure && entry != end;
       entry.increment(failure)) {
    std::error_code ignored;
    if (inodes.contains(fs::read_symlink(entry->path(), ignored).string())) return true;
  }
  return false;
}

// The parent of a process, from its stat file: "pid (name) state ppid ...".
int ParentProcess(const fs::path& process) {
  std::ifstream file(process / "stat");
  std::string text;
  std::getline(file, text);
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return 0;
  std::istringstream words(text.substr(name_end + 1));
  std::string state;
  int parent = 0;
  words >> state >> parent;
  return parent;
}

}  // namespace

std::vector<int> ListeningProcesses(std::uint16_t port, const fs::path& procfs) {
  std::set<std::string> inodes;
  for (const char* table : {"net/tcp", "net/tcp6"})
    AddListeningInodes(procfs / table, port, inodes);
  std::set<int> found;
  std::map<int, int> parents;
  std::error_code failure;
  if (inodes.empty()) return {};
  for (fs::directory_iterator entry(procfs, failure), end; !failure && entry != end;
       entry.increment(failure)) {
    const auto number = ParseUnsigned(entry->path().filename().string());
    if (!number.ok()) continue;
    const int process = static_cast<int>(number.value());
    parents[process] = ParentProcess(entry->path());
    if (HoldsSocket(entry->path(), inodes)) found.insert(process);
  }
  // Adds children until there are no more.
  for (bool grew = !found.empty(); grew;) {
    grew = false;
    for (const auto& [process, parent] : parents)
      if (found.contains(parent) && found.insert(process).second) grew = true;
  }
  return {found.begin(), found.end()};
}

}  // namespace zeus::gateway
