#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/file_descriptor.h"
#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/recording/call.h"

// Recordings of the calls of a driver, as files. A file is a sequence of parts, each compressed for
// itself with a checksum, so that it can be read up to where its recorder was killed.
namespace zeus::recording {

enum class Part : std::uint32_t { kBeginning = 1, kProcess = 2, kCalls = 3, kEnd = 4 };

inline constexpr std::uint32_t kMaxHandles = 1024;  // GPUs, and other handles of a process.
inline constexpr std::uint32_t kMaxProcesses = 4096;

// A process whose calls were recorded. Times and numbers begin with the recording.
struct RecordedProcess {
  std::uint32_t number = 0;
  std::uint32_t parent = 0;     // Number of the process that it was forked from; its own if none.
  std::string name{};           // Made up unless identities were kept.
  std::uint16_t name_hash = 0;  // Tells programs apart, but not which program it was.
  std::uint64_t lost = 0;       // Calls that could not be written.
};

struct RecordedCall {
  std::uint32_t process;
  Call call;
};

struct Recording {
  std::int64_t wall_begin = 0;  // In microseconds since 1970.
  bool identities_kept = false;
  bool whole = false;   // False when its recorder was killed.
  int exit_code = 0;    // Exit code of the command, where `whole`.
  std::string version;  // Version of Zeus.
  std::vector<RecordedProcess> processes;
  std::vector<RecordedCall> calls;                  // In the order of each process.
  std::vector<std::unique_ptr<std::string>> bytes;  // The calls point into these.
};

// A short number that tells names of programs apart, and of which many names share one.
std::uint16_t NameHash(std::string_view name);

// Writes a recording part by part: after each, the file is complete up to there. One owner.
class RecordingWriter {
 public:
  // Replaces a file of that name.
  static Result<std::unique_ptr<RecordingWriter>> Create(const std::filesystem::path& path,
                                                         std::int64_t wall_begin,
                                                         bool identities_kept);

  Status WriteProcess(const RecordedProcess& process);
  Status WriteCalls(std::uint32_t process, std::string_view calls);
  Status WriteEnd(int exit_code);

  // Whether more calls would make a file that ReadRecording() refuses.
  bool full() const;

 private:
  RecordingWriter(std::filesystem::path path, int descriptor)
      : path_(std::move(path)), file_(descriptor) {}
  Status Write(Part part, std::uint32_t process, std::string_view content);

  const std::filesystem::path path_;
  const FileDescriptor file_;
  std::size_t content_ = 0;  // Bytes of calls.
};

// kInvalidArgument with a sentence about where a file is damaged, or that it is no recording. What
// a file may hold is limited, so that a small file cannot fill the memory.
Result<Recording> ReadRecording(const std::filesystem::path& path);
// The same of bytes; `name` is for messages.
Result<Recording> ParseRecording(std::string_view bytes, std::string_view name);

}  // namespace zeus::recording
