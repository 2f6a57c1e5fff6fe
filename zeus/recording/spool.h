#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/result.h"

// Calls on their way from a recorded program to its recording. Every process of the program writes
// files of a fixed size, its segments, into a folder; the recorder collects them. A segment is
// mapped memory shared with the kernel: what was written survives the death of the process at any
// instruction, without a system call per call of the driver.
namespace zeus::recording {

inline constexpr const char* kSpoolVariable = "ZEUS_RECORD_SPOOL";
inline constexpr const char* kDriverVariable = "ZEUS_RECORD_DRIVER";
inline constexpr std::size_t kSegmentSize = std::size_t{1} << 20U;

struct SegmentHeader {
  std::uint64_t magic;
  std::uint64_t process;  // A number of its own: identifiers of processes are used again.
  std::uint64_t parent;   // Number of the recorded process it was forked from; else zero.
  std::uint32_t pid;
  std::uint32_t number;               // The first segment of a process is number zero.
  char name[16];                      // Name of the process.
  std::uint64_t lost;                 // Calls that could not be written before this segment.
  std::atomic<std::uint32_t> used;    // Bytes of calls that are complete.
  std::atomic<std::uint32_t> closed;  // Not zero once nothing more is written.
};
static_assert(sizeof(SegmentHeader) == 64);

inline constexpr std::uint64_t kSegmentMagic = 0x31'47'45'53'53'55'45'5a;  // "ZEUSSEG1"

// The side of a recorded process. The caller holds a lock around Write().
class SpoolWriter {
 public:
  SpoolWriter(std::filesystem::path folder, std::uint64_t process, std::uint64_t parent);
  ~SpoolWriter();
  SpoolWriter(const SpoolWriter&) = delete;
  SpoolWriter& operator=(const SpoolWriter&) = delete;

  // Appends a call. Calls are counted and lost when the disk is full, or when nobody has collected
  // as many segments as a process may leave.
  void Write(std::string_view call);

  std::uint64_t process() const { return process_; }

 private:
  bool NextSegment();
  void Close();

  const std::filesystem::path folder_;
  const std::uint64_t process_;
  const std::uint64_t parent_;
  std::uint32_t number_ = 0;
  std::uint64_t lost_ = 0;
  std::uint64_t lost_since_attempt_ = 0;
  SegmentHeader* segment_ = nullptr;
};

// Whole calls of one process, collected at one time.
struct Collected {
  std::uint64_t process;
  std::uint64_t parent;
  std::uint32_t pid;
  std::string name;
  std::uint64_t lost;
  std::string calls;
};

// The side of the recorder. One owner.
class SpoolReader {
 public:
  // Creates the folder, readable by its owner only. kConflict when it is there already.
  static Result<std::unique_ptr<SpoolReader>> Create(std::filesystem::path folder);
  ~SpoolReader();  // Removes the folder.
  SpoolReader(const SpoolReader&) = delete;
  SpoolReader& operator=(const SpoolReader&) = delete;

  // Returns what was written since the last call, parents before what was forked from them, and
  // removes the segments that are complete.
  std::vector<Collected> Collect();

 private:
  struct Position {
    std::filesystem::path file;
    std::uint32_t taken = 0;
  };

  explicit SpoolReader(std::filesystem::path folder) : folder_(std::move(folder)) {}
  void CollectFrom(const std::filesystem::path& file, std::vector<Collected>& collected);
  std::uint32_t& Taken(const std::filesystem::path& file);

  const std::filesystem::path folder_;
  std::vector<Position> positions_;
};

}  // namespace zeus::recording
