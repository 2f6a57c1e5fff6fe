#include "zeus/recording/recording_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>
#include <utility>

#include "zeus/base/file.h"
#include "zeus/base/json.h"
#include "zeus/base/text.h"
#include "zeus/base/version.h"

namespace zeus::recording {
namespace {

constexpr std::string_view kMagic = "ZEUSREC1";
constexpr std::size_t kMaxPart = std::size_t{1} << 20U;     // Limit of a part, unpacked.
constexpr std::size_t kMaxContent = std::size_t{1} << 27U;  // Limit of all parts: 128 MiB.
constexpr std::size_t kMaxFile = std::size_t{1} << 28U;
constexpr std::size_t kRoomForTheEnd = std::size_t{1} << 24U;  // More than one collection brings.
constexpr int kLevel = 3;

struct PartHeader {
  Part part;
  std::uint32_t process;
  std::uint32_t packed;    // Bytes in the file.
  std::uint32_t size;      // Bytes unpacked.
  std::uint32_t checksum;  // CRC-32 of the bytes in the file.
};
static_assert(sizeof(PartHeader) == 20);

std::uint32_t Checksum(std::string_view bytes) {
  return static_cast<std::uint32_t>(
      ::crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size())));
}

}  // namespace

std::uint16_t NameHash(std::string_view name) {
  const std::uint32_t sum = Checksum(name);
  return static_cast<std::uint16_t>(sum ^ (sum >> 16U));
}

Result<std::unique_ptr<RecordingWriter>> RecordingWriter::Create(const std::filesystem::path& path,
                                                                 std::int64_t wall_begin,
                                                                 bool identities_kept) {
  const int file = ::open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);
  if (file < 0) return FileError(path, errno);
  auto writer = std::unique_ptr<RecordingWriter>(new RecordingWriter(path, file));
  ZEUS_RETURN_IF_ERROR(WriteAll(file, kMagic, path));
  Json functions = Json::array();
  for (const Function& function : Functions()) functions.push_back(std::string(function.line));
  const Json beginning{{"zeus_version", Version()},
                       {"wall_begin_microseconds", wall_begin},
                       {"identities_kept", identities_kept},
                       {"functions", std::move(functions)}};
  ZEUS_RETURN_IF_ERROR(writer->Write(Part::kBeginning, 0, JsonText(beginning)));
  return writer;
}

Status RecordingWriter::WriteProcess(const RecordedProcess& process) {
  return Write(Part::kProcess, process.number,
               JsonText({{"parent", process.parent},
                         {"name", process.name},
                         {"name_hash", process.name_hash},
                         {"lost", process.lost}}));
}

Status RecordingWriter::WriteCalls(std::uint32_t process, std::string_view calls) {
  content_ += calls.size();
  while (!calls.empty()) {
    // Parts hold whole calls.
    std::size_t size = 0;
    while (size < calls.size()) {
      const auto next = Load<CallHeader>(calls.data() + size).size;
      if (size + next > kMaxPart) break;
      size += next;
    }
    ZEUS_RETURN_IF_ERROR(Write(Part::kCalls, process, calls.substr(0, size)));
    calls.remove_prefix(size);
  }
  return Ok();
}

bool RecordingWriter::full() const { return content_ > kMaxContent - kRoomForTheEnd; }

Status RecordingWriter::WriteEnd(int exit_code) {
  return Write(Part::kEnd, 0, JsonText({{"exit_code", exit_code}}));
}

Status RecordingWriter::Write(Part part, std::uint32_t process, std::string_view content) {
  std::string packed(ZSTD_compressBound(content.size()), '\0');
  const std::size_t size =
      ZSTD_compress(packed.data(), packed.size(), content.data(), content.size(), kLevel);
  if (ZSTD_isError(size) != 0U)
    return Error{ErrorCode::kInternal, fmt::format("cannot compress: {}", ZSTD_getErrorName(size))};
  packed.resize(size);
  std::string bytes;
  Append(bytes, PartHeader{.part = part,
                           .process = process,
                           .packed = static_cast<std::uint32_t>(packed.size()),
                           .size = static_cast<std::uint32_t>(content.size()),
                           .checksum = Checksum(packed)});
  return WriteAll(file_.get(), bytes + packed, path_);
}

namespace {

class Parser {
 public:
  Parser(std::string_view bytes, std::string_view name) : rest_(bytes), name_(name) {}

  Result<Recording> Parse() && {
    const std::size_t size = rest_.size();
    if (!rest_.starts_with(kMagic))
      return Damaged(size == 0 ? "it is empty" : "it is not a recording of zeus record");
    rest_.remove_prefix(kMagic.size());
    while (!rest_.empty() && !recording_.whole) {
      ZEUS_TRY(const bool complete, TakePart());
      if (!complete) break;  // Its recorder was killed while it wrote this part.
    }
    if (!begun_) return Damaged("its beginning is missing");
    if (recording_.whole && !rest_.empty()) return Damaged("something follows its end");
    return std::move(recording_);
  }

 private:
  Error Damaged(std::string_view what) const {
    return {ErrorCode::kInvalidArgument, fmt::format("{}: {}", Printable(name_), what)};
  }
  Error DamagedPart(std::string_view what) const {
    return Damaged(fmt::format("the file is damaged: {} in part {}", what, parts_));
  }

  Result<bool> TakePart() {
    ++parts_;
    if (rest_.size() < sizeof(PartHeader)) return false;
    const auto header = Load<PartHeader>(rest_.data());
    if (header.size > kMaxPart || header.packed > ZSTD_compressBound(kMaxPart))
      return DamagedPart("an impossible size");
    if (rest_.size() - sizeof header < header.packed) return false;
    const std::string_view packed = rest_.substr(sizeof header, header.packed);
    rest_.remove_prefix(sizeof header + header.packed);
    if (Checksum(packed) != header.checksum) return DamagedPart("a wrong checksum");
    content_ += header.size;
    if (content_ > kMaxContent)
      return Damaged(fmt::format("it holds more than {} MiB, which is more than a recording may",
                                 kMaxContent >> 20U));
    auto bytes = std::make_unique<std::string>(header.size, '\0');
    const std::size_t size =
        ZSTD_decompress(bytes->data(), bytes->size(), packed.data(), packed.size());
    if (ZSTD_isError(size) != 0U || size != header.size)
      return DamagedPart("compressed bytes that cannot be unpacked");
    ZEUS_RETURN_IF_ERROR(Accept(header, std::move(bytes)));
    return true;
  }

  Status Accept(const PartHeader& header, std::unique_ptr<std::string> bytes) {
    if (begun_ == (header.part == Part::kBeginning))
      return Damaged(begun_ ? "it begins twice" : "its beginning is missing");
    if (header.part == Part::kCalls) {
      recording_.bytes.push_back(std::move(bytes));
      return AcceptCalls(header.process, *recording_.bytes.back());
    }
    auto json = ParseJson(*bytes);
    if (!json.ok() || !json.value().is_object()) return DamagedPart("text that is not JSON");
    if (header.part == Part::kBeginning) return AcceptBeginning(json.value());
    if (header.part == Part::kProcess) return AcceptProcess(header.process, json.value());
    if (header.part != Part::kEnd) return DamagedPart("content of an unknown kind");
    ZEUS_TRY(recording_.exit_code, GetField<int>(json.value(), "exit_code"));
    recording_.whole = true;
    return Ok();
  }

  Status AcceptBeginning(const Json& json) {
    begun_ = true;
    ZEUS_TRY(recording_.version, GetField<std::string>(json, "zeus_version"));
    ZEUS_TRY(recording_.wall_begin, GetField<std::int64_t>(json, "wall_begin_microseconds"));
    ZEUS_TRY(recording_.identities_kept, GetField<bool>(json, "identities_kept"));
    ZEUS_TRY(const auto lines, GetField<std::vector<std::string>>(json, "functions"));
    for (const std::string& line : lines) {
      const auto function = FindFunction(std::string_view(line).substr(0, line.find(' ')));
      // Functions that this Zeus knows otherwise are only missed when they were called.
      const bool same = function && Functions()[*function].line == line;
      functions_.push_back(same ? function : std::nullopt);
      names_.push_back(line.substr(0, line.find(' ')));
    }
    return Ok();
  }

  Status AcceptProcess(std::uint32_t number, const Json& json) {
    RecordedProcess process;
    process.number = number;
    ZEUS_TRY(process.parent, GetField<std::uint32_t>(json, "parent"));
    ZEUS_TRY(process.name, GetField<std::string>(json, "name"));
    ZEUS_TRY(process.name_hash, GetField<std::uint16_t>(json, "name_hash"));
    ZEUS_TRY(process.lost, GetField<std::uint64_t>(json, "lost"));
    if (number > recording_.processes.size() || number >= kMaxProcesses)
      return DamagedPart(fmt::format("process {} (of at most {})", number, kMaxProcesses));
    if (number == recording_.processes.size())
      recording_.processes.push_back(std::move(process));
    else
      recording_.processes[number].lost = process.lost;
    return Ok();
  }

  Status AcceptCalls(std::uint32_t process, std::string& bytes) {
    if (process >= recording_.processes.size()) return DamagedPart("calls of no process");
    for (std::size_t at = 0; at < bytes.size();) {
      const std::size_t left = bytes.size() - at;
      if (left < sizeof(CallHeader)) return DamagedPart("half a call");
      auto header = Load<CallHeader>(bytes.data() + at);
      if (header.size < sizeof header || header.size > left) return DamagedPart("half a call");
      if (header.function >= functions_.size()) return DamagedPart("a call of no function");
      if (!functions_[header.function])
        return Damaged(fmt::format("it was written by Zeus {}, which knows {} otherwise",
                                   Printable(recording_.version),
                                   Printable(names_[header.function])));
      header.function = *functions_[header.function];
      std::memcpy(bytes.data() + at, &header, sizeof header);
      const auto call = ReadCall(std::string_view(bytes).substr(at, header.size));
      if (!call) return DamagedPart("a call that does not fit its function");
      ZEUS_RETURN_IF_ERROR(Check(process, *call));
      recording_.calls.push_back({.process = process, .call = *call});
      at += header.size;
    }
    return Ok();
  }

  // Times of one thread never go backwards, and handles are counted from zero.
  Status Check(std::uint32_t process, const Call& call) {
    const auto key = std::pair(process, call.header.thread);
    auto& last = last_[key];
    if (call.header.begin < last)
      return DamagedPart(fmt::format("times that go backwards, in thread {} of process {},",
                                     call.header.thread, process));
    last = call.header.begin;
    const Function& function = Functions()[call.header.function];
    for (std::size_t i = 0; i < function.arguments.size(); ++i)
      if (const auto strange = StrangeHandle(function.arguments[i].kind, call, i))
        return Damaged(
            fmt::format("it names GPU {}: a recording has at most {}", *strange, kMaxHandles));
    return Ok();
  }

  static std::optional<std::uint32_t> StrangeHandle(Kind kind, const Call& call, std::size_t i) {
    if (kind == Kind::kDevice) return StrangeIn(call.inputs[i], 1);
    if (kind == Kind::kOutDevice || kind == Kind::kEvent) return StrangeIn(call.outputs[i], 1);
    if (kind == Kind::kDevices)
      return StrangeIn(call.outputs[i], call.outputs[i].size() / sizeof(std::uint32_t));
    return std::nullopt;
  }

  static std::optional<std::uint32_t> StrangeIn(std::string_view part, std::size_t count) {
    for (std::size_t i = 0; i < count && (i + 1) * sizeof(std::uint32_t) <= part.size(); ++i) {
      const auto number = Load<std::uint32_t>(part.data() + i * sizeof(std::uint32_t));
      if (number >= kMaxHandles && number != kNoHandle && number != kUnknownHandle) return number;
    }
    return std::nullopt;
  }

  std::string_view rest_;
  const std::string_view name_;
  Recording recording_;
  bool begun_ = false;
  std::size_t parts_ = 0;
  std::size_t content_ = 0;
  std::vector<std::optional<std::uint16_t>> functions_;  // Our numbers by the file's.
  std::vector<std::string> names_;
  std::map<std::pair<std::uint32_t, std::uint16_t>, std::uint64_t> last_;
};

}  // namespace

Result<Recording> ParseRecording(std::string_view bytes, std::string_view name) {
  return Parser(bytes, name).Parse();
}

Result<Recording> ReadRecording(const std::filesystem::path& path) {
  std::error_code failure;
  if (std::filesystem::exists(path, failure) && !std::filesystem::is_regular_file(path, failure))
    return InvalidArgument(fmt::format("{} is not a file", Printable(path.string())));
  ZEUS_TRY(const std::string bytes, ReadSmallFile(path, kMaxFile));
  return ParseRecording(bytes, path.string());
}

}  // namespace zeus::recording
