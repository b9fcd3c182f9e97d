"""How to run: checks, partition, devices, executables, operators."""
