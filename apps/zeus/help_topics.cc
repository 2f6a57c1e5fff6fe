#include "apps/zeus/help_topics.h"

namespace zeus::cli {
namespace {

constexpr const char* kConfiguration =
    R"(Every option that has a long name can have a default in a file or in the environment. From weak to
strong:

  /etc/zeus/zeus.toml             for all users of the machine
  ~/.config/zeus/zeus.toml        for one user ($XDG_CONFIG_HOME/zeus/zeus.toml where that is set)
  ZEUS_VERB_OPTION                in the environment: ZEUS_SIM_START_GPUS=2xA100
  --option                        on the command line

A key is the name of an option without the hyphens in front. Keys outside of tables hold for every verb that has the option; the table of a
verb holds for that verb and is stronger than they are in the same file.

  carbon = "DE"                   # every verb that has --carbon
  [run]
  quiet = true                    # a flag; --quiet=false turns it off again
  [train]
  server = "http://jobs:8000"
  [sim.start]
  gpus = "2xA100"
  [log]
  level = "info"                  # debug, info, warning, error, off
  format = "json"                 # text, or one JSON object in each line

An unknown key, a value of the wrong kind and a file that cannot be read are mistakes: the command says where, and does nothing. A value that a
verb rules out together with an option on the command line is left out. ZEUS_CONFIG names one file instead of the two; an empty one means none.

zeus config show prints what is configured and where each value comes from; zeus config show VERB prints all options of a verb.
)";

constexpr const char* kEnvironment =
    R"(Besides ZEUS_VERB_OPTION for any option (zeus help configuration), these variables are understood:

  ZEUS_CONFIG             configuration file, instead of those of the machine and the user
  ZEUS_LOG_LEVEL          debug, info, warning (default), error or off
  ZEUS_LOG_FORMAT         text (default) or json: one JSON object in each line
  ZEUS_SERVER             address of zeus serve, where --server is not given
  ZEUS_TOKEN              its token, where --token-file is not given
  ZEUS_CA_FILE            certificates that vouch for it, where --ca-file is not given
  ZEUSD_SOCK_PATH         socket of the node daemon
  ZEUSD_HOST_PORT         its address over TCP
  ZEUSD_TOKEN             its token over TCP
  ZEUS_SIM_NODE           simulated node that zeus sim and NVML programs see (zeus sim env)
  ZEUS_SIM_DIR            folder of the simulated nodes
  ZEUS_NVML_LIBRARY       driver library instead of libnvidia-ml.so.1
  ZEUS_ROCM_SMI_LIBRARY   driver library of AMD, old
  ZEUS_AMD_SMI_LIBRARY    driver library of AMD, new
  ZEUS_KNOB_DIR           folder of the journal of changed limits and clocks
  ZEUS_ACTIVITY_DIR       folder in which measurements of one machine know of each other
  ZEUS_PROFILE_DIR        folder of calibrations and power profiles
  ZEUS_LLM_TRACE_DIR      folder of recorded requests to language models
  NO_COLOR, TERM, COLUMNS colours, redrawn lines and width of a terminal
  LC_ALL, LC_CTYPE, LANG  a locale that is not UTF-8 gets ASCII
)";

constexpr const char* kExitCodes = R"(The exit code says what became of a command:

  0  done
  1  the answer is no: doctor found nothing that works, diff found that energy rose
  2  wrong command line or configuration; for zeus diff: undecided
  3  not found
  4  not supported here
  5  permission denied
  6  unavailable now: try again
  7  a bug, please report it
  8  wrong command line of zeus diff
  9  in conflict with what is there

zeus run and zeus profile end with the exit code of the command that they ran.
)";

constexpr const char* kFiles = R"(Files that Zeus reads and writes:

  /etc/zeus/zeus.toml                 defaults of options for all users
  ~/.config/zeus/zeus.toml            defaults of options for one user
  /etc/zeus/zeusd.toml                who may do what through the node daemon
  ~/.config/zeus                      calibrations and power profiles
  ~/.local/share/zeus                 databases of recurring jobs
  /run/zeusd/zeusd.sock               requests to the node daemon
  /run/zeusd/board.sock               readings of the node daemon
  /run/zeus                           journal of changed limits and clocks
  /var/lib/zeusd, /var/log/zeusd      state and audit log of the node daemon
)";

}  // namespace

std::vector<Topic> HelpTopics() {
  return {
      {"configuration", "Defaults of options, from files and the environment", kConfiguration},
      {"environment", "Variables of the environment that Zeus understands", kEnvironment},
      {"exit-codes", "Exit codes of the zeus command", kExitCodes},
      {"files", "Files that Zeus reads and writes", kFiles},
  };
}

}  // namespace zeus::cli
