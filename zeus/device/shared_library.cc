#include "zeus/device/shared_library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <string_view>
#include <system_error>

namespace zeus {
namespace {

// dlopen() says what is wrong only in a sentence; whether a file is there we can see ourselves.
// "A library that it needs was not found" is not the same, and worth telling.
Error LoadError(const std::string& path) {
  const char* const said = ::dlerror();  // NOLINT(concurrency-mt-unsafe): per thread in glibc.
  std::string_view reason = said == nullptr ? "unknown reason" : said;
  if (reason.starts_with(path + ": ")) reason.remove_prefix(path.size() + 2);
  std::error_code ignored;
  const bool missing = path.find('/') == std::string::npos
                           ? reason.starts_with("cannot open shared object file")
                           : !std::filesystem::exists(path, ignored);
  if (missing) return {ErrorCode::kNotFound, path + " not found"};
  return {ErrorCode::kInvalidArgument,
          fmt::format("{} cannot be loaded as a library: {}", path, reason)};
}

}  // namespace

Result<SharedLibrary> SharedLibrary::Open(const std::optional<std::string>& path,
                                          const std::vector<std::string>& usual) {
  const std::vector<std::string> names = path ? std::vector{*path} : usual;
  for (const std::string& name : names) {
    if (void* handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL))
      return SharedLibrary(name, handle);
    if (Error error = LoadError(name); error.code != ErrorCode::kNotFound) return error;
  }
  return Error{ErrorCode::kNotFound, names.at(0) + " not found"};
}

Status SharedLibrary::CheckComplete(const char* product) const {
  if (missing_.empty()) return Ok();
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("{} is not {}: it lacks {}", name_, product, fmt::join(missing_, ", "))};
}

void* SharedLibrary::FirstOf(std::initializer_list<const char*> symbols) const {
  for (const char* symbol : symbols) {
    if (void* found = ::dlsym(handle_, symbol)) return found;
  }
  return nullptr;
}

}  // namespace zeus
