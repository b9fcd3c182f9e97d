"""A checked call as work: which rows there are, how many key blocks each has, and the partition of them."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from qsmla.ir.schedule import KEY_BLOCK
from qsmla.ir.spec import KernelSpec
from qsmla.runtime.checks import AttentionCall
from qsmla.runtime.device_array import DeviceArray, kernel_inputs
from qsmla.runtime.devices import KeptArray
from qsmla.runtime.execution import Work
from qsmla.runtime.fingerprint import check_fingerprint, fingerprint
from qsmla.runtime.kept_plans import KeptPlan, given_plan, own_plan
from qsmla.runtime.output import Output
from qsmla.runtime.partition import Partition, plan_rows
from qsmla.runtime.program import RowOrder
from qsmla.runtime.selection import MOST_ROWS_KEPT, RowGeometry, all_valid, choose, row_geometry
from qsmla.runtime.staging import Staging
from qsmla.runtime.workers import before_closing


@dataclass(frozen=True, eq=False)
class Selection:
    """What a call's rows attend to, as far as planning and running need to know."""

    geometry: RowGeometry
    indices: npt.NDArray[np.int32]
    """[rows, K]; valid ids first."""
    blocks: npt.NDArray[np.int64]
    """[planned rows]: key blocks."""
    blocks_each: int | None = None
    """Key blocks of each planned row, where all have as many."""

    def order(self) -> RowOrder:
        """The planned rows, as a program takes them."""
        geometry = self.geometry
        return RowOrder(geometry.planned, geometry.planned_batch, self.blocks, geometry.first_in_order)


def select(call: AttentionCall) -> Selection:
    """Count each row's valid ids, in key blocks, and bring them to the front where they are not."""
    geometry = row_geometry(call)
    if all_valid(call, geometry):
        each = -(-call.indices.shape[1] * call.spec.sparse_block_size // KEY_BLOCK)
        return Selection(geometry, call.indices, _alike(len(geometry.planned), each), each)
    counts, indices = choose(call, geometry)
    keys = counts[geometry.planned].astype(np.int64) * call.spec.sparse_block_size
    return Selection(geometry, indices, -(-keys // KEY_BLOCK))


@functools.lru_cache(maxsize=16)
def _alike(rows: int, blocks: int) -> npt.NDArray[np.int64]:
    """The same number of blocks for each row; read-only, since other calls have it too."""
    alike = np.full(rows, blocks, np.int64)
    alike.flags.writeable = False
    return alike


def plan_of(selection: Selection, call: AttentionCall, num_cores: int) -> Partition:
    """A partition of the call over `num_cores` cores, for whoever asks for one.

    Raises:
        ValueError: `num_cores` is not in 1..132.
    """
    geometry = selection.geometry
    return plan_rows(
        selection.blocks,
        geometry.rows_per_batch,
        num_cores,
        _mark(call.spec, geometry, selection.blocks),
        first_rows=geometry.first_rows,
    )


def kept_plan(
    call: AttentionCall, selection: Selection, num_cores: int, metadata: npt.NDArray[np.int32] | None
) -> KeptPlan:
    """The plan to run by: the one that `metadata` holds, or one over `num_cores` cores.

    Raises:
        TypeError: `metadata` is no int32 array.
        ValueError: `metadata` was planned for another call, or is damaged.
    """
    geometry, each = selection.geometry, selection.blocks_each
    if each is None or len(call.query) > MOST_ROWS_KEPT:
        rows = (selection.blocks, geometry.rows_per_batch)
        if metadata is None:
            return own_plan(*rows, num_cores, first_rows=geometry.first_rows)
        given = check_fingerprint(metadata, _mark(call.spec, geometry, selection.blocks))
        return given_plan(given, *rows, first_rows=geometry.first_rows)
    if metadata is None:
        return _plan_of_alike(geometry, each, num_cores)
    given = check_fingerprint(metadata, _mark_of_alike(call.spec, geometry, each))
    plan = _plan_of_alike(geometry, each, given.num_cores)
    plan.accept(given)
    return plan


@functools.lru_cache(maxsize=16)
def _plan_of_alike(geometry: RowGeometry, blocks_each: int, num_cores: int) -> KeptPlan:
    """The kept plan of a kept geometry, found without comparing what the two are made of."""
    blocks = _alike(len(geometry.planned), blocks_each)
    return own_plan(blocks, geometry.rows_per_batch, num_cores, first_rows=geometry.first_rows)


# Views must not outlive their devices.
before_closing(_plan_of_alike.cache_clear)


def _mark(spec: KernelSpec, geometry: RowGeometry, blocks: npt.NDArray[np.int64]) -> int:
    """What ties a plan to the call."""
    return fingerprint(
        spec.operator,
        {
            "layout_query": spec.layout_query,
            "sparse_block_size": spec.sparse_block_size,
            "sparse_mode": spec.sparse_mode,
            "rows": len(geometry.batch),
            "query_lengths": geometry.query_lengths.array,
            "kv_lengths": geometry.kv_lengths.array,
            "blocks": blocks,
        },
    )


@functools.lru_cache(maxsize=16)
def _mark_of_alike(spec: KernelSpec, geometry: RowGeometry, blocks_each: int) -> int:
    return _mark(spec, geometry, _alike(len(geometry.planned), blocks_each))


# A geometry has views too.
before_closing(_mark_of_alike.cache_clear)


def work(
    call: AttentionCall,
    selection: Selection,
    output: Output,
    staging: Staging | None,
    resident: Mapping[str, DeviceArray],
) -> Work:
    """The call's arrays as the kernel takes them, to be written to `output`.

    Args:
        call: the call.
        selection: what its rows attend to.
        output: takes the rows.
        staging: takes what a device that reads the host's memory cannot read where it lies; None: the device
            does not.
        resident: those of query, key and sparse_indices that are on the device.
    """
    geometry = selection.geometry
    query, indices = call.query, selection.indices
    if call.spec.layout_query == "BSND":
        requests, extent = call.output_shape[:2]
        query = query.reshape(requests, extent, *query.shape[1:])
        indices = indices.reshape(requests, extent, indices.shape[-1])
    arrays: dict[str, npt.NDArray[Any] | KeptArray] = {
        "query": query,
        "key": call.key,
        "sparse_indices": indices,
    }
    if call.block_table is not None:
        arrays["block_table"] = call.block_table
    arrays |= {"query_lengths": geometry.query_lengths, "kv_lengths": geometry.kv_lengths}
    return Work(
        inputs=kernel_inputs(arrays.items(), resident, staging, caches=("key",)),
        scale=call.scale,
        heads=call.spec.heads,
        output=output,
        staging=staging,
    )
