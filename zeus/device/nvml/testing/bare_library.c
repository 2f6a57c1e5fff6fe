/* A driver that has only what is required, under the oldest names, and sees no GPU. */
int nvmlInit(void) { return 0; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetCount(unsigned* count) {
  *count = 0;
  return 0;
}
int nvmlDeviceGetHandleByIndex(unsigned index, void** device) {
  (void)index;
  (void)device;
  return 2;
}
int nvmlDeviceGetUUID(void* device, char* uuid, unsigned size) {
  (void)device;
  (void)uuid;
  (void)size;
  return 2;
}
