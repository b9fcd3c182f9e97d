"""`quant_sparse_flash_mla_metadata`: which core works on which keys of which query row."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from qsmla.ir.schedule import KEY_BLOCK
from qsmla.runtime.attributes import check_integer, refuse
from qsmla.runtime.fingerprint import fingerprint
from qsmla.runtime.partition import NUM_CORES, Partition, check_words, plan_rows
from qsmla.runtime.row_keys import Lengths, MlaAttributes, MlaLengths, row_blocks
from qsmla.runtime.workers import worker_count


def quant_sparse_flash_mla_metadata(
    num_heads_q: int,
    num_heads_kv: int = 1,
    head_dim: int = 512,
    quant_mode: int = 1,
    *,
    cu_seqlens_q: Lengths | None = None,
    cu_seqlens_ori_kv: Lengths | None = None,
    cu_seqlens_cmp_kv: Lengths | None = None,
    seqused_q: Lengths | None = None,
    seqused_ori_kv: Lengths | None = None,
    seqused_cmp_kv: Lengths | None = None,
    cmp_residual_kv: Lengths | None = None,
    ori_topk_length: None = None,
    cmp_topk_length: None = None,
    batch_size: int = 0,
    max_seqlen_q: int = 0,
    max_seqlen_ori_kv: int = 0,
    max_seqlen_cmp_kv: int = 0,
    ori_topk: int = 0,
    cmp_topk: int = 0,
    cmp_ratio: int = 1,
    ori_mask_mode: int = 0,
    cmp_mask_mode: int = 0,
    ori_win_left: int = -1,
    ori_win_right: int = -1,
    layout_q: str = "BSND",
    layout_kv: str = "BSND",
    has_ori_kv: bool = True,
    has_cmp_kv: bool = True,
    num_cores: int | None = None,
    out: NDArray[np.int32] | None = None,
) -> NDArray[np.int32]:
    """Cuts the work of a `quant_sparse_flash_mla` call into contiguous ranges, one a core, of equal load.

    The batch size is the length of seqused_q, else that of cu_seqlens_q less one, else batch_size. The query
    rows of batch b are seqused_q[b], else the difference in cu_seqlens_q, else max_seqlen_q; likewise for the
    original and the compressed keys. Whatever else is given must agree. `Partition.decode` reads the result.

    Args:
        num_heads_q: query heads, 1..128.
        num_heads_kv: 1.
        head_dim: 512.
        quant_mode: 1, one scale a tensor and hifloat8 codes.
        cu_seqlens_q, cu_seqlens_ori_kv, cu_seqlens_cmp_kv: int32 [B + 1], prefix sums from 0; TND only.
        seqused_q, seqused_ori_kv, seqused_cmp_kv: int32 [B], tokens really used.
        cmp_residual_kv: int32 [B], original tokens that compression left over, 0..cmp_ratio - 1; required
            where cmp_kv is masked (cmp_mask_mode 3) and cmp_ratio is not 1.
        ori_topk_length, cmp_topk_length: reserved, None.
        batch_size: used where no array says.
        max_seqlen_q: rows of a batch where no array says. In BSND also the query's S1: rows of a batch behind
            seqused_q[b] are skipped in the output. 0 with seqused_q: the output has no such rows.
        max_seqlen_ori_kv, max_seqlen_cmp_kv: keys of a batch where no array says.
        ori_topk, cmp_topk: selected tokens a row; 0: not sparse.
        cmp_ratio: original tokens in one compressed token.
        ori_mask_mode: 0 none, 3 right-down causal, 4 band.
        cmp_mask_mode: 0 none, 3 right-down causal.
        ori_win_left, ori_win_right: how far the band reaches back and ahead; -1: unlimited.
        layout_q: "BSND" or "TND".
        layout_kv: "BSND", "TND" or "PA_BBND".
        has_ori_kv, has_cmp_kv: whether there is that part; one that is absent counts no keys.
        num_cores: 1..132; None: the workers of the CPU.
        out: int32 [1024], written and returned.

    Returns:
        int32 [1024], the partition in layout version 1.

    Raises:
        TypeError: an argument is of the wrong kind or dtype; the text names it.
        ValueError: an argument is wrong or contradicts another; the text names it.
    """
    for name, reserved in (("ori_topk_length", ori_topk_length), ("cmp_topk_length", cmp_topk_length)):
        if reserved is not None:
            refuse(name, reserved, "None, it is reserved")
    attributes = MlaAttributes(
        num_heads_q=num_heads_q,
        num_heads_kv=num_heads_kv,
        head_dim=head_dim,
        quant_mode=quant_mode,
        ori_topk=ori_topk,
        cmp_topk=cmp_topk,
        cmp_ratio=cmp_ratio,
        ori_mask_mode=ori_mask_mode,
        cmp_mask_mode=cmp_mask_mode,
        ori_win_left=ori_win_left,
        ori_win_right=ori_win_right,
        layout_q=layout_q,
        layout_kv=layout_kv,
        has_ori_kv=has_ori_kv,
        has_cmp_kv=has_cmp_kv,
    )
    lengths = MlaLengths.resolve(
        attributes,
        cu_seqlens_q=cu_seqlens_q,
        cu_seqlens_ori_kv=cu_seqlens_ori_kv,
        cu_seqlens_cmp_kv=cu_seqlens_cmp_kv,
        seqused_q=seqused_q,
        seqused_ori_kv=seqused_ori_kv,
        seqused_cmp_kv=seqused_cmp_kv,
        cmp_residual_kv=cmp_residual_kv,
        batch_size=batch_size,
        max_seqlen_q=max_seqlen_q,
        max_seqlen_ori_kv=max_seqlen_ori_kv,
        max_seqlen_cmp_kv=max_seqlen_cmp_kv,
    )
    if out is not None:
        check_words("out", out)
    return plan_mla(attributes, lengths, num_cores).encode(out)


def plan_mla(attributes: MlaAttributes, lengths: MlaLengths, num_cores: int | None = None) -> Partition:
    """The partition of a `quant_sparse_flash_mla` call whose arguments are checked.

    Raises:
        TypeError, ValueError: `num_cores` is neither 1..132 nor None.
    """
    cores = worker_count() if num_cores is None else num_cores
    cores = check_integer("num_cores", cores, NUM_CORES)
    blocks = row_blocks(attributes, lengths, KEY_BLOCK)
    return plan_rows(
        blocks, lengths.query, cores, mla_fingerprint(attributes, lengths), first_rows=lengths.first_rows
    )


def mla_fingerprint(attributes: MlaAttributes, lengths: MlaLengths) -> int:
    """64 bits over what a `quant_sparse_flash_mla` call's partition depends on, `num_cores` aside."""
    return fingerprint("quant_sparse_flash_mla", vars(attributes) | vars(lengths))
