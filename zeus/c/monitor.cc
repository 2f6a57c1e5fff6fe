#include <algorithm>
#include <string_view>
#include <utility>

#include "zeus/c/boundary.h"
#include "zeus/c/handles.h"
#include "zeus/client/node/open_node.h"
#include "zeus/device/node.h"

namespace zeus::c {
namespace {

zeus_device_kind ParseKind(std::string_view name) {
  if (name.starts_with("gpu:")) return ZEUS_DEVICE_GPU;
  if (name.starts_with("cpu:")) return ZEUS_DEVICE_CPU;
  if (name.starts_with("dram:")) return ZEUS_DEVICE_DRAM;
  return ZEUS_DEVICE_OTHER;
}

std::string CpuModel(const Node& node, std::string_view name) {
  const auto cpu =
      std::ranges::find_if(node.cpus, [&](const auto& c) { return c->name() == name; });
  return cpu == node.cpus.end() ? "" : (*cpu)->identity().model;
}

DeviceText Describe(NodeMonitor& node, std::size_t device) {
  const std::string& name = node.monitor().device_name(device);
  if (const Gpu* gpu = node.gpu(device)) {
    const GpuIdentity& identity = gpu->identity();
    return {.name = name,
            .model = identity.model,
            .uuid = identity.uuid,
            .pci_address = identity.pci_address,
            .kind = ZEUS_DEVICE_GPU};
  }
  return {.name = name,
          .model = CpuModel(node.node(), name),
          .uuid = "",
          .pci_address = "",
          .kind = ParseKind(name)};
}

NodeMonitorOptions ToOptions(const zeus_monitor_options& given) {
  NodeMonitorOptions options;
  if (given.gpus != nullptr)
    options.gpus = std::vector<unsigned>(given.gpus, given.gpus + given.gpu_count);
  options.cpus = given.cpus != 0;
  options.rails = given.cpus != 0;
  options.share = given.share != 0;
  options.thread = given.recorder_thread != 0;
  if (given.synchronize != nullptr) {
    options.synchronize = [call = given.synchronize, data = given.synchronize_data] { call(data); };
  }
  return options;
}

zeus_monitor_options DefaultOptions(std::size_t struct_size) {
  zeus_monitor_options options{};
  options.struct_size = struct_size;
  options.cpus = 1;
  options.recorder_thread = 1;
  options.share = 1;
  return options;
}

std::string WhatIsAbsent(const Node& node) {
  std::string text = "no device here can be measured (see zeus doctor)";
  for (const Absence& absence : node.absent) text += "; " + absence.what + ": " + absence.reason;
  return text;
}

Result<std::unique_ptr<zeus_monitor>> Open(const zeus_monitor_options& given) {
  auto monitor = std::make_unique<zeus_monitor>();
  WatchForks();
  monitor->fork_generation = ForkGeneration();
  ZEUS_TRY(Node node, client::OpenThisNode(monitor->clock));
  const std::string absent = WhatIsAbsent(node);
  NodeMonitorOptions options = ToOptions(given);
  ZEUS_TRY(monitor->node, NodeMonitor::Open(monitor->clock, std::move(node), std::move(options)));
  EnergyMonitor& recorder = monitor->node->monitor();
  if (recorder.device_count() == 0) return Error{ErrorCode::kNotFound, absent};
  for (std::size_t i = 0; i < recorder.device_count(); ++i)
    monitor->devices.push_back(Describe(*monitor->node, i));
  if (given.refined != nullptr) {
    recorder.OnRefined(
        [call = given.refined, data = given.refined_data](const Measurement& result) {
          const zeus_measurement handle{result};
          call(&handle, data);
        });
  }
  return monitor;
}

}  // namespace

Status CheckMonitor(const zeus_monitor* monitor) {
  ZEUS_RETURN_IF_ERROR(CheckGiven(monitor, "monitor"));
  if (monitor->fork_generation == ForkGeneration()) return Ok();
  return Error{ErrorCode::kUnavailable,
               "the monitor was opened before fork(): open another one in the child"};
}

Status CheckDevice(const zeus_monitor& monitor, std::size_t device) {
  if (device < monitor.devices.size()) return Ok();
  return Error{ErrorCode::kNotFound, fmt::format("there is no device {}: the monitor has {}",
                                                 device, monitor.devices.size())};
}

Result<Gpu*> FindGpu(const zeus_monitor& monitor, std::size_t device) {
  ZEUS_RETURN_IF_ERROR(CheckDevice(monitor, device));
  if (Gpu* gpu = monitor.node->gpu(device)) return gpu;
  return Error{ErrorCode::kNotSupported,
               monitor.devices[device].name + " is not a GPU: its power limit is out of reach"};
}

}  // namespace zeus::c

using namespace zeus::c;

extern "C" {

zeus_status zeus_monitor_options_init(zeus_monitor_options* options, size_t struct_size) {
  return Guard([&]() -> zeus::Status {
    ZEUS_RETURN_IF_ERROR(CheckGiven(options, "options"));
    ZEUS_RETURN_IF_ERROR(CheckSize<zeus_monitor_options>(struct_size, "zeus_monitor_options"));
    options->struct_size = struct_size;
    WriteStruct(DefaultOptions(struct_size), options);
    return zeus::Ok();
  });
}

zeus_status zeus_monitor_open(const zeus_monitor_options* options, zeus_monitor** monitor) {
  return Guard([&]() -> zeus::Status {
    ZEUS_RETURN_IF_ERROR(CheckGiven(monitor, "monitor"));
    *monitor = nullptr;
    zeus_monitor_options chosen = DefaultOptions(sizeof(zeus_monitor_options));
    if (options != nullptr) {
      ZEUS_TRY(chosen, ReadStruct(options, "zeus_monitor_options"));
    }
    ZEUS_TRY(auto opened, Open(chosen));
    *monitor = opened.release();
    return zeus::Ok();
  });
}

zeus_status zeus_monitor_close(zeus_monitor* monitor) {
  return Guard([&]() -> zeus::Status {
    // After fork(), the child has no recorder thread and must not restore the parent's limits.
    if (monitor == nullptr || !CheckMonitor(monitor).ok()) return zeus::Ok();
    const std::unique_ptr<zeus_monitor> closing(monitor);
    zeus::Status restored = zeus::Ok();
    for (const auto& limit : closing->limits) {
      const auto held = limit.lock();
      if (held == nullptr) continue;
      if (auto status = held->Restore(); !status.ok()) restored = status;
    }
    return restored;
  });
}

zeus_status zeus_monitor_step(zeus_monitor* monitor, double* seconds_until_next) {
  return Guard([&]() -> zeus::Status {
    ZEUS_RETURN_IF_ERROR(CheckMonitor(monitor));
    const zeus::TimePoint next = monitor->node->monitor().Step();
    if (seconds_until_next != nullptr)
      *seconds_until_next = std::max(0.0, (next - monitor->clock.Now()).count());
    return zeus::Ok();
  });
}

}  // extern "C"
