#include "apps/nvidia_smi/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>

#include "apps/nvidia_smi/fields.h"
#include "zeus/base/text.h"

namespace zeus::nvidia_smi {
namespace {

constexpr std::string_view kMissing = "[N/A]";

template <class Subject>
void PrintCsvHeader(const std::vector<const Field<Subject>*>& fields, std::string_view asked) {
  const auto names = SplitAtCommas(asked);
  std::string line;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (i > 0) line += ", ";
    line += names[i];
    if (!fields[i]->unit.empty()) line += fmt::format(" [{}]", fields[i]->unit);
  }
  fmt::print("{}\n", line);
}

template <class Subject>
void PrintCsvRow(const std::vector<const Field<Subject>*>& fields, const Subject& subject,
                 bool units) {
  std::string line;
  for (const auto* field : fields) {
    if (!line.empty()) line += ", ";
    const auto value = field->read(subject);
    line += value.value_or(std::string(kMissing));
    if (value && units && !field->unit.empty()) line += fmt::format(" {}", field->unit);
  }
  fmt::print("{}\n", line);
}

}  // namespace

Result<CsvFormat> ParseCsvFormat(std::string_view text) {
  CsvFormat format;
  bool csv = false;
  if (text.empty()) return Error{ErrorCode::kInvalidArgument, "\"--format=csv\" must be given."};
  for (const std::string_view part : SplitAtCommas(text)) {
    if (part == "csv")
      csv = true;
    else if (part == "noheader")
      format.header = false;
    else if (part == "nounits")
      format.units = false;
    else
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("\"{}\" is not a valid format option.", part)};
  }
  if (!csv) return Error{ErrorCode::kInvalidArgument, "\"--format=csv\" must be given."};
  return format;
}

Status QueryGpus(const std::vector<Gpu>& gpus, std::string_view names, const CsvFormat& format) {
  ZEUS_TRY(const auto fields, ChooseGpuFields(names));
  if (format.header) PrintCsvHeader(fields, names);
  for (const Gpu& gpu : gpus) PrintCsvRow(fields, gpu, format.units);
  return Ok();
}

Status QueryProcesses(const std::vector<Gpu>& gpus, std::string_view names,
                      const CsvFormat& format) {
  ZEUS_TRY(const auto fields, ChooseProcessFields(names));
  if (format.header) PrintCsvHeader(fields, names);
  for (const Gpu& gpu : gpus)
    for (const ComputeProcess& process : ComputeProcesses(gpu))
      PrintCsvRow(fields, process, format.units);
  return Ok();
}

void PrintFieldNames() {
  fmt::print("Fields of --query-gpu:\n");
  for (const GpuField& field : GpuFields())
    fmt::print("\"{}\"{}\n", field.name,
               field.alias.empty() ? "" : fmt::format(" or \"{}\"", field.alias));
  fmt::print("\nFields of --query-compute-apps:\n");
  for (const ProcessField& field : ProcessFields())
    fmt::print("\"{}\"{}\n", field.name,
               field.alias.empty() ? "" : fmt::format(" or \"{}\"", field.alias));
}

void PrintList(const std::vector<Gpu>& gpus) {
  for (const Gpu& gpu : gpus)
    fmt::print("GPU {}: {} (UUID: {})\n", gpu.index, ReadField(gpu, "name", "unknown"),
               ReadField(gpu, "uuid", "unknown"));
}

namespace {

std::string CudaVersion(const Driver& driver) {
  constexpr int kMajor = 1000;
  int version = 0;
  if (driver.Call("nvmlSystemGetCudaDriverVersion_v2", &version) != nvml::kSuccess) return "N/A";
  return fmt::format("{}.{}", version / kMajor, version % kMajor / 10);
}

std::string DriverVersion(const Driver& driver) {
  return driver.Text("nvmlSystemGetDriverVersion").value_or("N/A");
}

// "26 W" for the narrow columns of the table.
std::string Whole(const Gpu& gpu, std::string_view field, std::string_view unit) {
  const auto fields = ChooseGpuFields(field);
  const auto value = fields.value().front()->read(gpu);
  if (!value) return "N/A";
  return value->substr(0, value->find('.')) + std::string(unit);
}

void PrintGpuRow(const Gpu& gpu) {
  const auto enabled = [&](std::string_view field) {
    const std::string mode = ReadField(gpu, field, "N/A");
    return mode == "Enabled" ? "On" : mode == "Disabled" ? "Off" : mode;
  };
  fmt::print("| {:>3}  {:<26}{:>8} | {:>16} {:>3} | {:>20} |\n", gpu.index,
             ReadField(gpu, "name", "unknown").substr(0, 26), enabled("persistence_mode"),
             gpu.bus_id(), enabled("display_active"),
             ReadField(gpu, "ecc.errors.uncorrected.volatile.total", "N/A"));
  const std::string power = Whole(gpu, "power.draw", "W") + " / " + Whole(gpu, "power.limit", "W");
  const std::string memory =
      Whole(gpu, "memory.used", "MiB") + " / " + Whole(gpu, "memory.total", "MiB");
  fmt::print("| {:>3} {:>6} {:>6} {:>21} | {:>20} | {:>8} {:>11} |\n", Whole(gpu, "fan.speed", "%"),
             Whole(gpu, "temperature.gpu", "C"), ReadField(gpu, "pstate", "N/A"), power, memory,
             Whole(gpu, "utilization.gpu", "%"), ReadField(gpu, "compute_mode", "N/A"));
}

}  // namespace

void PrintTable(const std::vector<Gpu>& gpus) {
  const Driver& driver = *gpus.front().driver;
  const std::string columns = fmt::format("+{0:-<41}+{0:-<22}+{0:-<22}+", "");
  fmt::print("{}\n", LocalTime("%a %b %e %H:%M:%S %Y"));
  fmt::print("+{:-<87}+\n", "");
  fmt::print("| NVIDIA-SMI {:<17} Driver Version: {:<16} CUDA Version: {:<9} |\n",
             DriverVersion(driver), DriverVersion(driver), CudaVersion(driver));
  fmt::print("{}\n", columns);
  fmt::print("| GPU  {:<26}{:>8} | {:<16} {:>3} | {:>20} |\n", "Name", "Persist.", "Bus-Id", "Dis",
             "Uncorrected ECC");
  fmt::print("| Fan   Temp   Perf {:>20}  | {:>20} | {:>8} {:>11} |\n", "Pwr: use / limit",
             "Memory: used / all", "GPU-Util", "Compute M.");
  fmt::print("{}\n", columns);
  for (const Gpu& gpu : gpus) PrintGpuRow(gpu);
  fmt::print("{}\n\n", columns);
  fmt::print("+{:-<87}+\n| {:<85} |\n| {:>4} {:>10} {:>5}  {:<45} {:>15} |\n+{:-<87}+\n", "",
             "Processes:", "GPU", "PID", "Type", "Process name", "GPU Memory", "");
  bool any = false;
  for (const Gpu& gpu : gpus) {
    for (const ComputeProcess& process : ComputeProcesses(gpu)) {
      any = true;
      const std::string name =
          gpu.driver->Text("nvmlSystemGetProcessName", process.info.pid).value_or("-");
      fmt::print("| {:>4} {:>10} {:>5}  {:<45} {:>12}MiB |\n", gpu.index, process.info.pid, "C",
                 name.substr(0, 45), process.info.used_gpu_memory >> 20);
    }
  }
  if (!any) fmt::print("| {:<85} |\n", " No running processes found");
  fmt::print("+{:-<87}+\n", "");
}

namespace {

struct Line {
  std::string_view label;
  std::string_view field;
};

struct Section {
  std::string_view key;  // For -d; the first section is always shown.
  std::string_view title;
  std::vector<Line> lines;
};

// A table. NOLINTNEXTLINE(readability-function-size)
const std::vector<Section>& Sections() {
  static const std::vector<Section> sections = {
      {"",
       "",
       {{"Product Name", "name"},
        {"Display Mode", "display_mode"},
        {"Display Active", "display_active"},
        {"Persistence Mode", "persistence_mode"},
        {"Accounting Mode", "accounting.mode"},
        {"Serial Number", "serial"},
        {"GPU UUID", "uuid"},
        {"Minor Number", "index"},
        {"VBIOS Version", "vbios_version"},
        {"Fan Speed", "fan.speed"},
        {"Performance State", "pstate"},
        {"Compute Mode", "compute_mode"}}},
      {"MIG", "MIG Mode", {{"Current", "mig.mode.current"}, {"Pending", "mig.mode.pending"}}},
      {"PCI",
       "PCI",
       {{"Bus Id", "pci.bus_id"},
        {"Domain", "pci.domain"},
        {"Bus", "pci.bus"},
        {"Device", "pci.device"},
        {"Device Id", "pci.device_id"},
        {"Link Generation", "pcie.link.gen.current"},
        {"Link Width", "pcie.link.width.current"}}},
      {"PERFORMANCE",
       "Clocks Event Reasons",
       {{"Idle", "clocks_throttle_reasons.gpu_idle"},
        {"Applications Clocks Setting", "clocks_throttle_reasons.applications_clocks_setting"},
        {"SW Power Cap", "clocks_throttle_reasons.sw_power_cap"},
        {"HW Slowdown", "clocks_throttle_reasons.hw_slowdown"},
        {"SW Thermal Slowdown", "clocks_throttle_reasons.sw_thermal_slowdown"}}},
      {"MEMORY",
       "FB Memory Usage",
       {{"Total", "memory.total"},
        {"Reserved", "memory.reserved"},
        {"Used", "memory.used"},
        {"Free", "memory.free"}}},
      {"UTILIZATION",
       "Utilization",
       {{"Gpu", "utilization.gpu"},
        {"Memory", "utilization.memory"},
        {"Encoder", "utilization.encoder"},
        {"Decoder", "utilization.decoder"}}},
      {"ECC", "ECC Mode", {{"Current", "ecc.mode.current"}, {"Pending", "ecc.mode.pending"}}},
      {"TEMPERATURE",
       "Temperature",
       {{"GPU Current Temp", "temperature.gpu"}, {"Memory Current Temp", "temperature.memory"}}},
      {"POWER",
       "GPU Power Readings",
       {{"Power Draw", "power.draw"},
        {"Instantaneous Power Draw", "power.draw.instant"},
        {"Current Power Limit", "enforced.power.limit"},
        {"Requested Power Limit", "power.limit"},
        {"Default Power Limit", "power.default_limit"},
        {"Min Power Limit", "power.min_limit"},
        {"Max Power Limit", "power.max_limit"}}},
      {"CLOCK",
       "Clocks",
       {{"Graphics", "clocks.current.graphics"},
        {"SM", "clocks.current.sm"},
        {"Memory", "clocks.current.memory"},
        {"Video", "clocks.current.video"}}},
      {"CLOCK",
       "Applications Clocks",
       {{"Graphics", "clocks.applications.graphics"}, {"Memory", "clocks.applications.memory"}}},
      {"CLOCK",
       "Max Clocks",
       {{"Graphics", "clocks.max.graphics"},
        {"SM", "clocks.max.sm"},
        {"Memory", "clocks.max.memory"}}},
  };
  return sections;
}

void PrintEntry(int indent, std::string_view label, std::string_view value) {
  constexpr int kValueColumn = 42;
  fmt::print("{:<{}}{:<{}}: {}\n", "", indent, label, kValueColumn - indent, value);
}

// ReadField() gives a temperature without its unit, as queries do.
std::string EntryValue(const Gpu& gpu, std::string_view field) {
  const std::string value = ReadField(gpu, field, "N/A");
  return field.starts_with("temperature") && value != "N/A" ? value + " C" : value;
}

void PrintSection(const Gpu& gpu, const Section& section) {
  const int indent = section.title.empty() ? 4 : 8;
  if (!section.title.empty()) fmt::print("    {}\n", section.title);
  for (const Line& line : section.lines)
    PrintEntry(indent, line.label, EntryValue(gpu, line.field));
}

void PrintProcesses(const Gpu& gpu) {
  const auto processes = ComputeProcesses(gpu);
  if (processes.empty()) return PrintEntry(4, "Processes", "None");
  fmt::print("    Processes\n");
  for (const ComputeProcess& process : processes) {
    PrintEntry(8, "Process ID", fmt::format("{}", process.info.pid));
    PrintEntry(12, "Type", "C");
    PrintEntry(12, "Name",
               gpu.driver->Text("nvmlSystemGetProcessName", process.info.pid).value_or("N/A"));
    PrintEntry(12, "Used GPU Memory", fmt::format("{} MiB", process.info.used_gpu_memory >> 20));
  }
}

}  // namespace

Status PrintSections(const std::vector<Gpu>& gpus, std::string_view display) {
  constexpr std::string_view kProcesses = "PIDS";
  std::vector<std::string_view> wanted;
  if (!display.empty()) wanted = SplitAtCommas(display);
  const auto is_wanted = [&](std::string_view key) {
    return wanted.empty() || std::find(wanted.begin(), wanted.end(), key) != wanted.end();
  };
  for (const std::string_view key : wanted) {
    const auto& sections = Sections();
    const bool known =
        key == kProcesses ||
        std::any_of(sections.begin(), sections.end(), [&](const auto& s) { return s.key == key; });
    if (!known || key.empty())
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("\"{}\" is not a section that -d can display.", key)};
  }
  const Driver& driver = *gpus.front().driver;
  fmt::print("\n==============NVSMI LOG==============\n\n");
  PrintEntry(0, "Timestamp", LocalTime("%a %b %e %H:%M:%S %Y"));
  PrintEntry(0, "Driver Version", DriverVersion(driver));
  PrintEntry(0, "CUDA Version", CudaVersion(driver));
  fmt::print("\n");
  PrintEntry(0, "Attached GPUs", fmt::format("{}", gpus.size()));
  for (const Gpu& gpu : gpus) {
    fmt::print("GPU {}\n", gpu.bus_id());
    for (const Section& section : Sections())
      if (section.key.empty() ? wanted.empty() : is_wanted(section.key)) PrintSection(gpu, section);
    if (is_wanted(kProcesses)) PrintProcesses(gpu);
    fmt::print("\n");
  }
  return Ok();
}

}  // namespace zeus::nvidia_smi
