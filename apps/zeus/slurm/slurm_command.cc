#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/zeus/commands.h"
#include "apps/zeus/node/connect.h"
#include "apps/zeus/output.h"
#include "apps/zeus/slurm/slurm_report.h"
#include "integrations/slurm/job_hooks.h"
#include "integrations/slurm/zeusd_socket.h"
#include "zeus/base/clock.h"
#include "zeus/base/field_reader.h"
#include "zeus/base/json.h"
#include "zeus/base/process.h"
#include "zeus/base/random.h"
#include "zeus/base/text.h"
#include "zeus/process/run_command.h"

// Commands for clusters with Slurm: hooks for sites without SPANK, and what a job has used.
namespace zeus::cli {
namespace {

constexpr Seconds kLongestClient{1.5};  // A client of Slurm inside a hook of two seconds.
constexpr Seconds kLongestReport{60};
constexpr int kTriesOfComment = 4;

struct SlurmOptions {
  std::string socket{slurm::kDefaultSocket};
  std::string mode = "measure";
  std::string power_limit{};
  std::string job{};
  std::vector<std::string> daemons{};
  bool admin_comment = false;
  bool json = false;
};

const char* HookVariable(const char* name) { return std::getenv(name); }

std::string NodeName() {
  const char* name = std::getenv("SLURMD_NODENAME");
  return name == nullptr ? HostName() : std::string(name);
}

std::string SocketOf(const SlurmOptions& options) {
  return slurm::SocketOfNode(options.socket, NodeName());
}

Result<std::string> AskSlurm(const std::vector<std::string>& command, Seconds timeout) {
  ZEUS_TRY(const CommandOutcome outcome, RunCommand(command, timeout));
  if (outcome.timed_out)
    return Error{ErrorCode::kUnavailable, fmt::format("{} does not answer", command[0])};
  if (!WIFEXITED(outcome.status) || WEXITSTATUS(outcome.status) != 0)
    return Error{ErrorCode::kUnavailable,
                 fmt::format("{}: {}", command[0], Printable(Trim(outcome.output)))};
  return outcome.output;
}

// The comment of a job in Slurm's accounting, which has ` for ".
Result<std::string> ReadComment(const std::string& job) {
  ZEUS_TRY(std::string answer,
           AskSlurm({"sacct", "-nPXj", job, "-o", "AdminComment"}, kLongestClient));
  answer.resize(std::min(answer.find('\n'), answer.size()));
  std::ranges::replace(answer, '`', '"');
  return answer;
}

// slurmctld changes no comment of a job that has ended, so the accounting does.
Status ChangeComment(const std::string& job, std::string comment) {
  std::ranges::replace(comment, '"', '`');
  const std::string set = "admincomment=" + comment;
  const auto done = AskSlurm(
      {"sacctmgr", "-i", "modify", "job", "where", "jobid=" + job, "set", set}, kLongestClient);
  if (done.ok()) return Ok();
  return done.error();
}

// Puts the energy of this node into the job's comment. Nodes of a job do so at the same time, and
// Slurm knows no "if it is still the same": who finds its own share missing writes again.
Status WriteComment(const SlurmOptions& options, const std::string& key) {
  SystemClock clock;
  ZEUS_TRY(const auto client, Connect({.socket = SocketOf(options)}, clock));
  ZEUS_TRY(const Json record, client->Job(key));
  ZEUS_TRY(const NodeShare share, ShareOfRecord(record, NodeName()));
  std::optional<double> limit;
  FieldReader reader("the daemon's record of the job", record);
  reader.Read("power_limit_watts", limit);
  ZEUS_RETURN_IF_ERROR(reader.FinishAllowingOthers());
  const std::string job = key.substr(key.find_last_of(".:") + 1);
  for (int i = 0; i < kTriesOfComment; ++i) {
    ZEUS_TRY(const std::string present, ReadComment(job));
    const std::string wanted =
        CommentWith(present, share, limit ? std::optional(Watts(*limit)) : std::nullopt);
    if (present == wanted) return Ok();
    ZEUS_RETURN_IF_ERROR(ChangeComment(job, wanted));
  }
  return Ok();
}

// Hooks end with 0 whatever happens: another exit code would drain the node.
Result<int> EndHook(const std::string& trouble) {
  if (!trouble.empty()) fmt::print(stderr, "zeus: {}\n", Printable(trouble));
  return 0;
}

Result<int> Prolog(const SlurmOptions& options) {
  slurm::JobWishes wishes;
  if (!ReadMode(options.mode, wishes))
    return EndHook("--mode is off, measure, limit or optimize; the job is measured");
  if (!options.power_limit.empty() && !ReadPowerLimit(options.power_limit, wishes))
    return EndHook("--power-limit is watts for each GPU, 1 to 100000");
  return EndHook(
      slurm::RunApart([&] { return slurm::BeginJob(SocketOf(options), HookVariable, wishes); },
                      slurm::kLongestHook));
}

Result<int> Epilog(const SlurmOptions& options) {
  return EndHook(slurm::RunApart(
      [&] {
        const std::string job = slurm::JobOfHook(HookVariable);
        const slurm::EndedJob ended = slurm::EndJob(SocketOf(options), job);
        if (!options.admin_comment || ended.record.empty()) return ended.trouble;
        const Status written = WriteComment(options, job);
        return written.ok() ? ended.trouble : written.error().message;
      },
      slurm::kLongestHook));
}

Result<int> Comment(const SlurmOptions& options) {
  ZEUS_RETURN_IF_ERROR(WriteComment(options, options.job));
  return 0;
}

// The nodes' shares: from the comment, and from the daemons that are asked.
std::vector<NodeShare> SharesOf(const SlurmOptions& options, const std::string& comment) {
  std::vector<NodeShare> shares = SharesOfComment(comment);
  SystemClock clock;
  for (const std::string& daemon : options.daemons) {
    const auto client = Connect({.socket = daemon}, clock);
    if (!client.ok()) {
      fmt::print(stderr, "zeus: {}\n", client.error().message);
      continue;
    }
    const auto record = client.value()->Job("slurm:" + options.job);
    if (!record.ok()) continue;
    std::string node = daemon;
    if (record.value().contains("labels") && record.value()["labels"].contains("node"))
      node = record.value()["labels"]["node"].get<std::string>();
    const auto share = ShareOfRecord(record.value(), node);
    if (!share.ok()) continue;
    std::erase_if(shares, [&](const NodeShare& known) { return known.node == node; });
    shares.push_back(share.value());
  }
  return shares;
}

Result<int> Report(const SlurmOptions& options) {
  std::vector<AccountedLine> lines;
  const auto accounting = AskSlurm(
      {"sacct", "-nPj", options.job, "-o", std::string(kAccountingColumns)}, kLongestReport);
  if (accounting.ok()) {
    ZEUS_TRY(lines, ParseAccounting(accounting.value()));
  } else {
    fmt::print(stderr,
               "zeus: {} (sacct works where slurm-client is installed and Slurm's configuration is "
               "found: /etc/slurm/slurm.conf, or SLURM_CONF)\n",
               accounting.error().message);
  }
  const auto shares = SharesOf(options, lines.empty() ? "" : lines.front().comment);
  if (lines.empty() && shares.empty())
    return Error{ErrorCode::kNotFound,
                 fmt::format("neither sacct nor a daemon knows job {}: name the daemons of its "
                             "nodes with --daemon",
                             Quote(options.job))};
  if (options.json)
    PrintJson(ReportJson(lines, shares));
  else
    PrintText(ReportText(lines, shares));
  return 0;
}

// The parts of a verb. NOLINTNEXTLINE(readability-function-size)
void AddHook(Verb verb, Action& action, const char* name, const char* description,
             Result<int> (*run)(const SlurmOptions&), bool prolog) {
  auto options = std::make_shared<SlurmOptions>();
  const Verb hook = verb.AddVerb(name, description);
  hook.AddOption("--socket", options->socket, "The daemon's socket; %n is the node's name")
      .ShowDefault();
  if (prolog) {
    hook.AddOption("--mode", options->mode, "off or measure").ShowDefault();
    hook.AddOption("--power-limit", options->power_limit,
                   "Watts, the most that each GPU of the job may draw until it ends");
  } else {
    hook.AddFlag("--admin-comment", options->admin_comment,
                 "Write the energy into the job's AdminComment");
  }
  hook.OnChosen([&action, options, run] { action = [options, run] { return run(*options); }; });
}

}  // namespace

void AddSlurmCommand(Verb app, Action& action) {
  const Verb verb = app.AddVerb("slurm", "Energy of the jobs of a cluster with Slurm");
  verb.RequireVerb();
  AddHook(verb, action, "prolog", "Prolog= of sites without SPANK: a job begins on this node",
          Prolog, true);
  AddHook(verb, action, "epilog", "Epilog= of sites without SPANK: a job ends on this node", Epilog,
          false);
  auto options = std::make_shared<SlurmOptions>();
  const Verb comment =
      verb.AddVerb("comment", "Write this node's energy of an ended job into its AdminComment");
  comment.AddOption("job", options->job, "slurm:CLUSTER.JOB").Required();
  comment.AddOption("--socket", options->socket, "The daemon's socket; %n is the node's name")
      .ShowDefault();
  comment.OnChosen([&action, options] { action = [options] { return Comment(*options); }; });
  auto report = std::make_shared<SlurmOptions>();
  const Verb shown = verb.AddVerb("report", "Energy of a job: what sacct and the daemons know");
  shown.AddOption("job", report->job, "The job's number").Required();
  shown
      .AddOption("--daemon", report->daemons,
                 "Socket of a node's daemon that is asked, too; may be given several times")
      .TypeName("SOCKET");
  shown.AddFlag("--json", report->json, "Print JSON");
  shown.OnChosen([&action, report] { action = [report] { return Report(*report); }; });
}

}  // namespace zeus::cli
