#pragma once

#include <Python.h>

#include <cstdint>
#include <functional>
#include <string_view>

#include "zeus/base/result.h"

namespace zeus::python {

// Releases the GIL for its lifetime, so that other Python threads can run while this one blocks.
//
// Python ends a daemon thread that reacquires the GIL while the interpreter is ending by
// pthread_exit(), which unwinds the stack. Hence a destructor that may throw, which that of
// pybind11's gil_scoped_release may not. If an exception is already in flight, nothing may throw:
// such a thread waits for the end of the process instead.
class WithoutGil {
 public:
  WithoutGil();
  ~WithoutGil() noexcept(false);
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  const int exceptions_;
  PyThreadState* const state_;
};

// Polls `done` without the GIL until it is true or `seconds` are over; returns whether it became
// true. Ctrl-C ends the wait with KeyboardInterrupt. Throws Failure for a time that is negative or
// NaN.
bool WaitUntil(const std::function<bool()>& done, double seconds);

// Must be called in a handler of an exception, with the GIL held, if C++ continues: an exception
// that is not an Exception, such as KeyboardInterrupt or SystemExit, is raised again as soon as
// Python code runs. Must be the last call of the handler, because even making a text of the
// exception runs Python code.
void KeepInterrupt();

// Returns CurrentPythonError(), and calls KeepInterrupt().
Error CaughtError(std::string_view doing);

// The base of Python objects that have threads, locks or knobs. Before the interpreter ends all
// open ones are closed, the newest first, and each one after those that depend on it.
//
// An object belongs to the process that created it. A forked child has none of its threads and
// maybe some of its locks held, so there it is neither used nor destroyed. All functions must be
// called with the GIL held.
class Closeable {
 public:
  // `upon` is an object on which this one depends; null: none.
  explicit Closeable(const Closeable* upon = nullptr);
  virtual ~Closeable();  // Destructors of derived classes must call Close().
  Closeable(const Closeable&) = delete;
  Closeable& operator=(const Closeable&) = delete;

  // Closes the object; a second call does nothing.
  void Close();
  bool closed() const { return closed_; }
  bool InForkedChild() const;

  // Throws Failure when the object is closed, and in a forked child. `what` names the object in the
  // message: "monitor".
  void CheckOpen(const char* what) const;

  // Returns whether CloseAll() was called because the program is ending.
  static bool Ended();

  // Close everything that is open in this process, or that was created after `first`.
  static void CloseAll();
  static void CloseNewerThan(const Closeable& first);

 protected:
  // Moves the resources out of the object and ends them, without the GIL if that blocks.
  virtual void DoClose() = 0;
  // Moves the resources out and leaks them, because this is a forked child.
  virtual void Abandon() = 0;

 private:
  const Closeable* upon_;
  const unsigned fork_generation_;
  bool closed_ = false;
};

}  // namespace zeus::python
