#pragma once

#include <array>
#include <string>

#include "zeus/metrics/metric.h"

// Every metric that Zeus exposes. docs/metrics.md is generated from here.
namespace zeus::metrics {

// clang-format off
inline constexpr MetricDescription kDeviceUp{"zeus_device_up", MetricType::kGauge, "device",
    "1 if the energy of the device can be read, else 0."};
inline constexpr MetricDescription kDeviceFlag{"zeus_device_flag", MetricType::kGauge, "device, flag",
    "1 for what a reader of the device's energy should know, such as counter_reset."};
inline constexpr MetricDescription kGpuEnergy{"zeus_gpu_energy_joules_total", MetricType::kCounter,
    "gpu, uuid, model, source",
    "Energy since recording began. Grows across driver reloads; source is counter, integrated or model."};
inline constexpr MetricDescription kGpuEnergySigma{"zeus_gpu_energy_sigma_joules", MetricType::kGauge,
    "gpu, uuid, model", "One standard deviation of the energy."};
inline constexpr MetricDescription kGpuPower{"zeus_gpu_power_watts", MetricType::kGauge,
    "gpu, uuid, model, kind",
    "Power. Kind: update (mean over the sensor's last update), instant, average (of a second), memory."};
inline constexpr MetricDescription kGpuPowerLimit{"zeus_gpu_power_limit_watts", MetricType::kGauge,
    "gpu, uuid, model, kind", "Power limit. Kind: requested, enforced, default, min, max."};
inline constexpr MetricDescription kGpuTemperature{"zeus_gpu_temperature_celsius", MetricType::kGauge,
    "gpu, uuid, model", "Temperature of the chip."};
inline constexpr MetricDescription kGpuUtilization{"zeus_gpu_utilization_ratio", MetricType::kGauge,
    "gpu, uuid, model, kind", "Share of time in use, 0 to 1. Kind: compute, memory."};
inline constexpr MetricDescription kGpuClock{"zeus_gpu_clock_hertz", MetricType::kGauge,
    "gpu, uuid, model, domain", "Clock. Domain: graphics."};
inline constexpr MetricDescription kCpuEnergy{"zeus_cpu_energy_joules_total", MetricType::kCounter,
    "cpu, zone, model",
    "Energy since recording began. Zone: package (without memory), dram (the memory of that socket)."};
inline constexpr MetricDescription kCpuPower{"zeus_cpu_power_watts", MetricType::kGauge,
    "cpu, zone, model", "Mean power over the sensor's last update."};
inline constexpr MetricDescription kRailEnergy{"zeus_rail_energy_joules_total", MetricType::kCounter,
    "rail", "Energy of a supply rail of the board since recording began."};
inline constexpr MetricDescription kRailPower{"zeus_rail_power_watts", MetricType::kGauge, "rail",
    "Power of a supply rail of the board."};
inline constexpr MetricDescription kWindowEnergy{"zeus_window_energy_joules", MetricType::kHistogram,
    "window, device", "Energy of finished windows."};
inline constexpr MetricDescription kSelfCpu{"zeus_self_cpu_seconds_total", MetricType::kCounter, "",
    "CPU time that this process used for itself."};
inline constexpr MetricDescription kBuildInfo{"zeus_build_info", MetricType::kGauge, "version",
    "Always 1; the label tells the version."};

// Metrics of the gateway of language-model servers (zeus llm gateway).
inline constexpr MetricDescription kLlmRequestEnergy{"zeus_llm_request_energy_joules",
    MetricType::kHistogram, "model, upstream, phase",
    "Energy of finished requests. Phase: prefill, decode."};
inline constexpr MetricDescription kLlmTokenEnergy{"zeus_llm_output_token_energy_joules",
    MetricType::kHistogram, "model, upstream", "Energy of finished requests per output token."};
inline constexpr MetricDescription kLlmEnergy{"zeus_llm_energy_joules_total", MetricType::kCounter,
    "model, upstream, account",
    "Energy of the upstreams' GPUs by account: prefill, decode, idle, other. The sum is what the GPUs took."};
inline constexpr MetricDescription kLlmTokens{"zeus_llm_tokens_total", MetricType::kCounter,
    "model, upstream, kind",
    "Tokens of finished requests. Kind: prompt (worked on), cached (of prompts, not worked on), output."};
inline constexpr MetricDescription kLlmRequests{"zeus_llm_requests_total", MetricType::kCounter,
    "model, upstream, status", "Finished requests. Status: completed, error, cancelled, failed."};
inline constexpr MetricDescription kLlmFirstToken{"zeus_llm_time_to_first_token_seconds",
    MetricType::kHistogram, "model, upstream", "Time from the arrival of a request to its first token."};
inline constexpr MetricDescription kLlmPerToken{"zeus_llm_time_per_output_token_seconds",
    MetricType::kHistogram, "model, upstream", "Mean time between the output tokens of a request."};
inline constexpr MetricDescription kLlmRunning{"zeus_llm_running_requests", MetricType::kGauge,
    "model, upstream", "Requests in flight."};
inline constexpr MetricDescription kLlmResidual{"zeus_llm_attribution_residual_ratio",
    MetricType::kGauge, "gpus", "Measured over predicted energy of the last minute; 1 is perfect."};
inline constexpr MetricDescription kLlmClock{"zeus_llm_clock_hertz", MetricType::kGauge, "gpus",
    "Lowest graphics clock of the GPUs of a group of upstreams."};
inline constexpr MetricDescription kGovernorState{"zeus_llm_governor_state", MetricType::kGauge,
    "gpus, state", "1 for the present state of the governor: waiting, learning, sweep, targets, "
    "least_energy, missed, idle, foreign (stands still), off."};
inline constexpr MetricDescription kGovernorClock{"zeus_llm_governor_clock_hertz",
    MetricType::kGauge, "gpus", "Clock that the governor chose; an observer does not lock it."};
inline constexpr MetricDescription kGovernorChanges{"zeus_llm_governor_clock_changes_total",
    MetricType::kCounter, "gpus", "How often the governor locked a clock."};
inline constexpr MetricDescription kGovernorRequests{"zeus_llm_governor_requests_total",
    MetricType::kCounter, "gpus, outcome", "Streamed requests that kept their latency targets, "
    "missed one, or missed one that the highest clock would have kept. "
    "Outcome: kept, missed, missed_by_governor."};
inline constexpr MetricDescription kGovernorSaved{"zeus_llm_governor_saved_joules",
    MetricType::kGauge, "gpus", "Energy that the governor saved against the highest clock, or as an "
    "observer would have saved: an estimate of its model."};

// Metrics of the Colosseum (zeus llm colosseum). None has a model for a label: a counter that moves
// would tell who fights.
inline constexpr MetricDescription kColosseumDuels{"zeus_colosseum_duels_total",
    MetricType::kCounter, "outcome", "Duels. Outcome: begun, failed (an answer did not come), "
    "abandoned (nobody followed it), overloaded (refused)."};
inline constexpr MetricDescription kColosseumAnswering{"zeus_colosseum_answering",
    MetricType::kGauge, "", "Duels whose answers are arriving."};
inline constexpr MetricDescription kColosseumVotes{"zeus_colosseum_votes_total",
    MetricType::kCounter, "ballot", "Accepted votes, repeats included. Ballot: response, worth, change."};
inline constexpr MetricDescription kColosseumRefusedVotes{"zeus_colosseum_votes_refused_total",
    MetricType::kCounter, "", "Votes that were refused: too early, second ones, out of turn, too late."};

// Metrics of the node daemon (zeusd).
inline constexpr MetricDescription kDaemonRequests{"zeus_daemon_requests_total",
    MetricType::kCounter, "route, status", "Requests that were answered."};
inline constexpr MetricDescription kDaemonRequestDuration{"zeus_daemon_request_duration_seconds",
    MetricType::kHistogram, "route", "From the last byte of a request to the last of its answer."};
inline constexpr MetricDescription kDaemonConnections{"zeus_daemon_connections", MetricType::kGauge,
    "transport", "Open connections. Transport: unix, tcp."};
inline constexpr MetricDescription kDaemonDenied{"zeus_daemon_denied_total", MetricType::kCounter,
    "reason", "Requests that were refused. Reason: token, no_token, scope."};
inline constexpr MetricDescription kDaemonStreams{"zeus_daemon_streams", MetricType::kGauge, "",
    "Clients that follow events or readings."};
inline constexpr MetricDescription kDaemonStreamDropped{"zeus_daemon_stream_dropped_total",
    MetricType::kCounter, "", "Events and readings that slow clients did not get."};
inline constexpr MetricDescription kDaemonAuditLost{"zeus_daemon_audit_lost_total",
    MetricType::kCounter, "", "Lines of the audit log that could not be written."};
inline constexpr MetricDescription kDeviceStuck{"zeus_daemon_device_stuck", MetricType::kGauge,
    "device", "1 while the driver does not answer for the device."};
inline constexpr MetricDescription kLeases{"zeus_leases", MetricType::kGauge, "class, state",
    "Leases of knobs. Class: user, job, site. State: applying, active, suspended, restoring, ended."};
inline constexpr MetricDescription kLeasesEnded{"zeus_leases_ended_total", MetricType::kCounter,
    "reason", "Leases that ended, by reason: deleted, holder gone, expired, revoked, job ended, "
    "stopped, failed."};
inline constexpr MetricDescription kKnobWatts{"zeus_knob_watts", MetricType::kGauge,
    "uuid, knob, kind", "Power limits that the daemon lends. Kind: baseline (before the first "
    "lease), effective (by the rule of all leases), enforced (as the device says)."};
inline constexpr MetricDescription kKnobRestorePending{"zeus_knob_restore_pending",
    MetricType::kGauge, "", "Knobs that could not be put back yet."};
inline constexpr MetricDescription kKnobRestoreDuration{"zeus_knob_restore_seconds",
    MetricType::kHistogram, "", "From the end of a lease until all its knobs are as those that are "
    "left want them."};
inline constexpr MetricDescription kDeviceCallDuration{"zeus_daemon_device_call_seconds",
    MetricType::kHistogram, "device", "Time of a call into the driver for a knob."};
inline constexpr MetricDescription kForeignChanges{"zeus_knob_foreign_changes_total",
    MetricType::kCounter, "device", "How often another program turned a knob that is lent."};
inline constexpr MetricDescription kJobEnergy{"zeus_job_energy_joules_total", MetricType::kCounter,
    "job, user, uuid", "Energy of a device that belongs to a registered job."};
inline constexpr MetricDescription kJobInfo{"zeus_job_info", MetricType::kGauge,
    "job, user, user_name, job_name, partition, account, namespace", "1 for a registered job, with "
    "what its scheduler calls it: join it by job with the energies."};
inline constexpr MetricDescription kJobCpuTime{"zeus_job_cpu_seconds_total", MetricType::kCounter,
    "job, user", "CPU time of the processes of a registered job."};
inline constexpr MetricDescription kJobCpuEnergy{"zeus_job_cpu_energy_joules_total",
    MetricType::kCounter, "job, user", "Part of the packages' energy by the share of CPU time."};
inline constexpr MetricDescription kPodEnergy{"zeus_pod_energy_joules_total", MetricType::kCounter,
    "namespace, pod, container, uuid", "Energy of a device that a container of Kubernetes has."};
inline constexpr MetricDescription kKubeletUp{"zeus_kubelet_up", MetricType::kGauge, "",
    "1 when the kubelet told which container has which device the last time it was asked."};
inline constexpr MetricDescription kPodContainers{"zeus_kubelet_containers", MetricType::kGauge, "",
    "Containers of Kubernetes that have a device of this node."};
inline constexpr MetricDescription kPodUnknownDevices{"zeus_kubelet_unknown_devices",
    MetricType::kGauge, "", "GPUs that the kubelet gave to containers and this node does not know."};
inline constexpr MetricDescription kSharedIdleEnergy{"zeus_shared_idle_joules_total",
    MetricType::kCounter, "uuid",
    "Energy while several jobs had the device: drawn without work, or for nobody knows which."};

// Metrics with the names of the reference implementation, so that its dashboards keep working. Its
// histogram and its counter share a name up to "_total", which this format tells apart and
// OpenMetrics would not.
inline constexpr MetricDescription kReferenceGpuHistogram{"energy_monitor_gpu_energy_joules",
    MetricType::kHistogram, "window, index", "Alias: energy of finished windows on GPUs."};
inline constexpr MetricDescription kReferenceCpuHistogram{"energy_monitor_cpu_energy_joules",
    MetricType::kHistogram, "window, index", "Alias: energy of finished windows on CPU packages."};
inline constexpr MetricDescription kReferenceDramHistogram{"energy_monitor_dram_energy_joules",
    MetricType::kHistogram, "window, index", "Alias: energy of finished windows in memory."};
inline constexpr MetricDescription kReferenceGpuCounter{"energy_monitor_gpu_energy_joules_total",
    MetricType::kCounter, "window, index",
    "Alias: energy of GPUs; window is all (since recording began) or the name of finished windows."};
inline constexpr MetricDescription kReferenceCpuCounter{"energy_monitor_cpu_energy_joules_total",
    MetricType::kCounter, "window, index", "Alias: energy of CPU packages, likewise."};
inline constexpr MetricDescription kReferenceDramCounter{"energy_monitor_dram_energy_joules_total",
    MetricType::kCounter, "window, index", "Alias: energy of memory, likewise."};
inline constexpr MetricDescription kReferenceGpuPower{"power_monitor_gpu_power_watts",
    MetricType::kGauge, "window, index", "Alias: power of GPUs; window is all."};
// clang-format on

inline constexpr std::array kAll = {
    &kDeviceUp,
    &kDeviceFlag,
    &kGpuEnergy,
    &kGpuEnergySigma,
    &kGpuPower,
    &kGpuPowerLimit,
    &kGpuTemperature,
    &kGpuUtilization,
    &kGpuClock,
    &kCpuEnergy,
    &kCpuPower,
    &kRailEnergy,
    &kRailPower,
    &kWindowEnergy,
    &kSelfCpu,
    &kBuildInfo,
    &kLlmRequestEnergy,
    &kLlmTokenEnergy,
    &kLlmEnergy,
    &kLlmTokens,
    &kLlmRequests,
    &kLlmFirstToken,
    &kLlmPerToken,
    &kLlmRunning,
    &kLlmResidual,
    &kLlmClock,
    &kGovernorState,
    &kGovernorClock,
    &kGovernorChanges,
    &kGovernorRequests,
    &kGovernorSaved,
    &kColosseumDuels,
    &kColosseumAnswering,
    &kColosseumVotes,
    &kColosseumRefusedVotes,
    &kDaemonRequests,
    &kDaemonRequestDuration,
    &kDaemonConnections,
    &kDaemonDenied,
    &kDaemonStreams,
    &kDaemonStreamDropped,
    &kDaemonAuditLost,
    &kDeviceStuck,
    &kLeases,
    &kLeasesEnded,
    &kKnobWatts,
    &kKnobRestorePending,
    &kKnobRestoreDuration,
    &kDeviceCallDuration,
    &kForeignChanges,
    &kJobEnergy,
    &kJobInfo,
    &kJobCpuTime,
    &kJobCpuEnergy,
    &kPodEnergy,
    &kKubeletUp,
    &kPodContainers,
    &kPodUnknownDevices,
    &kSharedIdleEnergy,
    &kReferenceGpuHistogram,
    &kReferenceCpuHistogram,
    &kReferenceDramHistogram,
    &kReferenceGpuCounter,
    &kReferenceCpuCounter,
    &kReferenceDramCounter,
    &kReferenceGpuPower,
};

// The value of the label "window" for energy of the whole recording.
inline constexpr const char* kWholeRecording = "all";

// The catalogue as a Markdown table.
std::string Reference();

}  // namespace zeus::metrics
