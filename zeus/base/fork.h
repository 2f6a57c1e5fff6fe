#pragma once

namespace zeus {

// Starts counting forks. Code that must notice that it runs in a fork()ed child calls this once,
// early; further calls cost nothing.
void WatchForks();

// How often this process is a fork()ed copy of one that watched its forks: 0, then 1 in its child,
// 2 in the grandchild. One relaxed load; counted by pthread_atfork, so no system call.
unsigned ForkGeneration();

}  // namespace zeus
