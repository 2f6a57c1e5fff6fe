#include "apps/zeus/run/rank_witness.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "apps/zeus/output.h"
#include "apps/zeus/output_file.h"
#include "apps/zeus/terminal.h"
#include "zeus/base/json.h"
#include "zeus/base/process.h"

namespace zeus::cli {
namespace {

// Several nodes of Slurm may run on one machine, which is their host.
std::string NameOfNode() {
  const auto slurm = ProcessEnvironment()("SLURMD_NODENAME");
  return slurm && !slurm->empty() ? *slurm : HostName();
}

RunReport ReportOf(const RunOptions& options, JobMeasurement job) {
  RunReport report;
  report.command = options.command;
  report.label = options.label;
  report.rows = options.per_node ? RunReport::Rows::kNodes : RunReport::Rows::kTotal;
  std::vector<std::string> hosts;
  for (const JobMeasurement::Node& node : job.nodes) hosts.push_back(node.host);
  report.host = fmt::format("{}", fmt::join(hosts, ","));
  for (const RankDevice& device : job.devices)
    report.devices.push_back({.device = device.device,
                              .model = device.model,
                              .uuid = device.uuid,
                              .calibrated = device.calibrated});
  constexpr int kKilled = 128 + SIGKILL;
  int exit_code = 0;
  for (const JobMeasurement::Rank& rank : job.ranks)
    if (exit_code == 0) exit_code = rank.exit_code.value_or(kKilled);
  report.runs.push_back({exit_code, job.measurement});
  report.ranks = std::move(job);
  return report;
}

// mpirun leaves soon after it has killed its ranks, and then nobody reads what they print.
bool ReaderOfErrorsIsGone() {
  constexpr int kTime = 500;  // Milliseconds.
  ::pollfd errors{.fd = STDERR_FILENO, .events = 0, .revents = 0};
  return ::poll(&errors, 1, kTime) > 0;
}

void Await(RankMeeting& meeting, const std::function<bool()>& condition) {
  while (!condition()) {
    ::pollfd news{.fd = meeting.descriptor(), .events = POLLIN, .revents = 0};
    ::poll(&news, 1, -1);
    meeting.ClearNews();
  }
}

}  // namespace

RankShare RankWitness::Here(const RunMeter& meter) const {
  RankShare share{.rank = options_.place->rank, .host = NameOfNode()};
  meter.Describe(share);
  return share;
}

// The exit code of the command; nullopt when the rank was killed.
std::optional<int> RankWitness::AwaitCommand() {
  while (true) {
    const bool alive = rank_.Pump();
    if (const auto message = rank_.Next()) {
      const auto code = GetField<int>(*message, "ended");
      return code.ok() ? std::optional(code.value()) : std::nullopt;
    }
    if (!alive) return std::nullopt;
    ::pollfd readable{.fd = rank_.descriptor(), .events = POLLIN, .revents = 0};
    ::poll(&readable, 1, -1);
  }
}

Status RankWitness::Run() {
  const auto clock = std::make_shared<SystemClock>();
  ZEUS_TRY(const CarbonAccounting carbon, CarbonAccounting::Open(*clock, options_.carbon));
  ZEUS_TRY(const std::unique_ptr<SignalWatch> signals, SignalWatch::WatchNothing());
  ZEUS_TRY(const std::unique_ptr<RunMeter> meter, RunMeter::Open(clock, *signals, options_.meter));
  RankShare share = Here(*meter);
  meter->Begin();
  share.begin = Seconds(clock->Now().time_since_epoch());
  RankMeeting meeting(*clock, *options_.place, share,
                      MeetingPoint::Of(*options_.place, ProcessEnvironment()));
  rank_.Send({{"ready", true}});
  rank_.Pump();
  share.exit_code = AwaitCommand();
  meeting.End();
  Await(meeting, [&] { return meeting.Over(); });
  share.measurement = meter->End(options_.refinement);
  meeting.Deliver(std::move(share));
  Await(meeting, [&] { return meeting.outcome() != RankMeeting::Outcome::kUndecided; });
  Status written = Ok();
  if (meeting.outcome() == RankMeeting::Outcome::kReport) written = Report(meeting, *meter, carbon);
  rank_.Send({{"done", written.ok() ? "" : written.error().message}});
  rank_.Pump();
  return Ok();
}

Status RankWitness::Report(RankMeeting& meeting, const RunMeter& meter,
                           const CarbonAccounting& carbon) const {
  RunReport report = ReportOf(options_, Combine(options_.place->size, meeting.TakeShares()));
  report.remarks = meter.remarks();
  for (std::string& remark : RemarksOnWishes()) report.remarks.push_back(std::move(remark));
  for (std::string& remark : meeting.Remarks()) report.remarks.push_back(std::move(remark));
  if (carbon.wanted()) report.carbon = ReportCarbon(carbon, report.runs.front().measurement);
  Status written = Ok();
  if (!options_.json.empty() && options_.json != "-")
    written = WriteWhole(options_.json, JsonText(ToJson(report), 2) + "\n");
  if (!options_.csv.empty())
    if (Status appended = Append(options_.csv, CsvHeader(), ToCsv(report, 0)); !appended.ok())
      written = std::move(appended);
  // The launcher, which reads both, may be dead: then writing fails.
  if (!options_.quiet) Show(stderr, ToTable(report));
  if (options_.explain) Show(stderr, ToExplanation(report));
  const bool failed = report.runs.front().exit_code != 0;
  if (failed && !options_.quiet && options_.json.empty() && ReaderOfErrorsIsGone())
    written = WriteWhole(fmt::format("zeus-run-{:x}.txt", LaunchNumber(*options_.place)),
                         ToTable(report));
  if (options_.json == "-") PrintJson(ToJson(report));
  std::fflush(stdout);
  return written;
}

}  // namespace zeus::cli
