// Starts a program of the tarball with the loader and the libraries that lie beside it, so that it
// depends on no library of the machine, not even its C library. It is linked statically.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fail(const char* what, int reason) {
  fprintf(stderr, "zeus: %s: %s\n", what, strerror(reason));
  return 127;
}

// Shortens a path to its folder; returns 0 when there is none above.
static int go_up(char* path) {
  char* const slash = strrchr(path, '/');
  if (slash == NULL) return 0;
  *slash = '\0';
  return 1;
}

int main(int argc, char** argv) {
  char self[4096];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  if (length < 0) return fail("/proc/self/exe cannot be read, is /proc mounted?", errno);
  self[length] = '\0';

  // bin/zeus and lib/zeus/sim/bin/nvidia-smi find the same folder above them.
  char root[sizeof self];
  char loader[sizeof self + 64];
  strcpy(root, self);
  do {
    if (!go_up(root)) return fail("lib/zeus/runtime is not in a folder above this program", ENOENT);
    snprintf(loader, sizeof loader, "%s/lib/zeus/runtime/ld-linux-x86-64.so.2", root);
  } while (access(loader, X_OK) != 0);
  char libraries[sizeof self + 64];
  snprintf(libraries, sizeof libraries, "%s/lib/zeus/runtime", root);
  char program[2 * sizeof self];
  snprintf(program, sizeof program, "%s/lib/zeus/program/%s", root, strrchr(self, '/') + 1);

  char** const words = calloc((size_t)argc + 7, sizeof *words);
  if (words == NULL) return fail("no memory", ENOMEM);
  int count = 0;
  words[count++] = loader;
  words[count++] = "--library-path";
  words[count++] = libraries;
  words[count++] = "--argv0";  // By it the program knows where it is (zeus/base/own_program.h).
  words[count++] = self;
  words[count++] = program;
  for (int i = 1; i < argc; ++i) words[count++] = argv[i];
  execv(loader, words);
  return fail(loader, errno);
}
