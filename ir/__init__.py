"""What to compile: the specification of a kernel and its MLIR text."""
