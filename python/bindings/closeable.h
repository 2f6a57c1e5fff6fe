#pragma once

#include <cstdint>

namespace zeus::python {

// Something with threads, locks or knobs behind a Python object. All that are open are closed
// before the interpreter ends, the newest first, and whatever depends on one is closed before it.
//
// It belongs to the process that made it. A fork()ed child has none of its threads and perhaps some
// of its locks: there it is neither used nor destroyed. All of this with the GIL held.
class Closeable {
 public:
  explicit Closeable(const Closeable* upon = nullptr);
  virtual ~Closeable();  // Derived classes call Close() in theirs.
  Closeable(const Closeable&) = delete;
  Closeable& operator=(const Closeable&) = delete;

  // Ends it; the second time nothing happens.
  void Close();
  bool closed() const { return closed_; }
  bool InForkedChild() const;

  // Throws Failure when it is closed, and in a fork()ed child; `what` is for the message:
  // "monitor".
  void CheckOpen(const char* what) const;

  // Whether CloseAll() was called: the program is ending.
  static bool Ended();

  // Everything that is open in this process, or that was made after `first`.
  static void CloseAll();
  static void CloseNewerThan(const Closeable& first);

 protected:
  // Takes what must end out of the object and ends it, without the GIL where it blocks.
  virtual void DoClose() = 0;
  // Takes it out and leaves it alone: this is a fork()ed child.
  virtual void Abandon() = 0;

 private:
  const Closeable* upon_;
  const unsigned fork_generation_;
  bool closed_ = false;
};

}  // namespace zeus::python
