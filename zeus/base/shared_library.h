#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "zeus/base/result.h"

namespace zeus {

// Whether the file that begins with these bytes is a 64-bit ELF file too short for what its program
// header says is to be loaded. False where that cannot be seen: dlopen() decides about the rest.
bool IsElfCutShort(std::string_view beginning, std::uint64_t file_size);

// A library opened at run time, such as a vendor's, and the required functions that it turned out
// to lack. It stays loaded until the process ends: libraries that keep threads or exit handlers do
// not survive being closed. One owner.
class SharedLibrary {
 public:
  // The library at `path` if the user named one, else the first of the `usual` names that is there.
  // kNotFound (naming the first) when none is, kInvalidArgument when one is there but cannot be
  // loaded. What is named by its path is looked at before it is given to dlopen(), which would wait
  // at a FIFO and die of a file that is cut short.
  static Result<SharedLibrary> Open(const std::optional<std::string>& path,
                                    const std::vector<std::string>& usual);

  // Sets `function` to the first of these symbols that exists, or to null. The caller knows its
  // type.
  template <class Function>
  void FindOptional(Function*& function, std::initializer_list<const char*> symbols) const {
    function = reinterpret_cast<Function*>(FirstOf(symbols));
  }

  // The same for a function without which nothing works: see CheckComplete().
  template <class Function>
  void FindRequired(Function*& function, std::initializer_list<const char*> symbols) {
    FindOptional(function, symbols);
    if (function == nullptr) missing_.emplace_back(*symbols.begin());
  }

  // kInvalidArgument when a required function was missing: the file is not what it should be.
  // `product` is for the message: "… is not NVML: it lacks nvmlInit_v2".
  Status CheckComplete(const char* product) const;

 private:
  SharedLibrary(std::string name, void* handle) : name_(std::move(name)), handle_(handle) {}

  void* FirstOf(std::initializer_list<const char*> symbols) const;

  std::string name_;  // Under which it was opened.
  void* handle_;
  std::vector<std::string> missing_;
};

}  // namespace zeus
