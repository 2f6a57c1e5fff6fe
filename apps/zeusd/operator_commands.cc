// The verbs for people who run a machine: what a configuration grants, tokens, repairs, a look at
// the daemon.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "apps/zeus/exit_code.h"
#include "apps/zeus/numbers.h"
#include "apps/zeus/output.h"
#include "apps/zeusd/commands.h"
#include "zeus/base/clock.h"
#include "zeus/base/json.h"
#include "zeus/base/log.h"
#include "zeus/base/quantity_text.h"
#include "zeus/base/text.h"
#include "zeus/daemon/access_tokens.h"
#include "zeus/daemon/leases_file.h"
#include "zeus/device/knobs/capped_repair.h"
#include "zeus/http/client.h"

namespace zeus::daemon::cli {
namespace {

using zeus::cli::NotEmpty;

// --- check-config ---

// "uid:1001,gid:100,gid:27,contained"
Result<Caller> ParseCaller(const std::string& text) {
  Caller caller;
  for (const std::string_view part : SplitAtCommas(text)) {
    const auto colon = part.find(':');
    const std::string_view name = part.substr(0, colon);
    const std::string_view value = colon == std::string_view::npos ? "" : part.substr(colon + 1);
    const auto number = ParseUnsigned(value);
    if (name == "contained" && value.empty()) {
      caller.contained = true;
    } else if (name == "uid" && number.ok()) {
      caller.uid = static_cast<uid_t>(number.value());
      caller.subject = fmt::format("uid:{}", number.value());
    } else if (name == "gid" && number.ok()) {
      caller.gid = static_cast<gid_t>(number.value());
      caller.groups.push_back(caller.gid);
    } else if (name == "cgroup") {
      caller.cgroup = value;
    } else {
      return InvalidArgument("--as: must be like uid:1001,gid:100,cgroup:/user.slice,contained: " +
                             Quote(text));
    }
  }
  return caller;
}

Result<int> CheckConfiguration(const std::string& file, const std::string& as) {
  ZEUS_TRY(const Configuration configuration, LoadConfiguration(file));
  for (const std::string& unknown : configuration.unknown_groups)
    log::Warning("{}; until then it is nobody's", unknown);
  if (as.empty()) {
    zeus::cli::PrintText(
        fmt::format("the configuration is valid: {} rules\n", configuration.rules.size()));
    return 0;
  }
  ZEUS_TRY(const Caller caller, ParseCaller(as));
  const Grant grant = GrantFor(configuration, caller);
  std::string devices = fmt::format("{}", fmt::join(grant.devices, ", "));
  if (grant.all_devices || grant.admin()) devices = "all";
  if (grant.devices_of_jobs) devices += devices.empty() ? "those of its jobs" : ", and its jobs'";
  std::string text = fmt::format("rules:   {}\nscopes:  {}\ndevices: {}\nleases:  {}\n",
                                 fmt::join(grant.rules, ", "), fmt::join(grant.scopes.names(), " "),
                                 devices.empty() ? "none" : devices, grant.leases);
  for (const auto& [knob, bounds] : grant.bounds) {
    text += fmt::format("bounds:  {}", wire::Name(knob));
    if (bounds.min_watts) text += fmt::format(" at least {:g} W", bounds.min_watts->value());
    if (bounds.max_share) text += fmt::format(" at most {:g} of the highest", *bounds.max_share);
    if (bounds.min_hertz) text += fmt::format(" at least {:g} MHz", bounds.min_hertz->ToMega());
    text += '\n';
  }
  zeus::cli::PrintText(text);
  return 0;
}

// --- token ---

struct TokenFlags {
  std::string key{};
  std::string user{};
  std::vector<std::string> scopes{};
  std::string expires = "7d";
  std::string revoked{};
  std::string id{};
};

Result<int> Issue(const TokenFlags& flags) {
  ZEUS_TRY(const TokenKey key, TokenKey::Load(flags.key));
  TokenRequest request{.subject = flags.user};
  for (const std::string& name : flags.scopes) {
    ZEUS_TRY(const Scope scope, ParseScope(name));
    request.scopes.Add(scope);
  }
  ZEUS_TRY(request.lifetime, ParseTokenLifetime(flags.expires));
  const SystemClock clock;
  ZEUS_TRY(const std::string token, IssueToken(key, request, clock));
  fmt::print("{}\n", token);
  return 0;
}

Result<int> Revoke(const TokenFlags& flags) {
  if (flags.id.empty() == flags.user.empty())
    return InvalidArgument("name the token by --id, or all of a user by --user");
  const bool by_id = !flags.id.empty();
  ZEUS_RETURN_IF_ERROR(RevokeToken(flags.revoked, by_id ? RevokeBy::kId : RevokeBy::kSubject,
                                   by_id ? flags.id : flags.user));
  return 0;
}

// --- restore ---

// A damaged file of leases must not keep knobs changed.
PowerCaps BudgetCaps(const std::string& state_folder) {
  const auto folder = state_folder.empty() ? std::filesystem::path(kSocket).parent_path()
                                           : std::filesystem::path(state_folder);
  const auto kept = ReadLeases(folder / "leases.json");
  if (!kept.ok()) {
    log::Warning("no power budget is respected: {}", kept.error().message);
    return {};
  }
  return CurrentBootTime().boot == kept.value().boot ? BudgetCapsOf(kept.value()) : PowerCaps();
}

Result<int> Restore(bool all, const std::string& state_folder) {
  SystemClock clock;
  ZEUS_TRY(const auto folder, KnobFolder());
  KnobJournal journal(clock, folder);
  ZEUS_TRY(const auto repairs,
           RepairAllKnobs(journal, RealSurroundings(clock),
                          all ? KnobJournal::Holders::kOverrule : KnobJournal::Holders::kRespect,
                          BudgetCaps(state_folder)));
  for (const CappedRepair& repair : repairs)
    zeus::cli::PrintText(fmt::format("{}\n", ToText(repair)));
  if (repairs.empty()) fmt::print("nothing to restore\n");
  const bool left = std::ranges::any_of(repairs, [](const CappedRepair& one) {
    return !one.capped && (one.repair.outcome == KnobRepair::Outcome::kFailed ||
                           one.repair.outcome == KnobRepair::Outcome::kHeld);
  });
  return left ? zeus::cli::ExitCode(ErrorCode::kUnavailable) : 0;
}

// --- status ---

Result<Json> Get(http::Client& client, const std::string& path) {
  ZEUS_TRY(const http::Reply reply, client.Send({.path = path}));
  if (reply.status != 200)
    return Error{ErrorCode::kUnavailable,
                 fmt::format("zeusd answered {} with {}", path, reply.status)};
  return ParseJson(reply.body);
}

// "power budget of http://head:8000 for n1: granted 1.2 s ago"
std::string BudgetText(const Json& budget) {
  std::string text = fmt::format("power budget of {} for {}: ", budget.value("server", ""),
                                 budget.value("node", ""));
  const bool once =
      budget.contains("granted_seconds_ago") && budget["granted_seconds_ago"].is_number();
  if (!once)
    text += "no grant has ever come, so its GPUs stay at their fallback";
  else
    text += fmt::format("the latest grant came {} ago{}",
                        TimeText(Seconds(budget["granted_seconds_ago"].get<double>())),
                        budget.value("state", "") == "fallback"
                            ? ", and has expired: its GPUs are at their fallback"
                            : "");
  if (budget.contains("trouble") && budget["trouble"].is_string())
    text += " (" + budget["trouble"].get<std::string>() + ")";
  return text;
}

Result<int> ShowStatus(const std::string& socket, bool json) {
  ZEUS_TRY(const auto client, http::Client::Create({.url = "unix:" + socket}));
  ZEUS_TRY(const Json node, Get(*client, "/v1/node"));
  ZEUS_TRY(const Json who, Get(*client, "/v1/whoami"));
  ZEUS_TRY(const Json leases, Get(*client, "/v1/leases"));
  if (json) {
    zeus::cli::PrintJson({{"node", node}, {"whoami", who}, {"leases", leases["leases"]}});
    return 0;
  }
  std::string text = fmt::format("zeusd {} on {}\n", node.value("version", ""), socket);
  for (const Json& gpu : node["gpus"])
    text += fmt::format("{}  {}  {}\n", gpu.value("uuid", ""), gpu.value("pci_address", ""),
                        gpu.value("model", ""));
  text += fmt::format("you are {} with the scopes {}\n", who.value("subject", ""),
                      fmt::join(who["scopes"].get<std::vector<std::string>>(), " "));
  if (node.contains("budget") && node["budget"].is_object())
    text += BudgetText(node["budget"]) + "\n";
  for (const Json& lease : leases["leases"])
    text += fmt::format("{}  {}  {}  {}\n", lease.value("id", ""), lease.value("state", ""),
                        lease.value("subject", ""), lease.value("name", ""));
  zeus::cli::PrintText(text);
  return 0;
}

}  // namespace

Result<Configuration> LoadConfiguration(const std::string& file) {
  auto configuration = ReadConfiguration(file.empty() ? kConfiguration : file);
  const bool absent =
      !configuration.ok() && configuration.error().code == ErrorCode::kNotFound && file.empty();
  if (absent) return DefaultConfiguration();
  // A configuration that cannot be used is a mistake of whoever wrote it.
  if (!configuration.ok()) return InvalidArgument(std::move(configuration).error().message);
  return configuration;
}

void AddCheckConfigCommand(Verb app, Action& action) {
  struct Flags {
    std::string file{};
    std::string as{};
  };
  auto flags = std::make_shared<Flags>();
  const Verb verb = app.AddVerb("check-config", "Check the configuration, and whom it grants what");
  verb.AddOption("--config", flags->file, "The file; /etc/zeus/zeusd.toml by default")
      .Check(NotEmpty())
      .TypeName("FILE");
  verb.AddOption("--as", flags->as, "Print what this caller may do: uid:1001,gid:100")
      .Check(NotEmpty())
      .TypeName("CALLER");
  verb.OnChosen([&action, flags] {
    action = [flags] { return CheckConfiguration(flags->file, flags->as); };
  });
}

void AddTokenCommand(Verb app, Action& action) {
  auto flags = std::make_shared<TokenFlags>();
  const Verb token = app.AddVerb("token", "Issue and revoke tokens for callers over TCP");
  token.RequireVerb();
  const Verb issue = token.AddVerb("issue", "Print a new token");
  issue
      .AddOption("--signing-key-path", flags->key, "The key, at least 32 bytes, for its owner only")
      .Required()
      .TypeName("FILE");
  issue.AddOption("--user", flags->user, "Whom the token is for").Required().Check(NotEmpty());
  issue.AddOption("--scope,--scopes", flags->scopes, "What it permits, with commas")
      .Required()
      .Delimiter(',');
  issue.AddOption("--expires", flags->expires, "7d, 1h, or never").ShowDefault();
  issue.OnChosen([&action, flags] { action = [flags] { return Issue(*flags); }; });
  const Verb revoke = token.AddVerb("revoke", "Make tokens hold no longer");
  revoke.AddOption("--revoked-tokens", flags->revoked, "The file that zeusd serve reads")
      .Required()
      .TypeName("FILE");
  revoke.AddOption("--id", flags->id, "The id of one token").Check(NotEmpty());
  revoke.AddOption("--user", flags->user, "All tokens of this user").Check(NotEmpty());
  revoke.OnChosen([&action, flags] { action = [flags] { return Revoke(*flags); }; });
}

void AddRestoreCommand(Verb app, Action& action) {
  auto all = std::make_shared<bool>(false);
  auto state_folder = std::make_shared<std::string>();
  const Verb verb = app.AddVerb("restore", "Put knobs back that the journal has, without a daemon");
  verb.AddFlag("--all", *all, "Also those that a living program holds");
  verb.AddOption("--state-dir", *state_folder,
                 "Where the daemon kept its leases; the folder of its usual socket by default")
      .Check(NotEmpty())
      .TypeName("FOLDER");
  verb.Footer(
      "GPUs under a power budget stay at their fallback. Exit code 6 when a knob stays changed.");
  verb.OnChosen([&action, all, state_folder] {
    action = [all, state_folder] { return Restore(*all, *state_folder); };
  });
}

void AddStatusCommand(Verb app, Action& action) {
  struct Flags {
    std::string socket = kSocket;
    bool json = false;
  };
  auto flags = std::make_shared<Flags>();
  const Verb verb = app.AddVerb("status", "Show the running daemon, and what it lends to you");
  verb.AddOption("--socket-path", flags->socket, "Its socket").TypeName("FILE").ShowDefault();
  verb.AddFlag("--json", flags->json, "Print JSON");
  verb.OnChosen(
      [&action, flags] { action = [flags] { return ShowStatus(flags->socket, flags->json); }; });
}

}  // namespace zeus::daemon::cli
