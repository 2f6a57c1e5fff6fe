#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>

#include "zeus/recording/recording_file.h"
#include "zeus/recording/spool.h"

namespace zeus::recording {

enum class Identities { kHidden, kKept };

// Replaces what tells one machine from another by made-up texts of the same form, equal ones by
// equal ones. The texts cannot be found out from the made-up ones: they depend on random numbers
// that are written nowhere. One owner.
class IdentityMask {
 public:
  IdentityMask(Identities identities, std::uint64_t secret)
      : identities_(identities), secret_(secret) {}

  // Letters and digits change, within the hexadecimal digits where all of them are some; what is
  // before the first hyphen of a UUID ("GPU-", "MIG-") stays.
  std::string Text(std::string_view text) const;
  std::string Bytes(std::string_view bytes) const;
  std::uint32_t Process(std::uint32_t pid);
  std::string ProcessName(std::string_view name);

  bool hides() const { return identities_ == Identities::kHidden; }

 private:
  const Identities identities_;
  const std::uint64_t secret_;
  std::map<std::uint32_t, std::uint32_t> processes_;
  std::map<std::string, std::string, std::less<>> names_;
};

// Makes the calls that processes wrote those of a recording: times begin with it, GPUs have small
// numbers, identities are hidden. One owner.
class CallConverter {
 public:
  CallConverter(IdentityMask& mask, std::uint64_t begin) : mask_(mask), begin_(begin) {}

  // Appends the calls. Bytes that are none end the conversion; what is before them counts.
  void Convert(std::string_view calls, std::string& to);

 private:
  void ConvertPart(const Argument& argument, std::string_view text, bool is_output,
                   std::string& part);
  void HideElements(const Argument& argument, std::string& part);
  std::uint32_t Device(std::uint32_t raw);

  IdentityMask& mask_;
  const std::uint64_t begin_;
  std::unordered_map<std::uint32_t, std::uint32_t> devices_;
};

}  // namespace zeus::recording
