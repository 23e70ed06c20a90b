"""The machine: devices, threads, memory, seeds, files, progress and engines."""
