// The options of nvidia-smi that scripts use. Its command line is older than the usual rules ("-pl
// 200", "--id=0"), so it is parsed here.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/nvidia_smi/gpu.h"
#include "apps/nvidia_smi/monitor.h"
#include "apps/nvidia_smi/report.h"
#include "apps/nvidia_smi/settings.h"
#include "zeus/base/clock.h"
#include "zeus/base/text.h"

namespace zeus::nvidia_smi {
namespace {

struct Option {
  std::string_view name;  // By which the rest of this file knows it.
  std::string_view alias;
  bool takes_value;
  std::string_view help;
};

constexpr Option kOptions[] = {
    {"--help", "-h", false, "Print this help"},
    {"--version", "", false, "Print the versions of the driver"},
    {"--list-gpus", "-L", false, "List the GPUs"},
    {"--query", "-q", false, "Print everything about the GPUs"},
    {"--display", "-d", true,
     "With -q, only these: MEMORY,UTILIZATION,ECC,TEMPERATURE,POWER,CLOCK,"
     "PCI,MIG,PERFORMANCE,PIDS"},
    {"--id", "-i", true, "Only the GPUs of these indexes, UUIDs, serial numbers or bus ids"},
    {"--query-gpu", "", true, "Print these fields of every GPU; see --help-query-gpu"},
    {"--query-compute-apps", "", true, "Print these fields of every process that computes"},
    {"--format", "", true, "csv[,noheader][,nounits]"},
    {"--help-query-gpu", "", false, "List the fields of queries"},
    {"--help-query-compute-apps", "", false, "List the fields of queries"},
    {"--loop", "-l", true, "Repeat every so many seconds"},
    {"--loop-ms", "-lms", true, "Repeat every so many milliseconds"},
    {"--filename", "-f", true, "Write to this file"},
    {"--power-limit", "-pl", true, "Set the power limit in watts"},
    {"--lock-gpu-clocks", "-lgc", true, "Lock the GPU clocks to MIN,MAX megahertz"},
    {"--reset-gpu-clocks", "-rgc", false, "Undo -lgc"},
    {"--lock-memory-clocks", "-lmc", true, "Lock the memory clocks to MIN,MAX megahertz"},
    {"--reset-memory-clocks", "-rmc", false, "Undo -lmc"},
    {"--applications-clocks", "-ac", true, "Set the applications clocks MEMORY,GRAPHICS"},
    {"--reset-applications-clocks", "-rac", false, "Undo -ac"},
    {"--persistence-mode", "-pm", true, "Set the persistence mode: 0 or 1"},
};

constexpr Option kMonitorOptions[] = {
    {"--id", "-i", true, "Only these GPUs"},
    {"--select", "-s", true,
     "Groups of metrics: p power, u utilisation, c clocks, m memory, "
     "e memory errors"},
    {"--delay", "-d", true, "Seconds between samples"},
    {"--count", "-c", true, "Number of samples"},
    {"--options", "-o", true, "T: begin lines with the time; D: with the date"},
    {"--filename", "-f", true, "Write to this file"},
    {"--help", "-h", false, "Print this help"},
};

using Values = std::map<std::string_view, std::string_view>;  // By name of the option.

const Option* FindOption(std::span<const Option> options, std::string_view text) {
  for (const Option& option : options)
    if (text == option.name || (!option.alias.empty() && text == option.alias)) return &option;
  return nullptr;
}

Result<Values> Parse(std::span<const Option> options, std::span<char* const> arguments) {
  Values values;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    const std::size_t equals = argument.find('=');
    const Option* option = FindOption(options, argument.substr(0, equals));
    if (option == nullptr)
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("Invalid combination of input arguments: \"{}\" is not an option. "
                               "Please run 'nvidia-smi -h' for help.",
                               argument)};
    std::string_view value;
    if (equals != std::string_view::npos) value = argument.substr(equals + 1);
    if (option->takes_value && equals == std::string_view::npos && i + 1 < arguments.size())
      value = arguments[++i];
    if (option->takes_value && value.empty())
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("Option \"{}\" needs a value: {}.", argument, option->help)};
    values[option->name] = value;
  }
  return values;
}

void PrintHelp(std::span<const Option> options) {
  fmt::print("nvidia-smi of a simulated node: shows and sets its GPUs.\n\n");
  for (const Option& option : options) {
    const std::string names = option.alias.empty()
                                  ? std::string(option.name)
                                  : fmt::format("{}, {}", option.alias, option.name);
    fmt::print("  {:<36} {}\n", names + (option.takes_value ? " VALUE" : ""), option.help);
  }
}

std::string_view ValueOf(const Values& values, std::string_view name) {
  const auto found = values.find(name);
  return found == values.end() ? "" : found->second;
}

int Complain(const Error& error) {
  fmt::print("{}\n", error.message);
  switch (error.code) {
    case ErrorCode::kNotFound:
      return nvml::kNotFound;
    case ErrorCode::kUnavailable:
      return nvml::kDriverNotLoaded;
    default:
      return kExitInvalid;
  }
}

// Everything that a program prints goes to this file.
Status RedirectOutput(std::string_view file) {
  if (file.empty()) return Ok();
  const int opened =
      ::open(std::string(file).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (opened < 0)
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("Failed to open \"{}\" for writing.", file)};
  ::dup2(opened, STDOUT_FILENO);
  ::close(opened);
  return Ok();
}

std::optional<int> ChangeSettings(const std::vector<Gpu>& gpus, const Values& values) {
  using WithValue = int (*)(const std::vector<Gpu>&, std::string_view);
  using Plain = int (*)(const std::vector<Gpu>&);
  constexpr std::pair<std::string_view, WithValue> kSetters[] = {
      {"--power-limit", SetPowerLimit},           {"--lock-gpu-clocks", LockGraphicsClocks},
      {"--lock-memory-clocks", LockMemoryClocks}, {"--applications-clocks", SetApplicationsClocks},
      {"--persistence-mode", SetPersistenceMode},
  };
  constexpr std::pair<std::string_view, Plain> kResetters[] = {
      {"--reset-gpu-clocks", ResetGraphicsClocks},
      {"--reset-memory-clocks", ResetMemoryClocks},
      {"--reset-applications-clocks", ResetApplicationsClocks},
  };
  std::optional<int> code;
  for (const auto& [name, set] : kSetters)
    if (code.value_or(0) == 0 && values.contains(name)) code = set(gpus, ValueOf(values, name));
  for (const auto& [name, reset] : kResetters)
    if (code.value_or(0) == 0 && values.contains(name)) code = reset(gpus);
  return code;
}

Status Show(const std::vector<Gpu>& gpus, const Values& values, bool header) {
  if (values.contains("--query-gpu") || values.contains("--query-compute-apps")) {
    ZEUS_TRY(CsvFormat format, ParseCsvFormat(ValueOf(values, "--format")));
    format.header = format.header && header;
    if (values.contains("--query-gpu"))
      return QueryGpus(gpus, ValueOf(values, "--query-gpu"), format);
    return QueryProcesses(gpus, ValueOf(values, "--query-compute-apps"), format);
  }
  if (values.contains("--list-gpus")) {
    PrintList(gpus);
    return Ok();
  }
  if (values.contains("--query")) return PrintSections(gpus, ValueOf(values, "--display"));
  PrintTable(gpus);
  return Ok();
}

Result<std::optional<Seconds>> LoopPeriod(const Values& values) {
  for (const auto& [name, unit] : {std::pair<std::string_view, double>{"--loop", 1.0},
                                   std::pair<std::string_view, double>{"--loop-ms", 1e-3}}) {
    if (!values.contains(name)) continue;
    const auto number = ParseUnsigned(ValueOf(values, name));
    if (!number.ok() || number.value() == 0)
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("Option \"{}\" needs a whole number above 0, not \"{}\".", name,
                               ValueOf(values, name))};
    return std::optional(Seconds(static_cast<double>(number.value()) * unit));
  }
  return std::optional<Seconds>();
}

Result<int> Run(std::span<char* const> arguments) {
  ZEUS_TRY(const Values values, Parse(kOptions, arguments));
  if (values.contains("--help")) {
    PrintHelp(kOptions);
    fmt::print("\n  dmon                                 Watch the GPUs: nvidia-smi dmon -h\n");
    return 0;
  }
  if (values.contains("--help-query-gpu") || values.contains("--help-query-compute-apps")) {
    PrintFieldNames();
    return 0;
  }
  ZEUS_TRY(const auto period, LoopPeriod(values));
  ZEUS_TRY(const Driver driver, Driver::Open());
  if (values.contains("--version")) {
    fmt::print("NVML version        : {}\nDRIVER version      : {}\n",
               driver.Text("nvmlSystemGetNVMLVersion").value_or("N/A"),
               driver.Text("nvmlSystemGetDriverVersion").value_or("N/A"));
    return 0;
  }
  ZEUS_TRY(const auto gpus, FindGpus(driver, ValueOf(values, "--id")));
  if (const auto code = ChangeSettings(gpus, values)) return *code;
  ZEUS_RETURN_IF_ERROR(RedirectOutput(ValueOf(values, "--filename")));
  SystemClock clock;
  bool header = true;
  do {
    ZEUS_RETURN_IF_ERROR(Show(gpus, values, header));
    header = false;
    std::fflush(stdout);
    if (period) clock.SleepFor(*period);
  } while (period);
  return 0;
}

Result<int> RunMonitor(std::span<char* const> arguments) {
  ZEUS_TRY(const Values values, Parse(kMonitorOptions, arguments));
  if (values.contains("--help")) {
    PrintHelp(kMonitorOptions);
    return 0;
  }
  MonitorOptions options;
  if (values.contains("--select")) options.groups = ValueOf(values, "--select");
  if (values.contains("--options")) options.stamp = ValueOf(values, "--options");
  for (const std::string_view name : {"--delay", "--count"}) {
    if (!values.contains(name)) continue;
    const auto number = ParseUnsigned(ValueOf(values, name));
    if (!number.ok() || number.value() == 0)
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("dmon's option \"{}\" needs a whole number above 0, not \"{}\".",
                               name, ValueOf(values, name))};
    if (name == "--count")
      options.samples = number.value();
    else
      options.period = Seconds(static_cast<double>(number.value()));
  }
  ZEUS_TRY(const Driver driver, Driver::Open());
  ZEUS_TRY(const auto gpus, FindGpus(driver, ValueOf(values, "--id")));
  ZEUS_RETURN_IF_ERROR(RedirectOutput(ValueOf(values, "--filename")));
  ZEUS_RETURN_IF_ERROR(Monitor(gpus, options));
  return 0;
}

}  // namespace
}  // namespace zeus::nvidia_smi

int main(int argc, char** argv) {
  using namespace zeus::nvidia_smi;
  const std::span<char* const> arguments(argv + 1, static_cast<std::size_t>(argc - 1));
  const bool monitor = !arguments.empty() && std::string_view(arguments[0]) == "dmon";
  const auto code = monitor ? RunMonitor(arguments.subspan(1)) : Run(arguments);
  return code.ok() ? code.value() : Complain(code.error());
}
