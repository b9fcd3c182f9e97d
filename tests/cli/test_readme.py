"""The README's examples do what it says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from qsmla.compiler.artifact import Artifact

README = Path(__file__).parents[2].joinpath("README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def test_python_examples(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    shapes = []
    for block in blocks("python"):
        exec(compile(block, "README.md", "exec"), names)
        assert names["output"].dtype == ml_dtypes.bfloat16
        assert names["lse"].shape == names["output"].shape[:-1]
        assert np.isfinite(names["lse"]).all()
        shapes.append(names["output"].shape)
    assert shapes == [(2, 1, 16, 512), (2, 1, 16, 512), (2, 1, 64, 512)]
    assert names["kernel"].spec == Artifact.load("kernel.vmfb").spec


def test_matrix_example(qsmla, kernel_artifact, tmp_path, monkeypatch):
    monkeypatch.setattr("qsmla.compiler.build.build_artifact", lambda work, timeout: kernel_artifact)
    (block,) = blocks("toml")
    (tmp_path / "kernels.toml").write_text(block)
    result = qsmla("compile", "--matrix", tmp_path / "kernels.toml", "--no-cache", "-o", tmp_path / "kernels")
    assert len(result.out.splitlines()) == 2 * 1 * 2 * 3 * 2


@pytest.mark.parametrize("command", re.findall(r"`qsmla (\w+(?: [^`]*)?)`", README))
def test_commands_and_their_options_exist(qsmla, command):
    words = shlex.split(command)
    help_text = qsmla(words[0], "--help").out
    for word in words[1:]:
        if word.startswith("-"):
            assert word in help_text
