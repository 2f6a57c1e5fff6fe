#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/zeus/configuration/places.h"
#include "apps/zeus/manual/description.h"
#include "zeus/base/file.h"
#include "zeus/base/result.h"

// Defaults for options, from files and from the environment. From weak to strong: the files in
// their order (in each, keys outside of all tables are weaker than those in the table of a verb),
// the environment, the command line.
//
//   carbon = "DE"             # for every verb that has --carbon
//   [run]
//   label = "nightly"         # zeus run --label nightly; also ZEUS_RUN_LABEL=nightly
//   [sim.start]
//   gpus = "2xA100"
//   [log]
//   level = "info"            # debug, info, warning, error, off; also ZEUS_LOG_LEVEL
//   format = "json"           # text, json; also ZEUS_LOG_FORMAT
namespace zeus::cli {

// One value and where it stands.
struct ConfiguredValue {
  std::string verb;    // "sim start"; empty: every verb that has the option; "log".
  std::string option;  // Without hyphens in front.
  std::vector<std::string> values;
  bool truth = false;        // true or false, as a flag wants it.
  std::string origin;        // "/etc/zeus/zeus.toml:3", "environment ZEUS_RUN_LABEL"
  bool readable = true;      // By this mechanism. Else the program reads the variable itself.
  std::size_t strength = 0;  // The stronger one of two settings has the higher number.
};

// An option that values are looked up for.
struct OptionKey {
  std::string verb;                // "sim start"
  std::vector<std::string> names;  // Those without hyphens in front, any of which a file may use.
  bool flag = false;
};

class Configuration {
 public:
  // Reads the files. kInvalidArgument names file and line of the first mistake: wrong TOML, a key
  // that no verb knows, a value of the wrong kind; kPermissionDenied a file that cannot be read.
  // `describe` is called only if there is a file.
  static Result<Configuration> Read(const ConfigurationPlaces& places,
                                    const std::function<VerbDescription()>& describe);

  // Returns the strongest value for an option, unless its program reads that one itself.
  std::optional<ConfiguredValue> Find(const OptionKey& option) const;

  // Whether a value for the other option, of the two that exclude each other, is as strong or
  // stronger: --server and --database.
  bool HasStrongerRival(const OptionKey& option, const ConfiguredValue& value) const;

  // All values for that option, from weak to strong, those of the environment included. A key that
  // is for all verbs is none for an option of another kind: json = true is for flags.
  std::vector<ConfiguredValue> FindAll(const OptionKey& option) const;

  // Values in files, from weak to strong.
  const std::vector<ConfiguredValue>& in_files() const { return settings_; }

  // Sets level and form of the log, unless the environment does.
  void SetUpLog() const;

 private:
  // Appends the values that variables have for that option.
  void AddOfEnvironment(const std::string& verb, const std::string& name,
                        std::vector<ConfiguredValue>& found) const;

  explicit Configuration(Environment environment) : environment_(std::move(environment)) {}

  // The last one of this option among those of the files.
  const ConfiguredValue* InFiles(const std::string& verb, const std::string& option) const;

  std::vector<ConfiguredValue> settings_;
  Environment environment_;
};

// The option that says the same in another way, where there is one: "database" for "server".
std::optional<std::string> RivalOf(const std::string& option);

// ZEUS_SIM_START_GPUS for --gpus of zeus sim start.
std::string VariableOf(const std::string& verb, const std::string& option);

}  // namespace zeus::cli
