#include "zeus/device/knobs/knob_policy.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <string>

#include "zeus/base/file.h"
#include "zeus/base/json.h"
#include "zeus/base/log.h"
#include "zeus/base/text.h"

namespace zeus {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFile = "/etc/zeus/knobs.json";

Status CheckOwner(const fs::path& file) {
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0) return FileError(file, errno);
  if (status.st_uid == 0 && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0) return Ok();
  return Error{ErrorCode::kPermissionDenied,
               fmt::format("{} is not used: it must belong to root, and nobody else may write it",
                           Printable(file.string()))};
}

Result<KnobPolicy> Parse(const std::string& text) {
  ZEUS_TRY(const Json json, ParseJson(text));
  if (!json.is_object()) return Error{ErrorCode::kInvalidArgument, "not a JSON object"};
  for (const auto& [key, value] : json.items())
    if (key != "may_raise" && key != "caps_are_intended")
      return Error{
          ErrorCode::kInvalidArgument,
          fmt::format("{} is not a setting: use may_raise or caps_are_intended", Quote(key))};
  KnobPolicy policy;
  ZEUS_TRY(const auto may_raise, GetOptionalField<bool>(json, "may_raise"));
  ZEUS_TRY(const auto intended, GetOptionalField<bool>(json, "caps_are_intended"));
  policy.may_raise = may_raise.value_or(false);
  policy.caps_are_intended = intended.value_or(false);
  return policy;
}

}  // namespace

Result<KnobPolicy> ReadKnobPolicy(const fs::path& file) {
  const auto text = ReadSmallFile(file);
  if (!text.ok() && text.error().code == ErrorCode::kNotFound) return KnobPolicy{};
  if (!text.ok()) return text.error();
  ZEUS_RETURN_IF_ERROR(CheckOwner(file));
  auto policy = Parse(text.value());
  if (!policy.ok()) return std::move(policy).error().While(Printable(file.string()));
  return policy;
}

const KnobPolicy& KnobPolicyOfMachine() {
  static const KnobPolicy kPolicy = [] {
    const auto policy = ReadKnobPolicy(kFile);
    if (policy.ok()) return policy.value();
    log::Warning("{}", policy.error().message);
    return KnobPolicy{};
  }();
  return kPolicy;
}

}  // namespace zeus
