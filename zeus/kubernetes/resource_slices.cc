#include "zeus/kubernetes/resource_slices.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "zeus/base/field_reader.h"
#include "zeus/base/json.h"
#include "zeus/base/log.h"
#include "zeus/base/text.h"
#include "zeus/http/client.h"

namespace zeus::kubernetes {
namespace {

constexpr Seconds kSlicePeriod{10};
constexpr const char* kAccount = "/var/run/secrets/kubernetes.io/serviceaccount";
// The newest first: a server has some of them.
constexpr std::array kVersions = {"v1", "v1beta2", "v1beta1"};
// The names of attributes that tell a GPU; drivers may put their own name in front. A part has the
// counter of its board.
constexpr std::array kIdentities = {"parentUUID", "uuid", "pciAddr", "pciBusID"};

bool IsAttribute(std::string_view name, std::string_view wanted) {
  return name == wanted || (name.ends_with(wanted) && name[name.size() - wanted.size() - 1] == '/');
}

std::string IdentityIn(const Json& attributes) {
  if (!attributes.is_object()) return {};
  for (const char* wanted : kIdentities)
    for (const auto& [name, value] : attributes.items()) {
      if (!IsAttribute(name, wanted) || !value.is_object()) continue;
      const auto text = value.find("string");
      if (text != value.end() && text->is_string()) return text->get<std::string>();
    }
  return {};
}

Status AddDevice(const ClaimedDevice& of_pool, const Json& json, SlicedDevices& devices) {
  ClaimedDevice device = of_pool;
  Json attributes;
  Json basic;
  FieldReader reader("a device", json);
  reader.Require("name", device.device);
  reader.ReadUnlessNull("attributes", attributes);
  reader.ReadUnlessNull("basic", basic);  // v1beta1
  ZEUS_RETURN_IF_ERROR(reader.FinishAllowingOthers());
  if (attributes.is_null() && basic.is_object() && basic.contains("attributes"))
    attributes = basic["attributes"];
  std::string identity = IdentityIn(attributes);
  if (!identity.empty()) devices[std::move(device)] = std::move(identity);
  return Ok();
}

Status AddSlice(const Json& json, SlicedDevices& devices) {
  ZEUS_TRY(const Json spec, GetField<Json>(json, "spec"));
  ClaimedDevice of_pool;
  Json pool;
  std::vector<Json> listed;
  FieldReader reader("a ResourceSlice", spec);
  reader.Require("driver", of_pool.driver);
  reader.Require("pool", pool);
  reader.ReadUnlessNull("devices", listed);
  ZEUS_RETURN_IF_ERROR(reader.FinishAllowingOthers());
  FieldReader pool_reader("a pool", pool);
  pool_reader.Require("name", of_pool.pool);
  ZEUS_RETURN_IF_ERROR(pool_reader.FinishAllowingOthers());
  for (const Json& device : listed) ZEUS_RETURN_IF_ERROR(AddDevice(of_pool, device, devices));
  return Ok();
}

// The token is read each time: the kubelet replaces it every hour.
Result<std::string> GetFrom(const std::string& url, const std::string& path) {
  const std::filesystem::path account = kAccount;
  ZEUS_TRY(const std::string token, ReadLine(account / "token"));
  ZEUS_TRY(const auto client, http::Client::Create({.url = url,
                                                    .token = token,
                                                    .authorities = (account / "ca.crt").string(),
                                                    .connect_timeout = Seconds(2),
                                                    .answer_timeout = Seconds(5)}));
  ZEUS_TRY(http::Reply reply, client->Send({.path = path}));
  if (reply.status == 200) return std::move(reply.body);
  return Error{reply.status == 404 ? ErrorCode::kNotFound : ErrorCode::kUnavailable,
               fmt::format("the API server answered {} to {}", reply.status, path)};
}

}  // namespace

Result<SlicedDevices> ParseResourceSlices(const Json& list) {
  SlicedDevices devices;
  std::vector<Json> items;
  FieldReader reader("a list of ResourceSlices", list);
  reader.Require("items", items);
  ZEUS_RETURN_IF_ERROR(reader.FinishAllowingOthers());
  for (const Json& item : items) ZEUS_RETURN_IF_ERROR(AddSlice(item, devices));
  return devices;
}

ResourceSlices::ResourceSlices(const Clock& clock, std::string node, Get get)
    : clock_(&clock), node_(std::move(node)), get_(std::move(get)) {}

std::optional<ResourceSlices> ResourceSlices::OfThisPod(const Clock& clock,
                                                        const Environment& environment) {
  const auto host = environment("KUBERNETES_SERVICE_HOST");
  const auto port = environment("KUBERNETES_SERVICE_PORT");
  auto node = environment("NODE_NAME");
  std::error_code failure;
  const bool account = std::filesystem::exists(std::filesystem::path(kAccount) / "token", failure);
  if (!host || !port || !node || node->empty() || !account) return std::nullopt;
  const bool is_v6 = host->find(':') != std::string::npos;
  std::string url = fmt::format("https://{}:{}", is_v6 ? "[" + *host + "]" : *host, *port);
  return ResourceSlices(clock, *std::move(node), [url = std::move(url)](const std::string& path) {
    return GetFrom(url, path);
  });
}

Result<SlicedDevices> ResourceSlices::Ask() const {
  Error last{ErrorCode::kNotFound, "the API server has no ResourceSlices"};
  for (const char* version : kVersions) {
    const auto body =
        get_(fmt::format("/apis/resource.k8s.io/{}/resourceslices?fieldSelector=spec.nodeName%3D{}",
                         version, node_));
    if (body.ok()) {
      ZEUS_TRY(const Json list, ParseJson(body.value()));
      return ParseResourceSlices(list);
    }
    last = body.error();
    if (last.code != ErrorCode::kNotFound) break;
  }
  return last;
}

std::optional<std::string> ResourceSlices::Find(const ClaimedDevice& device) {
  const bool due = !asked_ || clock_->Now() - *asked_ >= kSlicePeriod;
  if (!devices_.contains(device) && due) {
    asked_ = clock_->Now();
    auto asked = Ask();
    if (asked.ok())
      devices_ = std::move(asked).value();
    else
      log::Warning("which GPU {} is cannot be told: {}", Quote(device.device),
                   asked.error().message);
  }
  const auto found = devices_.find(device);
  if (found == devices_.end()) return std::nullopt;
  return found->second;
}

}  // namespace zeus::kubernetes
