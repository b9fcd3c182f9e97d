from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from matplotlib.colors import to_rgb
from matplotlib.image import imread
from numpy.typing import NDArray
from typer.testing import CliRunner

from qsmla.cli import plot_partition
from qsmla.cli.metadata import metadata
from qsmla.runtime.metadata import quant_sparse_flash_mla_metadata
from qsmla.runtime.npz import save_npz
from qsmla.runtime.partition import Partition, plan_rows

ARGUMENTS: dict[str, Any] = {
    "num_heads_q": 64,
    "cu_seqlens_q": [0, 2, 2, 5],
    "seqused_ori_kv": [3000, 7, 900],
    "max_seqlen_cmp_kv": 1000,
    "cmp_residual_kv": [1, 0, 3],
    "cmp_ratio": 4,
    "cmp_mask_mode": 3,
    "layout_q": "TND",
    "layout_kv": "PA_BBND",
    "num_cores": 3,
}
LENGTHS = {name for name, value in ARGUMENTS.items() if isinstance(value, list)}

APP = typer.Typer(pretty_exceptions_enable=False)
APP.command()(metadata)


def run(*words: str | Path) -> str:
    result = CliRunner().invoke(APP, list(map(str, words)), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def as_options(arguments: dict[str, Any]) -> list[str]:
    words = []
    for name, value in arguments.items():
        text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
        words += [f"--{name.replace('_', '-')}", text]
    return words


def as_json_file(arguments: dict[str, Any], folder: Path) -> Path:
    path = folder / "arguments.json"
    path.write_text(json.dumps(arguments))
    return path


def as_npz_file(arguments: dict[str, Any], folder: Path) -> Path:
    path = folder / "arguments.npz"
    save_npz(path, **arguments)
    return path


def planned(**changed: Any) -> Partition:
    arguments = {
        name: np.array(value, np.int32) if name in LENGTHS else value for name, value in ARGUMENTS.items()
    }
    return Partition.decode(quant_sparse_flash_mla_metadata(**arguments | changed))


@pytest.mark.parametrize("source", ["options", "json", "npz"])
def test_json_holds_the_partition_of_options_and_files(source: str, tmp_path: Path) -> None:
    if source == "options":
        words: list[Any] = as_options(ARGUMENTS)
    else:
        words = [(as_json_file if source == "json" else as_npz_file)(ARGUMENTS, tmp_path)]
    partition = planned()
    shown = json.loads(run(*words, "--json"))
    for name in ("num_cores", "batch_size", "rows", "key_block", "row_overhead", "slots", "total_load"):
        assert shown[name] == getattr(partition, name)
    assert shown["largest_load"] == partition.largest_load == max(core["load"] for core in shown["cores"])
    assert shown["total_load"] == sum(core["load"] for core in shown["cores"])
    assert shown["balance"] == partition.balance
    assert int(shown["fingerprint"], 16) == partition.fingerprint
    for core, (start, end) in zip(shown["cores"], partition.ranges, strict=True):
        assert (core["start"], core["end"]) == (list(start[:3]), list(end[:3]))
        assert core["first_slot"] == start.slot
    assert shown["split_rows"] == [combine._asdict() for combine in partition.combines] != []


def test_options_override_the_file(tmp_path: Path) -> None:
    source = as_json_file(ARGUMENTS, tmp_path)
    shown = json.loads(run(source, "--num-cores", "2", "--no-cmp-kv", "--json"))
    expected = planned(num_cores=2, has_cmp_kv=False)
    assert (shown["num_cores"], shown["total_load"]) == (2, expected.total_load)
    assert int(shown["fingerprint"], 16) == expected.fingerprint


def test_tables_show_cores_and_split_rows() -> None:
    # Rows of 2 and 10 blocks: core 0 does row 0:0 and 4 blocks of row 1:0, core 1 the other 6.
    lengths = ["--seqused-q", "1,1,0", "--seqused-ori-kv", "300,2560,1"]
    text = run("--num-heads-q", "1", *lengths, "--num-cores", "2")
    cells = [
        [cell.strip() for cell in line.strip("│").split("│")] for line in text.splitlines() if "│" in line
    ]
    assert cells == [
        ["0", "0:0", "1:0 block 4", "2", "6", "6", "100.0%"],
        ["1", "1:0 block 4", "3:0", "1", "6", "6", "100.0%"],
        ["1", "0..9", "0..1"],
    ]
    assert "2 rows in 3 batches over 2 cores: largest load 6 blocks of 256 keys" in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "num_heads_q is missing"),
        (["--num-heads-q", "0"], "num_heads_q is 0; allowed: 1..128"),
        (["--num-heads-q", "1", "--seqused-q", "1,x"], "seqused_q is '1,x'; allowed: whole numbers"),
        (["--num-heads-q", "1", "--seqused-q", "1,1", "--batch-size", "3"], "batch_size, seqused_q say 3, 2"),
        (["--num-heads-q", "1", "--layout-kv", "PA"], "layout_kv is 'PA'; allowed: BSND, TND, PA_BBND"),
    ],
)
def test_wrong_options_are_refused_by_name(words: list[str], message: str) -> None:
    result = CliRunner().invoke(APP, words)
    assert result.exception is not None
    assert message in str(result.exception)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1]", "holds a JSON list; allowed: an object"),
        ("{", "is neither an .npz file nor readable JSON"),
        ('{"num_heads_q": 1, "seqlens": [1]}', "holds 'seqlens', no argument; allowed: num_heads_q"),
        ('{"num_heads_q": 1, "seqused_q": [1.5]}', "seqused_q"),
    ],
)
def test_wrong_files_are_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "arguments.json"
    path.write_text(text)
    result = CliRunner().invoke(APP, [str(path)])
    assert message in str(result.exception)


def test_bars_stack_up_to_the_loads() -> None:
    blocks, rows_per_batch = np.array([3, 0, 9, 1, 14, 0]), np.array([2, 2, 2])
    partition = plan_rows(blocks, rows_per_batch, 4, 0, row_overhead=1)
    pieces = partition.pieces(blocks, rows_per_batch)
    bars = plot_partition.bars_of(partition, pieces)
    keyed = pieces.blocks > 0
    assert (bars.top - bars.bottom).tolist() == (pieces.blocks[keyed] + 1).tolist()
    assert bars.row.tolist() == pieces.row[keyed].tolist()
    for core, load in enumerate(pieces.loads.tolist()):
        mine = bars.core == core
        assert bars.bottom[mine].tolist() == [0, *bars.top[mine].tolist()[:-1]]
        assert bars.top[mine].max() == load
    assert bars.row[bars.split].tolist() == [row for row in bars.row.tolist() if np.sum(bars.row == row) > 1]
    assert bars.split.any()


def test_too_many_bars_share_one_where_rows_are_whole() -> None:
    blocks, rows_per_batch = np.full(7000, 3), np.array([7000])
    partition = plan_rows(blocks, rows_per_batch, 3, 0)
    pieces = partition.pieces(blocks, rows_per_batch)
    bars = plot_partition.bars_of(partition, pieces)
    assert len(bars.core) < 10
    for core, load in enumerate(pieces.loads.tolist()):
        mine = bars.core == core
        assert np.sum(bars.top[mine] - bars.bottom[mine]) == bars.top[mine].max() == load


def colours_of(path: Path) -> set[tuple[int, ...]]:
    return set(
        map(tuple, np.unique((imread(path)[..., :3] * 255).round().astype(int).reshape(-1, 3), axis=0))
    )


def colour(name: str) -> tuple[int, ...]:
    return tuple(round(part * 255) for part in to_rgb(name))


@pytest.mark.parametrize(("num_cores", "width"), [(3, 8), (132, 18)])
def test_plot_draws_whole_and_split_rows(num_cores: int, width: int, tmp_path: Path) -> None:
    kv = np.exp(np.random.default_rng(0).uniform(0, np.log(131072), 64)).astype(int)
    source = as_npz_file(
        {"num_heads_q": 128, "seqused_q": np.ones(64, np.int32), "seqused_ori_kv": kv}, tmp_path
    )
    path = tmp_path / "loads.png"
    run(source, "--num-cores", str(num_cores), "--plot", path)
    assert imread(path).shape[:2] == (6 * 130, pytest.approx(width * 130, abs=40))
    drawn = colours_of(path)
    assert {colour("#c4c4c4"), colour("#dcdcdc"), colour("#56b4e9"), colour("black")} <= drawn


def areas_of(pixels: NDArray[Any], names: dict[str, str]) -> str:
    """The letters of those colours that fill an area; a few pixels of text may have any grey."""
    return "".join(
        letter for letter, name in names.items() if (pixels == colour(name)).all(axis=-1).sum() > 150
    )


@pytest.mark.parametrize(
    ("lengths", "num_cores", "entries", "colours"),
    [
        # One row of each kind; one row that is split; rows that are not; two that are; none with keys.
        ("300,2560", 2, ["row on one core", "1 split row (batch:row), of one colour on all its cores"], "wb"),
        ("2560", 2, ["1 split row (batch:row), of one colour on all its cores"], "b"),
        ("600,600,600,600", 4, ["row on one core"], "w"),
        ("2560,2560", 3, ["2 split rows (batch:row), each of one colour on all its cores"], "bo"),
        ("0,0", 3, [], ""),
    ],
)
def test_the_legend_speaks_of_what_is_drawn(
    lengths: str, num_cores: int, entries: list[str], colours: str, tmp_path: Path
) -> None:
    """Swatches have colours of the picture, and what there is not has no entry."""
    ones = ",".join("1" for _ in lengths.split(","))
    words = ["--seqused-q", ones, "--seqused-ori-kv", lengths, "--num-cores", str(num_cores)]
    run("--num-heads-q", "1", *words, "--plot", tmp_path / "loads.svg")
    texts = re.findall(r"<!-- (.*) -->", (tmp_path / "loads.svg").read_text())
    legend = [text for text in texts if "row on one core" in text or "split row" in text]
    assert legend == entries
    assert "ideal: mean load" in texts
    run("--num-heads-q", "1", *words, "--plot", tmp_path / "loads.png")
    pixels = (imread(tmp_path / "loads.png")[..., :3] * 255).round().astype(int)
    names = {"w": "#c4c4c4", "b": "#56b4e9", "o": "#e69f00"}
    # The legend lies above the bars; its swatches have the colours of the first bar of each kind.
    assert areas_of(pixels[75:], names) == colours
    assert areas_of(pixels[:75], names) == colours.replace("o", "")


def test_one_of_a_thing_is_in_the_singular() -> None:
    lengths = ["--seqused-q", "1", "--seqused-ori-kv", "200"]
    last = run("--num-heads-q", "1", *lengths, "--num-cores", "1").splitlines()[-1]
    assert last.startswith("Partition of 1 row in 1 batch over 1 core: ")
    assert last.endswith("0 split rows in 0 slots")


def test_a_plot_goes_where_it_is_told(tmp_path: Path) -> None:
    lengths = ["--num-heads-q", "1", "--seqused-q", "1,1", "--seqused-ori-kv", "300,2560", "--num-cores", "2"]
    run(*lengths, "--plot", str(tmp_path / "plain"))
    assert (tmp_path / "plain").read_bytes().startswith(b"\x89PNG")
    result = CliRunner().invoke(APP, [*lengths, "--plot", str(tmp_path)])
    assert result.exit_code != 0
    assert [path.name for path in tmp_path.iterdir()] == ["plain"]
