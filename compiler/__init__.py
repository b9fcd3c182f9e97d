"""How to compile: targets, the build, artifacts and their cache."""
