#include "zeus/recording/spool.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <system_error>
#include <utility>

#include "zeus/base/file.h"
#include "zeus/base/file_descriptor.h"
#include "zeus/base/process.h"
#include "zeus/base/text.h"
#include "zeus/recording/call.h"

namespace zeus::recording {
namespace {

// Sorts processes behind those that they were forked from: their files have random names.
void PutParentsFirst(std::vector<Collected>& collected) {
  std::map<std::uint64_t, std::uint64_t> parents;
  for (const Collected& one : collected) parents.emplace(one.process, one.parent);
  const auto generation = [&](const Collected& one) {
    std::size_t ancestors = 0;
    for (auto at = parents.find(one.parent); at != parents.end() && ancestors < parents.size();
         at = parents.find(at->second))
      ++ancestors;
    return ancestors;
  };
  std::ranges::stable_sort(collected, {}, generation);
}

constexpr std::uint32_t kRoom = kSegmentSize - sizeof(SegmentHeader);
// A process waits for the recorder with so many segments at most: 16 MiB.
constexpr std::uint32_t kMaxWaiting = 16;
constexpr std::uint64_t kCallsBetweenAttempts = 1000;
constexpr const char* kSuffix = ".calls";

std::filesystem::path SegmentFile(const std::filesystem::path& folder, std::uint64_t process,
                                  std::uint32_t number) {
  return folder / fmt::format("{:016x}-{:08}{}", process, number, kSuffix);
}

SegmentHeader* Map(int file) {
  void* const address = ::mmap(nullptr, kSegmentSize, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  return address == MAP_FAILED ? nullptr : static_cast<SegmentHeader*>(address);
}

char* Calls(SegmentHeader* segment) { return reinterpret_cast<char*>(segment + 1); }

}  // namespace

SpoolWriter::SpoolWriter(std::filesystem::path folder, std::uint64_t process, std::uint64_t parent)
    : folder_(std::move(folder)), process_(process), parent_(parent) {}

SpoolWriter::~SpoolWriter() { Close(); }

void SpoolWriter::Close() {
  if (segment_ == nullptr) return;
  segment_->closed.store(1, std::memory_order_release);
  ::munmap(segment_, kSegmentSize);
  segment_ = nullptr;
}

bool SpoolWriter::NextSegment() {
  Close();
  if (number_ >= kMaxWaiting &&
      ::access(SegmentFile(folder_, process_, number_ - kMaxWaiting).c_str(), F_OK) == 0)
    return false;
  const auto path = SegmentFile(folder_, process_, number_);
  const auto draft = std::filesystem::path(path.string() + ".new");
  const FileDescriptor file(::open(draft.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600));
  if (!file.valid()) return false;
  // A full disk is noticed here, and not as a signal when the memory is written.
  SegmentHeader* const segment =
      ::posix_fallocate(file.get(), 0, kSegmentSize) == 0 ? Map(file.get()) : nullptr;
  if (segment == nullptr) {
    ::unlink(draft.c_str());
    return false;
  }
  segment->magic = kSegmentMagic;
  segment->process = process_;
  segment->parent = parent_;
  segment->pid = static_cast<std::uint32_t>(::getpid());
  segment->number = number_;
  segment->lost = lost_;
  if (const auto name = ReadLine("/proc/self/comm"); name.ok())
    name.value().copy(segment->name, sizeof segment->name - 1);
  if (::rename(draft.c_str(), path.c_str()) != 0) {
    ::munmap(segment, kSegmentSize);
    ::unlink(draft.c_str());
    return false;
  }
  segment_ = segment;
  ++number_;
  return true;
}

void SpoolWriter::Write(std::string_view call) {
  const bool fits =
      segment_ != nullptr && call.size() <= kRoom - segment_->used.load(std::memory_order_relaxed);
  if (!fits && (call.size() > kMaxCallSize || lost_since_attempt_ % kCallsBetweenAttempts != 0 ||
                !NextSegment())) {
    ++lost_;
    ++lost_since_attempt_;
    return;
  }
  lost_since_attempt_ = 0;
  const std::uint32_t used = segment_->used.load(std::memory_order_relaxed);
  std::memcpy(Calls(segment_) + used, call.data(), call.size());
  segment_->used.store(used + static_cast<std::uint32_t>(call.size()), std::memory_order_release);
}

Result<std::unique_ptr<SpoolReader>> SpoolReader::Create(std::filesystem::path folder) {
  if (::mkdir(folder.c_str(), 0700) != 0) {
    if (errno != EEXIST) return FileError(folder, errno);
    return Error{ErrorCode::kConflict,
                 fmt::format("{} exists: another recording to this file runs, or one was killed; "
                             "remove the folder, or choose another file",
                             Printable(folder.string()))};
  }
  return std::unique_ptr<SpoolReader>(new SpoolReader(std::move(folder)));
}

SpoolReader::~SpoolReader() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::uint32_t& SpoolReader::Taken(const std::filesystem::path& file) {
  const auto known = std::ranges::find(positions_, file, &Position::file);
  if (known != positions_.end()) return known->taken;
  return positions_.emplace_back(Position{.file = file, .taken = 0}).taken;
}

std::vector<Collected> SpoolReader::Collect() {
  std::vector<std::filesystem::path> files;
  std::error_code ignored;
  for (std::filesystem::directory_iterator entry(folder_, ignored), end; entry != end;
       entry.increment(ignored))
    if (entry->path().extension() == kSuffix) files.push_back(entry->path());
  std::ranges::sort(files);
  std::vector<Collected> collected;
  for (const auto& file : files) CollectFrom(file, collected);
  PutParentsFirst(collected);
  return collected;
}

void SpoolReader::CollectFrom(const std::filesystem::path& path,
                              std::vector<Collected>& collected) {
  const FileDescriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  struct stat status {};
  if (!file.valid() || ::fstat(file.get(), &status) != 0 ||
      status.st_size != static_cast<off_t>(kSegmentSize))
    return;
  SegmentHeader* const segment = Map(file.get());
  if (segment == nullptr) return;
  // "Closed" is read first: what is complete then stays complete.
  const bool closed = segment->closed.load(std::memory_order_acquire) != 0;
  const std::uint32_t used = std::min(segment->used.load(std::memory_order_acquire), kRoom);
  std::uint32_t& taken = Taken(path);
  if (segment->magic == kSegmentMagic && used > taken) {
    collected.push_back({.process = segment->process,
                         .parent = segment->parent,
                         .pid = segment->pid,
                         .name = {segment->name, ::strnlen(segment->name, sizeof segment->name)},
                         .lost = segment->lost,
                         .calls = {Calls(segment) + taken, used - taken}});
    taken = used;
  }
  ::munmap(segment, kSegmentSize);
  if (!closed) return;
  ::unlink(path.c_str());
  std::erase_if(positions_, [&](const Position& position) { return position.file == path; });
}

}  // namespace zeus::recording
