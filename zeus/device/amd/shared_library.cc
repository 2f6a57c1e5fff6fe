#include "zeus/device/amd/shared_library.h"

#include <dlfcn.h>

#include <string_view>

namespace zeus::amd {
namespace {

std::string LastError() {
  const char* text = ::dlerror();  // NOLINT(concurrency-mt-unsafe): per thread in glibc and musl.
  return text == nullptr ? "unknown error" : text;
}

// Not "a library that it needs was not found": that one is worth telling.
bool IsMissing(std::string_view reason, std::string_view name) {
  return reason.starts_with(name) && reason.find("No such file") != std::string_view::npos;
}

}  // namespace

Result<SharedLibrary> SharedLibrary::Open(const std::vector<std::string>& names) {
  Error error{ErrorCode::kNotFound, "library not found"};
  for (const std::string& name : names) {
    if (void* handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL))
      return SharedLibrary(name, handle);
    if (const std::string reason = LastError(); !IsMissing(reason, name))
      return Error{ErrorCode::kUnavailable, reason};
    error.message = name + " not found";
  }
  return error;
}

void* SharedLibrary::Symbol(const char* symbol) const { return ::dlsym(handle_, symbol); }

}  // namespace zeus::amd
