"""GPUs, CPUs and rails: what can be read and set."""
