"""The MLIR templates, one idea a file."""
