#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <system_error>

#include "apps/zeus/sim/commands.h"

namespace zeus::cli {
namespace {

// A shell takes everything between single quotes literally, except the quote itself.
std::string ShellQuote(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

// The library lies beside the running program, in the build tree as in an installation.
Result<std::filesystem::path> FindLibrary() {
  std::error_code failure;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", failure);
  if (failure) return Error{ErrorCode::kUnavailable, "cannot tell where the zeus program is"};
  const auto prefix = program.parent_path().parent_path();
  for (const char* directory : {ZEUS_INSTALL_LIBDIR, "lib"}) {
    const auto library = prefix / directory / "zeus/sim/libnvidia-ml.so.1";
    if (std::filesystem::exists(library, failure)) return library;
  }
  return Error{ErrorCode::kNotFound,
               fmt::format("the simulated NVML library is missing: {} does not exist; ./dev build "
                           "builds it, which ./dev demo leaves out, or install Zeus completely",
                           (prefix / ZEUS_INSTALL_LIBDIR / "zeus/sim/libnvidia-ml.so.1").string())};
}

// Returns the folders of LD_LIBRARY_PATH without `ours`.
std::string WithoutFolder(std::string_view folders, const std::string& ours) {
  std::string rest;
  while (true) {
    const std::size_t colon = folders.find(':');
    const std::string_view folder = folders.substr(0, colon);
    if (folder != ours && !folder.empty()) rest += (rest.empty() ? "" : ":") + std::string(folder);
    if (colon == std::string_view::npos) return rest;
    folders.remove_prefix(colon + 1);
  }
}

// Prints the commands that undo those of PrintEnvironment(). Neither the node nor the library has
// to be there any more. Variables that something else has set stay.
Result<int> PrintUnset() {
  fmt::print("unset ZEUS_SIM_NODE\n");
  const char* const library = std::getenv("ZEUS_NVML_LIBRARY");
  const std::filesystem::path ours = library != nullptr ? library : "";
  if (!ours.string().ends_with("/zeus/sim/libnvidia-ml.so.1")) return 0;
  fmt::print("unset ZEUS_NVML_LIBRARY\n");
  const char* const folders = std::getenv("LD_LIBRARY_PATH");
  if (folders == nullptr) return 0;
  const std::string rest = WithoutFolder(folders, ours.parent_path().string());
  if (rest.empty())
    fmt::print("unset LD_LIBRARY_PATH\n");
  else
    fmt::print("export LD_LIBRARY_PATH={}\n", ShellQuote(rest));
  return 0;
}

Result<int> PrintEnvironment(const std::string& name) {
  SystemClock clock;
  ZEUS_TRY(const auto directory, sim::NodeDirectory::FromEnvironment(clock));
  // A wrong name is reported here; otherwise it would show up only later, as a driver that is not
  // loaded.
  ZEUS_TRY(const sim::SharedNode node, directory.Open(name, sim::Access::kRead));
  ZEUS_TRY(const auto library, FindLibrary());
  if (const char* place = std::getenv("ZEUS_SIM_DIR"); place != nullptr && *place != '\0')
    // The path is absolute, because the user may evaluate the output in another folder.
    fmt::print("export ZEUS_SIM_DIR={}\n", ShellQuote(std::filesystem::absolute(place).string()));
  fmt::print("export ZEUS_SIM_NODE={}\n", ShellQuote(node.name()));
  fmt::print("export ZEUS_NVML_LIBRARY={}\n", ShellQuote(library.string()));
  fmt::print("export LD_LIBRARY_PATH={}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}\n",
             ShellQuote(library.parent_path().string()));
  return 0;
}

}  // namespace

void AddSimEnv(Verb sim, Action& action) {
  auto name = std::make_shared<std::string>(sim::ChosenNodeName());
  const Verb command = sim.AddVerb(
      "env", "Print the environment in which NVML clients see the node: eval \"$(zeus sim env)\"");
  AddNameOption(command, *name);
  auto unset = std::make_shared<bool>(false);
  command.AddFlag("--unset", *unset,
                  "Print the commands that undo it: eval \"$(zeus sim env --unset)\"");
  command.OnChosen([name, unset, &action] {
    action = [name, unset] { return *unset ? PrintUnset() : PrintEnvironment(*name); };
  });
}

}  // namespace zeus::cli
