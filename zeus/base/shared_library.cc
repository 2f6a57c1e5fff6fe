#include "zeus/base/shared_library.h"

#include <dlfcn.h>
#include <elf.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <ios>
#include <system_error>

#include "zeus/base/text.h"

namespace zeus {
namespace {

// As much as holds the program header of any library that a linker made.
constexpr std::size_t kBeginning = 4096;

bool IsPath(const std::string& name) { return name.find('/') != std::string::npos; }

Error NotFound(const std::string& path) {
  return {ErrorCode::kNotFound, Printable(path) + " not found"};
}

Error Unloadable(const std::string& path, std::string_view reason) {
  return {ErrorCode::kInvalidArgument,
          fmt::format("{} cannot be loaded as a library: {}", Printable(path), reason)};
}

// dlopen() says what is wrong only in a sentence. "A library that it needs was not found" is not
// the same as that the library itself was not, and worth telling.
Error LoadError(const std::string& path) {
  const char* const said = ::dlerror();
  std::string_view reason = said == nullptr ? "unknown reason" : said;
  if (reason.starts_with(path + ": ")) reason.remove_prefix(path.size() + 2);
  if (!IsPath(path) && reason.starts_with("cannot open shared object file")) return NotFound(path);
  return Unloadable(path, Printable(reason));
}

Status CheckFile(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return NotFound(path);
    return Unloadable(path, std::generic_category().message(errno));
  }
  if (S_ISDIR(status.st_mode)) return Unloadable(path, "it is a directory");
  if (!S_ISREG(status.st_mode)) return Unloadable(path, "it is not a regular file");
  std::ifstream file(path, std::ios::binary);
  std::string beginning(kBeginning, '\0');
  file.read(beginning.data(), static_cast<std::streamsize>(beginning.size()));
  beginning.resize(static_cast<std::size_t>(file.gcount()));
  if (IsElfCutShort(beginning, static_cast<std::uint64_t>(status.st_size)))
    return Unloadable(path, "it is cut short");
  return Ok();
}

// Whether `length` bytes at `offset` lie within `size`, for unchecked numbers from a file.
bool Fits(std::uint64_t offset, std::uint64_t length, std::uint64_t size) {
  return offset <= size && length <= size - offset;
}

}  // namespace

bool IsElfCutShort(std::string_view beginning, std::uint64_t file_size) {
  if (!beginning.starts_with(std::string_view(ELFMAG, SELFMAG))) return false;
  Elf64_Ehdr header{};
  if (beginning.size() < sizeof(header)) return beginning.size() == file_size;
  std::memcpy(&header, beginning.data(), sizeof(header));
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phentsize != sizeof(Elf64_Phdr))
    return false;
  const std::uint64_t table_size = std::uint64_t{header.e_phnum} * sizeof(Elf64_Phdr);
  if (!Fits(header.e_phoff, table_size, file_size)) return true;
  if (!Fits(header.e_phoff, table_size, beginning.size())) return false;
  for (std::size_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment{};
    std::memcpy(&segment, beginning.data() + header.e_phoff + i * sizeof(segment), sizeof(segment));
    if (segment.p_type == PT_LOAD && !Fits(segment.p_offset, segment.p_filesz, file_size))
      return true;
  }
  return false;
}

Result<SharedLibrary> SharedLibrary::Open(const std::optional<std::string>& path,
                                          const std::vector<std::string>& usual) {
  const std::vector<std::string> names = path ? std::vector{*path} : usual;
  for (const std::string& name : names) {
    if (const Status usable = IsPath(name) ? CheckFile(name) : Ok(); !usable.ok()) {
      if (usable.error().code == ErrorCode::kNotFound) continue;
      return usable.error();
    }
    if (void* handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL))
      return SharedLibrary(name, handle);
    if (Error error = LoadError(name); error.code != ErrorCode::kNotFound) return error;
  }
  return NotFound(names.at(0));
}

Status SharedLibrary::CheckComplete(const char* product) const {
  if (missing_.empty()) return Ok();
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("{} is not {}: it lacks {}", Printable(name_), product,
                           fmt::join(missing_, ", "))};
}

void* SharedLibrary::FirstOf(std::initializer_list<const char*> symbols) const {
  for (const char* symbol : symbols) {
    if (void* found = ::dlsym(handle_, symbol)) return found;
  }
  return nullptr;
}

}  // namespace zeus
