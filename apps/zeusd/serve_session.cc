#include "apps/zeusd/serve_session.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "apps/zeus/output.h"
#include "zeus/base/clock.h"
#include "zeus/base/file.h"
#include "zeus/base/file_lock.h"
#include "zeus/base/log.h"
#include "zeus/base/process.h"
#include "zeus/base/text.h"
#include "zeus/base/ticker.h"
#include "zeus/base/version.h"
#include "zeus/daemon/api/budget_agent.h"
#include "zeus/daemon/api/daemon.h"
#include "zeus/daemon/api/daemon_handler.h"
#include "zeus/daemon/board.h"
#include "zeus/daemon/command_overrides.h"
#include "zeus/daemon/peer_reader.h"
#include "zeus/device/node.h"
#include "zeus/device/nvml/device_files.h"
#include "zeus/http/server.h"
#include "zeus/kubernetes/pod_resources.h"
#include "zeus/kubernetes/resource_slices.h"
#include "zeus/process/service_manager.h"
#include "zeus/process/signal_watch.h"
#include "zeus/web/application.h"

namespace zeus::daemon::cli {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

constexpr const char* kBoardName = "board";  // The name of its activated socket.
constexpr const char* kTcpAddress = "127.0.0.1:4938";
constexpr Seconds kLongestDiscovery = 10s;
constexpr Seconds kLongestPause = 60s;  // The main loop waits no longer.
constexpr Seconds kLongestDrain = 2s;
constexpr Seconds kGroupPeriod = 10s;  // Between two looks for groups that were not known.

// The files of the daemon.
struct Places {
  fs::path state{};
  fs::path lock{};
  fs::path audit{};
  fs::path standing{};
};

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

Result<Places> FindPlaces(const ServeOptions& options) {
  Places places;
  places.state = options.state_folder;
  if (places.state.empty()) places.state = fs::absolute(options.socket_path).parent_path();
  std::error_code failure;
  fs::create_directories(places.state, failure);
  if (failure) return FileError(places.state, failure.value());
  places.lock = places.state / "lock";
  places.audit = options.audit_log;
  const std::string logs = Variable("LOGS_DIRECTORY");
  if (places.audit.empty())
    places.audit = (logs.empty() ? places.state : fs::path(logs)) / "audit.jsonl";
  const std::string kept = Variable("STATE_DIRECTORY");
  places.standing = (kept.empty() ? places.state : fs::path(kept)) / "standing.json";
  return places;
}

// One daemon per folder: the second says which process is the first.
Result<std::unique_ptr<FileLock>> TakeLock(const fs::path& file) {
  auto lock = FileLock::TryTake(file);
  if (!lock.ok()) {
    if (lock.error().code != ErrorCode::kUnavailable) return lock;
    const auto who = ReadLine(file);
    return Error{ErrorCode::kUnavailable,
                 fmt::format("another zeusd runs here{}: {} is locked",
                             who.ok() ? fmt::format(", process {}", Printable(who.value())) : "",
                             Printable(file.string()))};
  }
  (void)WriteAttribute(file, fmt::format("{}\n", ::getpid()));
  return lock;
}

Status CheckTcp(const ServeOptions& options, const std::string& address) {
  if (!options.client_ca.empty() && options.files.tls_certificate.empty())
    return InvalidArgument("--client-ca: certificates need TLS: give --tls-cert and --tls-key");
  if (address.empty() || http::IsLocal(address) || options.insecure) return Ok();
  if (options.files.tls_certificate.empty())
    return InvalidArgument(
        fmt::format("{} can be reached from other machines: give --tls-cert and --tls-key, or say "
                    "--insecure",
                    Quote(address)));
  if (options.signing_key.empty() && options.client_ca.empty())
    return InvalidArgument(fmt::format(
        "{} can be reached from other machines: give --signing-key-path or --client-ca, "
        "or say --insecure",
        Quote(address)));
  return Ok();
}

http::Limits RequestLimits(const ServeOptions& options) {
  return {.body = std::size_t{64} << 10,
          .header = std::size_t{16} << 10,
          // Each takes two descriptors: its socket, and that of the process at its other end.
          .connections = std::min<std::size_t>(2048, http::ConnectionsByOpenFiles() / 2),
          .per_address = 256,
          .workers = static_cast<int>(options.workers),
          .header_time = 5s,
          .body_time = 10s,
          .idle_time = 75s,
          .write_time = 30s,
          .last_write = 200ms};
}

Result<http::SocketPermissions> Permissions(const ServeOptions& options) {
  const auto mode = ParseUnsigned(options.socket_permissions, 8);
  if (!mode.ok() || mode.value() > 0777)
    return InvalidArgument("--socket-permissions: must be octal, up to 777: " +
                           Quote(options.socket_permissions));
  http::SocketPermissions permissions{.mode = static_cast<::mode_t>(mode.value())};
  if (options.socket_uid) permissions.owner = static_cast<::uid_t>(*options.socket_uid);
  if (options.socket_gid) permissions.group = static_cast<::gid_t>(*options.socket_gid);
  return permissions;
}

Result<std::set<ApiGroup>> Groups(const std::vector<std::string>& names) {
  std::set<ApiGroup> groups;
  for (const std::string& name : names) {
    ZEUS_TRY(const ApiGroup group, ParseApiGroup(name));
    groups.insert(group);
  }
  if (names.empty()) groups = {ApiGroup::kGpuControl, ApiGroup::kGpuRead, ApiGroup::kCpuRead};
  return groups;
}

// All devices of the machine, whatever CUDA_VISIBLE_DEVICES and its relatives hide from programs.
Result<Node> DiscoverAll(Clock& clock, const std::string& sysfs) {
  Surroundings machine = RealSurroundings(clock);
  machine.sysfs = sysfs;
  machine.environment = [environment = machine.environment](const std::string& name) {
    return name.ends_with("_VISIBLE_DEVICES") ? std::nullopt : environment(name);
  };
  machine.answer_within = kLongestDiscovery;
  return Discover(machine);
}

// How pods are found; nullopt where neither an option nor a folder says that there is a kubelet.
std::optional<PodWatch::Options> Pods(const ServeOptions& options, const Clock& clock) {
  std::string socket = options.pod_resources;
  if (socket.empty()) {
    socket = kubernetes::kPodResourcesSocket;
    std::error_code failure;
    if (!fs::exists(fs::path(socket).parent_path(), failure)) return std::nullopt;
  }
  const auto slices = std::make_shared<std::optional<kubernetes::ResourceSlices>>(
      kubernetes::ResourceSlices::OfThisPod(clock, ProcessEnvironment()));
  return PodWatch::Options{
      .list = [socket, &clock] { return kubernetes::ListPodResources(socket, clock); },
      .claimed = [slices](const kubernetes::ClaimedDevice& device) -> std::optional<std::string> {
        if (!*slices) return std::nullopt;
        return (*slices)->Find(device);
      },
      .logs = options.pod_logs};
}

// Servers on all the addresses. They share the handler.
struct Servers {
  std::vector<std::unique_ptr<http::Server>> all{};

  std::string Urls() const {
    std::string urls;
    for (const auto& server : all) urls += (urls.empty() ? "" : " and ") + server->url();
    return urls;
  }
};

Result<http::ServerOptions> UnixOptions(const ServeOptions& options,
                                        const std::vector<ActivatedSocket>& sockets) {
  ZEUS_TRY(const http::SocketPermissions permissions, Permissions(options));
  http::ServerOptions uds{.listen = "unix:" + fs::absolute(options.socket_path).string(),
                          .permissions = permissions,
                          .limits = RequestLimits(options)};
  for (const ActivatedSocket& socket : sockets)
    if (socket.name != kBoardName) uds.listening_descriptor = socket.descriptor->get();
  return uds;
}

http::ServerOptions TcpOptions(const ServeOptions& options, const std::string& address) {
  http::ServerOptions tcp{.listen = address, .limits = RequestLimits(options)};
  if (!options.files.tls_certificate.empty())
    tcp.tls = http::TlsFiles{.certificate = options.files.tls_certificate,
                             .key = options.files.tls_key,
                             .client_authorities = options.client_ca};
  return tcp;
}

// The names by which a daemon that only this machine reaches over TCP may be called.
http::OriginGuard::Options Origins(const std::string& tcp_address,
                                   const std::vector<std::string>& hosts) {
  return {.local = !tcp_address.empty() && http::IsLocal(tcp_address),
          .listen_host = tcp_address,
          .hosts = hosts};
}

// Hands the boards of readings out beside the socket of requests, to those who may read them.
Result<std::unique_ptr<BoardServer>> StartBoardServer(const ServeOptions& options,
                                                      const std::vector<ActivatedSocket>& sockets,
                                                      Daemon& daemon) {
  std::unique_ptr<FileDescriptor> listening;
  for (const ActivatedSocket& socket : sockets)
    // The board server closes its socket; the manager's stays for the next start.
    if (socket.name == kBoardName)
      listening =
          std::make_unique<FileDescriptor>(::fcntl(socket.descriptor->get(), F_DUPFD_CLOEXEC, 0));
  if (!listening) {
    const fs::path folder = fs::absolute(options.socket_path).parent_path();
    ZEUS_TRY(listening, BoardServer::Listen((folder / "board.sock").string()));
  }
  const auto peers = std::make_shared<const PeerReader>();
  return BoardServer::Start(
      std::move(listening), daemon.boards(),
      [&daemon, peers](int socket, wire::BoardKind kind) {
        const auto caller = peers->Read(socket, 0);
        return caller.ok() &&
               daemon.GrantOf(caller.value())
                   .scopes.Has(kind == wire::BoardKind::kGpu ? Scope::kGpuRead : Scope::kCpuRead);
      },
      [&daemon](std::size_t connections) { daemon.SetBoardClients(connections); });
}

Result<Servers> StartServers(const ServeOptions& options, const std::string& tcp_address,
                             const std::vector<ActivatedSocket>& sockets, DaemonHandler& handler,
                             NodeMetrics& metrics) {
  const Clock& clock = handler.clock();
  Servers servers;
  if (options.mode == "uds") {
    ZEUS_TRY(const http::ServerOptions uds, UnixOptions(options, sockets));
    ZEUS_TRY(auto server, http::Server::Start(uds, handler, metrics.unix_connections(), clock));
    servers.all.push_back(std::move(server));
  }
  if (!tcp_address.empty()) {
    ZEUS_TRY(auto server, http::Server::Start(TcpOptions(options, tcp_address), handler,
                                              metrics.tcp_connections(), clock));
    servers.all.push_back(std::move(server));
  }
  return servers;
}

// The running daemon: its main loop, reloading, and its end.
class Session {
 public:
  Session(const ServeOptions& options, Daemon& daemon, Servers& servers, http::AccessLog* log,
          const ServiceNotifier& notifier)
      : options_(options), daemon_(daemon), servers_(servers), log_(log), notifier_(notifier) {}

  // Returns after SIGTERM or SIGINT.
  void RunUntilSignal(SignalWatch& signals);
  Status End();

 private:
  void Reload();
  // Reads the configuration again while it names groups that the machine did not know.
  void LookForGroups();

  const ServeOptions& options_;
  Daemon& daemon_;
  Servers& servers_;
  http::AccessLog* const log_;
  const ServiceNotifier& notifier_;
  TimePoint next_look_{};
};

void WarnOfGroups(const Configuration& configuration) {
  for (const std::string& unknown : configuration.unknown_groups)
    log::Warning("{}; until then it is nobody's, and is looked for every {:g} s", unknown,
                 kGroupPeriod.count());
}

void Session::Reload() {
  (void)notifier_.Reloading(daemon_.clock().Now());
  if (log_ != nullptr) log_->Reopen();
  if (const Status opened = daemon_.audit().Reopen(); !opened.ok())
    log::Warning("the audit log of before stays in use: {}", opened.error().message);
  for (const auto& server : servers_.all)
    if (const auto read = server->RefreshTls(); !read.ok())
      log::Warning("the certificate of before stays in use: {}", read.error().message);
  auto configuration = LoadConfiguration(options_.configuration);
  if (configuration.ok()) {
    WarnOfGroups(configuration.value());
    const std::size_t revoked = daemon_.Reload(std::move(configuration).value());
    log::Warning("the configuration was read again; {} leases were revoked", revoked);
  } else {
    log::Warning("the configuration of before stays in force: {}", configuration.error().message);
  }
  (void)notifier_.Ready();
}

void Session::LookForGroups() {
  const Clock& clock = daemon_.clock();
  const auto present = daemon_.configuration();
  if (present->unknown_groups.empty() || clock.Now() < next_look_) return;
  next_look_ = clock.Now() + kGroupPeriod;
  auto configuration = LoadConfiguration(options_.configuration);
  if (!configuration.ok() || configuration.value().unknown_groups == present->unknown_groups)
    return;
  (void)daemon_.Reload(std::move(configuration).value());
  log::Warning("groups of the configuration are known by now");
}

void Session::RunUntilSignal(SignalWatch& signals) {
  WarnOfGroups(*daemon_.configuration());
  Seconds longest = kLongestPause;
  if (const auto timeout = notifier_.watchdog_timeout()) longest = std::min(longest, *timeout / 3);
  const Clock& clock = daemon_.clock();
  auto event = SignalWatch::Event::kTime;
  while (event != SignalWatch::Event::kStop) {
    (void)notifier_.Watchdog();
    const bool looks = !daemon_.configuration()->unknown_groups.empty();
    const Seconds pause = looks ? std::min(longest, kGroupPeriod) : longest;
    event = signals.WaitUntil(clock.Now() + pause, clock);
    if (event == SignalWatch::Event::kReopen) Reload();
    if (event == SignalWatch::Event::kTime) LookForGroups();
  }
}

Status Session::End() {
  (void)notifier_.Stopping();
  for (const auto& server : servers_.all) server->BeginShutdown();
  Status stopped = daemon_.Stop();
  for (const auto& server : servers_.all) server->WaitForShutdown(kLongestDrain);
  return stopped;
}

Result<std::unique_ptr<AccessTokens>> OpenTokens(const ServeOptions& options,
                                                 const Configuration& configuration,
                                                 const Clock& clock) {
  if (options.signing_key.empty()) return std::unique_ptr<AccessTokens>();
  ZEUS_TRY(TokenKey key, TokenKey::Load(options.signing_key));
  return AccessTokens::Open(
      std::move(key),
      {.revoked_file = options.revoked_tokens, .max_lifetime = configuration.max_token_lifetime},
      clock);
}

// The side of a power budget that runs on this node.
struct BudgetClient {
  std::unique_ptr<http::Client> client{};
  std::unique_ptr<BudgetAgent> agent{};
  std::unique_ptr<Ticker> ticker{};

  ~BudgetClient() { Stop(); }
  // No grant is applied any more when it returns.
  void Stop() {
    if (client) client->Cancel();
    ticker.reset();
  }
};

// Caps the GPUs before the first request, and begins to report.
Status StartBudget(const ServeOptions::Budget& options, Daemon& daemon, BudgetClient& budget) {
  if (options.server.empty()) return Ok();
  http::ClientOptions client{.url = options.server,
                             .authorities = options.authorities,
                             .keep_connection = true,
                             .connect_timeout = 2s,
                             .answer_timeout = 4s,
                             .largest_body = std::size_t{1} << 20};
  if (!options.token_file.empty()) {
    ZEUS_TRY(const std::string token, ReadSmallFile(options.token_file, 4096));
    client.token = std::string(Trim(token));
  }
  ZEUS_TRY(budget.client, http::Client::Create(client));
  BudgetAgent::Options agent{.server = options.server,
                             .node = options.node.empty() ? HostName() : options.node,
                             .guarded = options.guarded};
  if (const Status name = budget::CheckNodeName(agent.node); !name.ok())
    return Error(name.error())
        .While(options.node.empty() ? "the name of this machine" : "--budget-node");
  if (options.fallback) agent.fallback = Watts(*options.fallback);
  budget.agent = std::make_unique<BudgetAgent>(
      daemon, [&budget](const http::Call& call) { return budget.client->Send(call); }, agent);
  ZEUS_RETURN_IF_ERROR(budget.agent->Begin());
  budget.ticker =
      std::make_unique<Ticker>("zeusd-budget", [&budget] { return budget.agent->Step(); });
  return Ok();
}

// The objects that live longer than the daemon.
struct Frame {
  std::vector<ActivatedSocket> sockets{};
  std::unique_ptr<FileLock> lock{};
  std::unique_ptr<SignalWatch> signals{};
  std::unique_ptr<http::AccessLog> log{};
};

// Beside the socket, where hooks find it when nobody answers.
fs::path PendingJobs(const ServeOptions& options) {
  return fs::absolute(options.socket_path).parent_path() / "pending-jobs";
}

Result<Node> DiscoverNode(const ServeOptions& options, Clock& clock) {
  ZEUS_TRY(Node node, DiscoverAll(clock, options.sysfs));
  if (!options.command_overrides.empty()) {
    ZEUS_TRY(CommandOverrides overrides, CommandOverrides::Read(options.command_overrides));
    SetByCommands(node.gpus, std::make_shared<const CommandOverrides>(std::move(overrides)));
  }
  return node;
}

Result<int> ServeWith(const ServeOptions& options, const std::string& tcp_address, Frame& frame,
                      const Places& places, const ServiceNotifier& notifier) {
  SystemClock clock;
  ZEUS_TRY(Configuration configuration, LoadConfiguration(options.configuration));
  ZEUS_TRY(const auto tokens, OpenTokens(options, configuration, clock));
  ZEUS_TRY(const auto groups, Groups(options.groups));
  if (!options.files.access_log.empty()) {
    ZEUS_TRY(frame.log, http::AccessLog::Open(options.files.access_log, clock));
  }
  ZEUS_TRY(const fs::path knobs, KnobFolder());
  ZEUS_TRY(Node node, DiscoverNode(options, clock));
  // Without NVML schedulers' positions need a list in the configuration.
  const auto device_files = NvidiaDeviceFiles(ProcessEnvironment()("ZEUS_NVML_LIBRARY"));
  ZEUS_TRY(const auto daemon,
           Daemon::Open(clock, std::move(node), std::move(configuration),
                        {.knob_folder = knobs,
                         .state_file = places.state / "leases.json",
                         .standing_file = places.standing,
                         .jobs_file = places.state / "jobs.json",
                         .audit_file = places.audit,
                         .pending_jobs = PendingJobs(options),
                         .job_folder = options.job_folder,
                         .device_files = device_files.ok() ? device_files.value()
                                                           : std::map<std::string, std::string>(),
                         .pods = Pods(options, clock)}));
  ZEUS_RETURN_IF_ERROR(daemon->Start());
  BudgetClient budget;
  ZEUS_RETURN_IF_ERROR(StartBudget(options.budget, *daemon, budget));
  NodeMetrics metrics;
  const http::OriginGuard::Options origins = Origins(tcp_address, options.hosts);
  const web::Application application(
      {.program = "zeusd",
       .version = Version(),
       .features = {"node", "leases"},
       .token = tokens ? web::TokenUse::kRequired : web::TokenUse::kNone,
       .origins = origins});
  DaemonHandler handler(*daemon, metrics,
                        {.groups = groups,
                         .tokens = tokens.get(),
                         .certificates = !options.client_ca.empty(),
                         .log = frame.log.get(),
                         .application = &application,
                         .origins = origins});
  ZEUS_TRY(Servers servers, StartServers(options, tcp_address, frame.sockets, handler, metrics));
  std::unique_ptr<BoardServer> board_server;
  if (options.mode == "uds") {
    ZEUS_TRY(board_server, StartBoardServer(options, frame.sockets, *daemon));
  }
  // The start takes more memory than what follows.
  (void)::malloc_trim(0);
  const std::string ready = "ready on " + servers.Urls();
  fmt::print("zeusd: {}\n", ready);
  ZEUS_RETURN_IF_ERROR(zeus::cli::FlushOutput());
  (void)notifier.Ready(ready);
  Session session(options, *daemon, servers, frame.log.get(), notifier);
  session.RunUntilSignal(*frame.signals);
  budget.Stop();
  ZEUS_RETURN_IF_ERROR(session.End());
  return 0;
}

}  // namespace

Result<int> Serve(const ServeOptions& options) {
  try {
    std::string tcp_address = options.tcp_bind_address;
    if (tcp_address.empty() && options.mode == "tcp") tcp_address = kTcpAddress;
    ZEUS_RETURN_IF_ERROR(CheckTcp(options, tcp_address));
    // Variables of the service manager are read before the first thread.
    Frame frame;
    ZEUS_TRY(frame.sockets, TakeActivatedSockets());
    const ServiceNotifier notifier;
    ZEUS_TRY(const Places places, FindPlaces(options));
    ZEUS_TRY(frame.lock, TakeLock(places.lock));
    ZEUS_TRY(frame.signals, SignalWatch::Start(SignalWatch::Program::kService));
    return ServeWith(options, tcp_address, frame, places, notifier);
  } catch (const std::system_error& error) {
    if (!IsNoThread(error)) throw;
    return NoThreadError();
  }
}

}  // namespace zeus::daemon::cli
