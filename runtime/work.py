"""A checked call as work: which rows there are, how many key blocks each has, and the partition of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from qsmla.ir.schedule import KEY_BLOCK
from qsmla.runtime.checks import AttentionCall
from qsmla.runtime.device_array import DeviceArray, kernel_inputs
from qsmla.runtime.devices import KeptArray
from qsmla.runtime.execution import Steps, Work
from qsmla.runtime.fingerprint import check_fingerprint, fingerprint
from qsmla.runtime.kept_plans import KeptPlan, own_plan
from qsmla.runtime.output import Output
from qsmla.runtime.partition import Partition, check_cut, plan_rows
from qsmla.runtime.selection import RowGeometry, choose, row_geometry


@dataclass(frozen=True, eq=False)
class Selection:
    """What a call's rows attend to, as far as planning and running need to know."""

    geometry: RowGeometry
    indices: npt.NDArray[np.int32]
    """[rows, K]; valid ids first."""
    blocks: npt.NDArray[np.int64]
    """[planned rows]: key blocks."""


def select(call: AttentionCall) -> Selection:
    """Count each row's valid ids, in key blocks, and bring them to the front where they are not."""
    geometry = row_geometry(call)
    counts, indices = choose(call, geometry)
    keys = counts[geometry.planned].astype(np.int64) * call.spec.sparse_block_size
    return Selection(geometry, indices, -(-keys // KEY_BLOCK))


def partition(
    call: AttentionCall,
    selection: Selection,
    num_cores: int,
    metadata: npt.NDArray[np.int32] | None = None,
) -> Partition:
    """The partition that `metadata` holds, or a new one over `num_cores`.

    Raises:
        TypeError: `metadata` is no int32 array.
        ValueError: `metadata` was planned for another call; `num_cores` is not in 1..132.
    """
    mark = _mark(call, selection)
    rows_per_batch, first_rows = selection.geometry.rows_per_batch, selection.geometry.first_rows
    if metadata is not None:
        given = check_fingerprint(metadata, mark)
        check_cut(given, selection.blocks, rows_per_batch, first_rows)
        return given
    return plan_rows(selection.blocks, rows_per_batch, num_cores, mark, first_rows=first_rows)


def own_partition(selection: Selection, num_cores: int) -> KeptPlan:
    """The same over `num_cores`, to run at once: nobody will ask which call it was planned for."""
    geometry = selection.geometry
    return own_plan(selection.blocks, geometry.rows_per_batch, num_cores, first_rows=geometry.first_rows)


def _mark(call: AttentionCall, selection: Selection) -> int:
    """What ties a plan to the call."""
    spec = call.spec
    return fingerprint(
        spec.operator,
        {
            "layout_query": spec.layout_query,
            "sparse_block_size": spec.sparse_block_size,
            "sparse_mode": spec.sparse_mode,
            "rows": len(call.query),
            "query_lengths": call.query_lengths,
            "kv_lengths": call.kv_lengths,
            "blocks": selection.blocks,
        },
    )


def work(
    call: AttentionCall,
    selection: Selection,
    output: Output,
    *,
    in_place: bool,
    resident: Mapping[str, DeviceArray],
    steps: Steps,
) -> Work:
    """The call's arrays as the kernel takes them, to be written to `output`.

    Args:
        call: the call.
        selection: what its rows attend to.
        output: takes the rows.
        in_place: whether the device reads the host's memory; arrays it cannot read are then copied once.
        resident: those of query, key and sparse_indices that are on the device.
        steps: what is known of the work from earlier calls with the same partition.
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
        inputs=kernel_inputs(arrays.items(), resident, in_place=in_place, caches=("key",)),
        scale=call.scale,
        heads=call.spec.heads,
        output_row=geometry.planned,
        batch=geometry.planned_batch,
        blocks=selection.blocks,
        first_in_order=geometry.first_in_order,
        output=output,
        steps=steps,
    )
