#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"

// The messages between a node and the server that shares out a power budget: a node reports, and
// the answer is its next grant. docs/budget.md has them in full.
namespace zeus::budget {

// A GPU as its node reports it.
struct DeviceReport {
  std::string id{};     // "GPU-…"
  std::string model{};  // "V100"
  Watts lowest{};       // The power limits that the device accepts.
  Watts highest{};
  // The most that the device can be set to before the node applies another grant or the present
  // one expires: the cap of the budget, or what the device enforces where that is more. Without a
  // cap it is `highest`.
  Watts cap{};
  // The cap that will hold by itself once the present one has expired.
  Watts fallback{};
  std::optional<Watts> power{};         // The draw now; nullopt: not known.
  std::optional<double> utilization{};  // 0 to 1; nullopt: not known.

  friend bool operator==(const DeviceReport&, const DeviceReport&) = default;
};

// A point of a job's power profile.
struct CurveReport {
  Watts limit{};
  Watts draw{};         // Mean power of one GPU.
  double slowdown = 1;  // Time of a step relative to that without a cap.
  double sigma = 0;     // Standard deviation of the slowdown; 0: not known.

  friend bool operator==(const CurveReport&, const CurveReport&) = default;
};

// A job that runs on devices of the node.
struct JobReport {
  std::string id{};                    // "slurm:1234"; the same on all its nodes.
  std::string name{};                  // For people.
  std::vector<std::string> devices{};  // Those on this node.
  std::string partition{};             // For the classes of the configuration.
  std::optional<double> max_slowdown{};
  std::vector<CurveReport> curve{};  // Empty: not known.

  friend bool operator==(const JobReport&, const JobReport&) = default;
};

struct NodeReport {
  std::string node{};
  std::string session{};       // Differs for every start of the node's daemon.
  std::uint64_t sequence = 0;  // Grows with every report of a session.
  // The newest grant whose caps all hold, so that no older one is in force or will ever be; 0: none
  // of this session.
  std::uint64_t applied = 0;
  // Whether the caps fall to the fallback in time even when the daemon has died. Otherwise a
  // silent node is taken to keep its last caps.
  bool guarded = false;
  std::vector<DeviceReport> devices{};
  std::vector<JobReport> jobs{};

  friend bool operator==(const NodeReport&, const NodeReport&) = default;
};

struct DeviceCap {
  std::string device{};
  Watts cap{};
  Watts fallback{};  // The cap once the grant has expired.

  friend bool operator==(const DeviceCap&, const DeviceCap&) = default;
};

// A lease of watts. It counts from the moment at which the node sent the report that it answers, by
// the node's own monotonic clock; the server counts from later, so that its view is the longer one.
struct Grant {
  std::uint64_t number = 0;  // Grows; a node never applies one that is older than one it has seen.
  Seconds valid{};
  Seconds next_report{};  // When the server wants to hear from the node again.
  std::vector<DeviceCap> caps{};

  friend bool operator==(const Grant&, const Grant&) = default;
};

// A curve in the label `power_curve` of a job: "100:96:1.31 150:141:1.1:0.02 250:203:1" has limits
// and draws in watts, slowdowns and, where they are known, their standard deviations.
Result<std::vector<CurveReport>> ParseCurveText(std::string_view text);

// Names stand in addresses, files of tokens and tables: letters, digits, '.', '-' and '_', of which
// the first is a letter or a digit. kInvalidArgument says so.
Status CheckNodeName(std::string_view name);

Json ToJson(const NodeReport& report);
Json ToJson(const Grant& grant);
// kInvalidArgument begins with the name of the field, also for numbers that are no power: negative,
// infinite, or a range whose ends are exchanged.
Result<NodeReport> ParseNodeReport(const Json& json);
Result<Grant> ParseGrant(const Json& json);

}  // namespace zeus::budget
