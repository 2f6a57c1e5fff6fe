// Reads what a kubelet says of its pods, first as the message alone and then as an HTTP/2 server
// would say it. Besides not crashing, what is read must be safe as labels of metrics.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "zeus/kubernetes/grpc_exchange.h"
#include "zeus/kubernetes/pod_resources.h"
#include "zeus/kubernetes/protobuf_reader.h"

namespace {

using namespace zeus::kubernetes;

void Require(bool promise) {
  if (!promise) std::abort();
}

bool IsName(const std::string& text) {
  return !text.empty() && text.size() <= 253 &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-.") == std::string::npos;
}

bool IsPlain(const std::string& text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c > ' ' && c < 127; });
}

void FuzzMessage(std::string_view message) {
  const auto parsed = ParsePodResources(message);
  if (!parsed.ok()) return;
  for (const ContainerResources& container : parsed.value()) {
    Require(IsName(container.name_space) && IsName(container.pod) && IsName(container.container));
    Require(!container.plugin_devices.empty() || !container.claimed.empty());
    for (const PluginDevices& devices : container.plugin_devices)
      for (const std::string& id : devices.ids) {
        Require(IsPlain(id));
        const DeviceId known = ParseDeviceId(id);
        Require(known.partition.empty() || known.partition.starts_with("MIG-"));
      }
  }
}

// Every field lies inside of the message.
void FuzzFields(std::string_view message) {
  ProtobufReader reader(message);
  for (;;) {
    const auto field = reader.Next();
    if (!field.ok() || !field.value()) return;
    const std::string_view bytes = field.value()->bytes;
    Require(bytes.empty() || (bytes.data() >= message.data() &&
                              bytes.data() + bytes.size() <= message.data() + message.size()));
  }
}

void FuzzServer(std::string_view bytes) {
  constexpr std::size_t kLimit = 4096;
  GrpcExchange exchange({.method = "/v1.PodResourcesLister/List", .limit = kLimit});
  // The first byte says in pieces of which size the others come.
  const std::size_t piece = static_cast<std::uint8_t>(bytes.front()) + std::size_t{1};
  for (std::size_t at = 1; at < bytes.size() && !exchange.done(); at += piece)
    if (!exchange.TakeOutput().ok() || !exchange.Receive(bytes.substr(at, piece)).ok()) return;
  if (!exchange.done()) return;
  const auto answer = exchange.Answer();
  if (!answer.ok()) return;
  Require(answer.value().size() <= kLimit);
  FuzzMessage(answer.value());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  FuzzFields(text);
  FuzzMessage(text);
  if (!text.empty()) FuzzServer(text);
  return 0;
}
