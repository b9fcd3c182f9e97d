"""Reports of failed compilations."""

from __future__ import annotations

import pytest

from qsmla.compiler import diagnostics
from qsmla.compiler.errors import CompileError
from qsmla.compiler.toolchain import Finished

TEXT = "".join(f"line {number}\n" for number in range(1, 31))


def test_numbered_shows_the_lines_around_one():
    assert diagnostics.numbered(TEXT, 10, context=1) == ("   9 | line 9\n> 10 | line 10\n  11 | line 11")
    assert diagnostics.numbered(TEXT, 1, context=1) == ">  1 | line 1\n   2 | line 2"
    assert diagnostics.numbered("a\nb", None) == "  1 | a\n  2 | b"


def test_parse_error_shows_the_template_and_keeps_it(tmp_path, monkeypatch):
    monkeypatch.setattr(diagnostics.tempfile, "tempdir", str(tmp_path))
    text = "module {\n  func.func @f() {\n    return %missing : i32\n  }\n}\n"
    with pytest.raises(CompileError) as caught:
        diagnostics.check_parses(text, "kernel_x")
    error = caught.value
    assert error.summary.startswith(
        "kernel_x renders to MLIR that is wrong at line 3: use of undeclared SSA value name; report in "
    )
    assert "> 3 |     return %missing : i32" in str(error)
    assert "  2 |   func.func @f() {" in str(error)
    assert error.folder is not None
    assert error.folder.parent == tmp_path
    assert (error.folder / "kernel.mlir").read_text() == text
    assert str(error.folder / "kernel.mlir") in str(error)


def test_right_text_passes():
    diagnostics.check_parses("func.func @f() { return }", "kernel_x")


@pytest.mark.parametrize(
    ("finished", "summary"),
    [
        (
            Finished(1, "/tmp/x/kernel.mlir:7:3: error: op is wrong\n", False),
            "iree-compile ended with return code 1 on kernel_x (op is wrong); report in ",
        ),
        (
            Finished(-11, "", False),
            "iree-compile crashed with SIGSEGV (return code -11) on kernel_x; report in ",
        ),
        (Finished(-9, "", True), "iree-compile was killed after 5 s, the timeout, on kernel_x; report in "),
    ],
)
def test_compiler_failure(finished, summary, tmp_path, monkeypatch):
    monkeypatch.setattr(diagnostics.tempfile, "tempdir", str(tmp_path))
    command = ["iree-compile", "a file.mlir", "--flag"]
    error = diagnostics.compile_error({"kernel.mlir": TEXT}, "kernel_x", command, finished, 5.0)
    assert error.summary.startswith(summary)
    assert "\n" not in error.summary
    report = str(error)
    assert "iree-compile 'a file.mlir' --flag" in report
    assert finished.ending in report
    assert (">  7 | line 7" in report) == (finished.returncode == 1)
    assert (finished.stderr.strip() or "(nothing)") in report


def test_long_output_is_cut_in_the_report_but_not_in_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(diagnostics.tempfile, "tempdir", str(tmp_path))
    printed = "first words\n" + "y" * 3000 + "\n" + "some more text\n" * 10_000 + "last words"
    error = diagnostics.compile_error(
        {"kernel.mlir": TEXT}, "kernel_x", ["iree-compile"], Finished(1, printed, False), 5.0
    )
    assert len(str(error)) < 12_000
    assert "first words" in str(error)
    assert "last words" in str(error)
    assert "characters left out" in str(error)
    assert error.folder is not None
    assert printed in (error.folder / "report.txt").read_text()


def test_no_room_for_the_report_still_gives_the_error(tmp_path, monkeypatch):
    monkeypatch.setattr(diagnostics.tempfile, "tempdir", str(tmp_path / "missing"))
    error = diagnostics.compile_error(
        {"kernel.mlir": TEXT}, "kernel_x", ["iree-compile"], Finished(1, "bad", False), 5.0
    )
    assert error.folder is None
    assert "bad" in str(error)
