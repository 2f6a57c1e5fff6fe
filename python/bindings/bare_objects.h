#pragma once

namespace zeus::python {

// Makes objects whose __init__() was not called, as by a subclass that forgets it, raise an
// exception when they are used. pybind11 alone would read uninitialised memory.
void RefuseBareObjects();

}  // namespace zeus::python
