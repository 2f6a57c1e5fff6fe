/* A stranger's program in C: it sees only what is installed. */
#include <stdio.h>
#include <zeus.h>

int main(void) {
  if (zeus_api_version() < ZEUS_API_VERSION) return 1;
  if (zeus_device_count(NULL, NULL) != ZEUS_INVALID_ARGUMENT) return 1;
  printf("C interface %u: %s\n", (unsigned)zeus_api_version(), zeus_last_error());
  return 0;
}
