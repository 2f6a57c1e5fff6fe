#include "apps/zeus/budget/server_commands.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/zeus/numbers.h"
#include "apps/zeus/output.h"
#include "apps/zeus/terminal.h"
#include "zeus/base/file.h"
#include "zeus/base/json.h"
#include "zeus/base/quantity_text.h"
#include "zeus/base/terminal_text.h"
#include "zeus/base/text.h"
#include "zeus/client/server_calls.h"

namespace zeus::cli {
namespace {

using Method = ServerCalls::Method;

struct BudgetFlags {
  std::string server{};
  std::string token_file{};
  std::string ca_file{};
  std::string domain{};
  std::string start{};
  std::string end{};
  std::string reason{};
  std::string remove{};
  std::optional<double> watts{};
  bool usual = false;
  bool jobs = false;
  bool json = false;
  bool yes = false;
  bool slurm = false;
};

void AddSourceFlags(Verb verb, BudgetFlags& flags) {
  verb.AddOption("--server", flags.server,
                 "Address of the zeus serve --budget: http://host:8000; also from ZEUS_SERVER")
      .Check(NotEmpty());
  verb.AddOption("--token-file", flags.token_file,
                 "File with an administrator's token; else it is ZEUS_TOKEN")
      .Check(NotEmpty());
  verb.AddOption("--ca-file", flags.ca_file,
                 "File with certificates (PEM) to trust; also from ZEUS_CA_FILE")
      .Check(NotEmpty());
}

Result<std::unique_ptr<ServerCalls>> OpenCalls(const BudgetFlags& flags, Clock& clock) {
  const Environment environment = ProcessEnvironment();
  CallOptions options{.url = flags.server,
                      .token = environment("ZEUS_TOKEN").value_or(""),
                      .authorities = flags.ca_file,
                      .retry = kRetryForALook};
  if (options.url.empty()) options.url = environment("ZEUS_SERVER").value_or("");
  if (options.url.empty())
    return InvalidArgument("name the server that shares out the power: --server or ZEUS_SERVER");
  if (options.authorities.empty()) options.authorities = environment("ZEUS_CA_FILE").value_or("");
  if (!flags.token_file.empty()) {
    ZEUS_TRY(const std::string token, ReadSmallFile(flags.token_file, 4096));
    options.token = std::string(Trim(token));
  }
  return ServerCalls::Create(options, clock);
}

std::string PowerOf(const Json& object, const char* field) {
  const auto watts = GetOptionalField<double>(object, field);
  return watts.ok() && watts.value() ? PowerText(Watts(*watts.value())) : "-";
}

std::string DomainTable(const Json& budget) {
  std::vector<std::vector<std::string>> rows{
      {"domain", "within", "budget", "may be granted", "committed", "drawn", "free"}};
  for (const Json& domain : budget.value("domains", Json::array()))
    rows.push_back({domain.value("name", ""),
                    domain.contains("parent") && domain["parent"].is_string()
                        ? domain["parent"].get<std::string>()
                        : "",
                    PowerOf(domain, "watts"), PowerOf(domain, "limit_watts"),
                    PowerOf(domain, "committed_watts"), PowerOf(domain, "drawn_watts"),
                    PowerOf(domain, "free_watts")});
  return AlignedRows({Align::kLeft, Align::kLeft, Align::kRight, Align::kRight, Align::kRight,
                      Align::kRight, Align::kRight},
                     rows);
}

std::string NodeTable(const Json& budget) {
  std::vector<std::vector<std::string>> rows{{"node", "domain", "GPUs", "committed", "state"}};
  for (const Json& node : budget.value("nodes", Json::array()))
    rows.push_back({node.value("name", ""), node.value("domain", ""),
                    fmt::to_string(node.value("devices", Json::array()).size()),
                    PowerOf(node, "committed_watts"),
                    node.value("silent", false) ? "silent" : "reports"});
  return AlignedRows({Align::kLeft, Align::kLeft, Align::kRight, Align::kRight, Align::kLeft},
                     rows);
}

std::string JobTable(const Json& answer) {
  std::vector<std::vector<std::string>> rows{
      {"job", "GPUs", "weight", "limit", "slowdown", "a watt more saves"}};
  for (const Json& job : answer.value("jobs", Json::array()))
    rows.push_back({job.value("name", ""), fmt::to_string(job.value("gpus", 0)),
                    fmt::format("{:g}", job.value("weight", 1.0)), PowerOf(job, "limit_watts"),
                    fmt::format("{:.1f} %{}", 100 * (job.value("slowdown", 1.0) - 1),
                                job.value("assumed", false) ? " assumed" : ""),
                    fmt::format("{:.3g}", job.value("marginal_per_watt", 0.0))});
  return AlignedRows(
      {Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kRight, Align::kRight},
      rows);
}

// "3 idle GPUs keep 300.0 W, so that a job can begin"
std::string IdleLine(const Json& answer) {
  const Json idle = answer.value("idle", Json::object());
  const int gpus = idle.value("gpus", 0);
  if (gpus == 0) return "";
  return fmt::format("{} idle {} {}, so that a job can begin\n", gpus,
                     gpus == 1 ? "GPU keeps" : "GPUs keep", PowerOf(idle, "taken_watts"));
}

Result<int> ShowBudget(const BudgetFlags& flags) {
  SystemClock clock;
  ZEUS_TRY(const auto calls, OpenCalls(flags, clock));
  ZEUS_TRY(ServerCalls::Reply reply, calls->Ask(Method::kGet, "/v1/budget"));
  Json jobs;
  if (flags.jobs) {
    ZEUS_TRY(const ServerCalls::Reply answer, calls->Ask(Method::kGet, "/v1/budget/jobs"));
    jobs = answer.body;
  }
  if (flags.json) {
    if (flags.jobs) reply.body["jobs"] = jobs.value("jobs", Json::array());
    PrintJson(reply.body);
    return 0;
  }
  std::string text = DomainTable(reply.body) + "\n" + NodeTable(reply.body);
  if (flags.jobs) text += "\n" + JobTable(jobs) + IdleLine(jobs);
  for (const char* kind : {"troubles", "doubts"})
    for (const Json& sentence : reply.body.value(kind, Json::array()))
      if (sentence.is_string()) text += "\n" + Printable(sentence.get<std::string>()) + "\n";
  PrintText(text);
  return 0;
}

// Whether a person agrees; without a terminal nobody can.
Result<bool> Confirm(const BudgetFlags& flags) {
  if (flags.yes) return true;
  if (::isatty(STDIN_FILENO) == 0)
    return InvalidArgument("nobody is there to confirm it: say --yes to set it");
  fmt::print("Set it? [y/N] ");
  ZEUS_RETURN_IF_ERROR(FlushOutput());
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "yes";
}

Result<int> SetBudget(const BudgetFlags& flags) {
  SystemClock clock;
  ZEUS_TRY(const auto calls, OpenCalls(flags, clock));
  Json body = {{"watts", *flags.watts}, {"look_only", true}};
  if (!flags.domain.empty()) body["domain"] = flags.domain;
  ZEUS_TRY(const ServerCalls::Reply effect, calls->Ask(Method::kPut, "/v1/budget", body));
  std::string text = fmt::format("{} for {} would mean:\n", PowerText(Watts(*flags.watts)),
                                 flags.domain.empty() ? "the site" : flags.domain);
  for (const Json& line : effect.body.value("effect", Json::array()))
    if (line.is_string()) text += "  " + line.get<std::string>() + "\n";
  PrintText(text);
  ZEUS_TRY(const bool agreed, Confirm(flags));
  if (!agreed) {
    PrintText("nothing was changed\n");
    return 0;
  }
  body.erase("look_only");
  body["confirm"] = true;
  ZEUS_TRY(const ServerCalls::Reply reply, calls->Ask(Method::kPut, "/v1/budget", body));
  PrintText("set; the nodes follow with their next reports\n");
  return 0;
}

std::string TargetTable(const Json& answer) {
  std::vector<std::vector<std::string>> rows{{"target", "domain", "from", "to", "watts", "reason"}};
  for (const Json& target : answer.value("targets", Json::array()))
    rows.push_back({target.value("id", ""),
                    target.contains("domain") && target["domain"].is_string()
                        ? target["domain"].get<std::string>()
                        : "site",
                    target.value("start", ""), target.value("end", ""),
                    target.contains("watts") && target["watts"].is_number()
                        ? PowerOf(target, "watts")
                        : "as usual",
                    target.value("reason", "")});
  return AlignedRows(
      {Align::kLeft, Align::kLeft, Align::kLeft, Align::kLeft, Align::kRight, Align::kLeft}, rows);
}

Result<int> ChangeTargets(const BudgetFlags& flags) {
  SystemClock clock;
  ZEUS_TRY(const auto calls, OpenCalls(flags, clock));
  if (!flags.remove.empty()) {
    ZEUS_TRY(const ServerCalls::Reply reply,
             calls->AskOnce(Method::kDelete,
                            "/v1/budget/targets/" + http::PercentEncoded(flags.remove)));
    PrintText("removed\n");
    return 0;
  }
  if (!flags.start.empty() || !flags.end.empty() || flags.watts || flags.usual) {
    if (flags.start.empty() || flags.end.empty() || flags.watts.has_value() == flags.usual)
      return InvalidArgument("a target needs --start, --end, and --watts or --usual");
    Json body = {{"start", flags.start},
                 {"end", flags.end},
                 {"watts", flags.watts ? Json(*flags.watts) : Json()},
                 {"reason", flags.reason},
                 {"confirm", flags.yes}};
    if (!flags.domain.empty()) body["domain"] = flags.domain;
    ZEUS_TRY(const ServerCalls::Reply reply,
             calls->AskOnce(Method::kPost, "/v1/budget/targets", body));
  }
  ZEUS_TRY(const ServerCalls::Reply reply, calls->Ask(Method::kGet, "/v1/budget/schedule"));
  if (flags.json)
    PrintJson(reply.body);
  else
    PrintText(TargetTable(reply.body));
  return 0;
}

Result<int> ExportBudget(const BudgetFlags& flags) {
  SystemClock clock;
  ZEUS_TRY(const auto calls, OpenCalls(flags, clock));
  ZEUS_TRY(const ServerCalls::Reply reply, calls->Ask(Method::kGet, "/v1/budget"));
  const Json domains = reply.body.value("domains", Json::array());
  if (domains.empty()) return Error{ErrorCode::kUnavailable, "the server named no domain"};
  PrintText(
      fmt::format("Licenses=watts:{:.0f}\n", std::floor(domains[0].value("limit_watts", 0.0))));
  return 0;
}

}  // namespace

void AddBudgetServerCommands(Verb budget, Action& action) {
  auto flags = std::make_shared<BudgetFlags>();
  const Verb show = budget.AddVerb("show", "Show what is committed, drawn and free");
  AddSourceFlags(show, *flags);
  show.AddFlag("--jobs", flags->jobs, "Also the limit and the slowdown of every job");
  show.AddFlag("--json", flags->json, "Print JSON");
  show.OnChosen([&action, flags] { action = [flags] { return ShowBudget(*flags); }; });

  const Verb set = budget.AddVerb("set", "Set a budget, after a look at its effect");
  set.AddOption("watts", flags->watts, "The power that may be drawn")
      .Required()
      .Check(NumberBetween(1, 1e10));
  AddSourceFlags(set, *flags);
  set.AddOption("--domain", flags->domain, "Of this domain; the whole site by default")
      .Check(NotEmpty());
  set.AddFlag("--yes", flags->yes, "Do not ask");
  set.OnChosen([&action, flags] { action = [flags] { return SetBudget(*flags); }; });

  const Verb target =
      budget.AddVerb("target", "Change a budget for some time, or list the changes");
  AddSourceFlags(target, *flags);
  target.AddOption("--start", flags->start, "First moment: 2026-11-20T17:00:00Z").TypeName("TIME");
  target.AddOption("--end", flags->end, "Moment at which it is over").TypeName("TIME");
  target.AddOption("--watts", flags->watts, "The power that may be drawn meanwhile")
      .Check(NumberBetween(0, 1e10));
  target.AddFlag("--usual", flags->usual, "The budget without targets, over other targets");
  target.AddOption("--domain", flags->domain, "Of this domain; the whole site by default")
      .Check(NotEmpty());
  target.AddOption("--reason", flags->reason, "For people");
  target.AddOption("--remove", flags->remove, "Remove the target of this id").TypeName("ID");
  target.AddFlag("--yes", flags->yes, "Confirm a target that is too little or much more");
  target.AddFlag("--json", flags->json, "Print JSON");
  target.OnChosen([&action, flags] { action = [flags] { return ChangeTargets(*flags); }; });

  const Verb out = budget.AddVerb("export", "Print the budget for another program");
  AddSourceFlags(out, *flags);
  out.AddFlag("--slurm", flags->slurm, "As a line of slurm.conf: Licenses=watts:N").Required();
  out.OnChosen([&action, flags] { action = [flags] { return ExportBudget(*flags); }; });
}

}  // namespace zeus::cli
