#include <memory>

#include "apps/zeus/numbers.h"
#include "apps/zeusd/serve_session.h"

namespace zeus::daemon::cli {
namespace {

using zeus::cli::NotEmpty;
using zeus::cli::NumberBetween;
using zeus::cli::OneOf;
using zeus::cli::Option;
using zeus::cli::WholeNumberBetween;

void AddSocketOptions(Verb verb, ServeOptions& options) {
  verb.AddOption("--mode", options.mode, "Listen on the Unix socket, or on TCP alone")
      .Check(OneOf({"uds", "tcp"}))
      .ShowDefault();
  verb.AddOption("--socket-path", options.socket_path, "The Unix socket")
      .Check(NotEmpty())
      .TypeName("FILE")
      .ShowDefault();
  verb.AddOption("--socket-permissions", options.socket_permissions,
                 "Its mode, octal: who may do what is decided by identity")
      .ShowDefault();
  verb.AddOption("--socket-uid", options.socket_uid, "Its owner")
      .Check(WholeNumberBetween(0, 0xfffffffe));
  verb.AddOption("--socket-gid", options.socket_gid, "Its group")
      .Check(WholeNumberBetween(0, 0xfffffffe));
}

void AddTcpOptions(Verb verb, ServeOptions& options) {
  verb.AddOption("--tcp-bind-address", options.tcp_bind_address,
                 "Also listen on this address; 127.0.0.1:4938 with --mode tcp")
      .Check(NotEmpty())
      .TypeName("ADDRESS");
  zeus::cli::AddTlsOptions(verb, options.files);
  verb.AddOption(
          "--client-ca", options.client_ca,
          "Accept clients whose certificate an authority in this PEM file has signed; a rule "
          "knows them as cert:NAME")
      .Check(NotEmpty())
      .TypeName("FILE");
  verb.AddFlag("--insecure", options.insecure,
               "Serve other machines without TLS or without tokens");
  verb.AddOption("--allow-host", options.hosts,
                 "A name of this daemon besides localhost, like that of a proxy in front of it; "
                 "may be repeated")
      .Check(NotEmpty())
      .TypeName("NAME");
  verb.AddOption("--signing-key-path", options.signing_key,
                 "Accept tokens that were signed with the key in this file")
      .Check(NotEmpty())
      .TypeName("FILE");
  verb.AddOption("--revoked-tokens", options.revoked_tokens,
                 "Tokens that hold no longer: zeusd token revoke writes it")
      .Check(NotEmpty())
      .TypeName("FILE");
}

void AddBudgetOptions(Verb verb, ServeOptions::Budget& budget) {
  const Option server =
      verb.AddOption("--budget-server", budget.server,
                     "Keep the GPUs within the power budget that this zeus serve shares out")
          .Check(NotEmpty())
          .TypeName("URL");
  verb.AddOption("--budget-token-file", budget.token_file,
                 "The file with the token called node:NAME")
      .Needs(server)
      .Check(NotEmpty())
      .TypeName("FILE");
  verb.AddOption("--budget-ca", budget.authorities,
                 "PEM file of the certificates to trust, instead of the system's")
      .Needs(server)
      .Check(NotEmpty())
      .TypeName("FILE");
  verb.AddOption("--budget-node", budget.node,
                 "The name of this node in the budget; that of the machine by default")
      .Needs(server)
      .Check(NotEmpty())
      .TypeName("NAME");
  verb.AddOption("--budget-fallback", budget.fallback,
                 "Watts of a GPU before the first grant; its lowest limit by default")
      .Needs(server)
      .Check(NumberBetween(1, 1e5))
      .TypeName("WATTS");
  verb.AddFlag("--budget-guarded", budget.guarded,
               "A service manager starts this daemon again within seconds, so that its grants end "
               "in time even when it is killed")
      .Needs(server);
}

}  // namespace

void AddServeCommand(Verb app, Action& action) {
  auto options = std::make_shared<ServeOptions>();
  const Verb verb = app.AddVerb("serve", "Lend knobs to programs, in the foreground");
  verb.AddOption("--config", options->configuration,
                 "Who may do what; /etc/zeus/zeusd.toml if it exists")
      .Check(NotEmpty())
      .TypeName("FILE");
  AddSocketOptions(verb, *options);
  AddTcpOptions(verb, *options);
  verb.AddOption("--enable", options->groups,
                 "Groups of the reference's requests to serve: gpu-control, gpu-read, cpu-read; "
                 "all by default")
      .Delimiter(',');
  verb.AddOption("--state-dir", options->state_folder,
                 "Where leases are kept over a restart; the folder of the socket by default")
      .Check(NotEmpty())
      .TypeName("FOLDER");
  verb.AddOption("--audit-log", options->audit_log,
                 "The log of all changes; audit.jsonl in $LOGS_DIRECTORY or the state folder")
      .Check(NotEmpty())
      .TypeName("FILE");
  zeus::cli::AddAccessLogOption(verb, options->files);
  verb.AddOption("--num-workers", options->workers, "Requests that are worked on at the same time")
      .Check(WholeNumberBetween(1, 1024))
      .ShowDefault();
  verb.AddOption("--gpu-power-poll-hz,--cpu-power-poll-hz", options->ignored_hz,
                 "Accepted for the reference's sake: sensors are read as often as they change")
      .Check(NumberBetween(0, 1e6));
  verb.AddOption("--gpu-backend", options->gpu_backend,
                 "Accepted for the reference's sake: all GPUs are used")
      .Check(OneOf({"auto", "nvml", "amdsmi"}));
  verb.AddOption("--gpu-command-overrides", options->command_overrides,
                 "Set knobs of GPUs by the commands in this file, where it has some")
      .Check(NotEmpty())
      .TypeName("FILE");
  verb.AddOption("--job-mapping-dir", options->job_folder,
                 "Write which job has which GPU into this folder, as dcgm-exporter reads it")
      .Check(NotEmpty())
      .TypeName("FOLDER");
  verb.AddOption("--pod-resources", options->pod_resources,
                 "The socket on which the kubelet tells which container has which device; its own "
                 "one where there is a kubelet")
      .Check(NotEmpty())
      .TypeName("FILE");
  verb.AddOption("--pod-logs", options->pod_logs,
                 "The kubelet's folder of logs, whose names tell the uids of pods")
      .Check(NotEmpty())
      .TypeName("FOLDER")
      .ShowDefault();
  verb.AddOption("--sysfs", options->sysfs,
                 "The machine's sysfs: that of a container hides the power of CPUs")
      .Check(NotEmpty())
      .TypeName("FOLDER")
      .ShowDefault();
  AddBudgetOptions(verb, options->budget);
  verb.Footer(
      "Prints \"zeusd: ready on …\" when it listens and what a killed daemon left is put back. "
      "SIGTERM and SIGINT put all knobs back and end it; SIGHUP reads the configuration again and "
      "opens the logs again. docs/daemon.md describes it.");
  verb.OnChosen([&action, options] { action = [options] { return Serve(*options); }; });
}

}  // namespace zeus::daemon::cli
