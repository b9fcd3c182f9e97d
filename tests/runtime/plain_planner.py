"""`quant_sparse_flash_mla_metadata` as plain loops over batches, rows and cores: its twin.

It takes correct arguments only, and the fingerprint as a number.
"""

from __future__ import annotations

from typing import Any

KEY_BLOCK = 256
ROW_OVERHEAD = 0

Place = tuple[int, int]
"""A row's place among all rows, and a key block in it."""


def plain_metadata(arguments: dict[str, Any], num_cores: int, fingerprint: int) -> list[int]:
    """The 1024 words, unsigned."""
    query, ori, cmp, residual, first_rows = plain_lengths(arguments)
    blocks = []
    for batch in range(len(query)):
        for row in range(query[batch]):
            ori_keys, cmp_keys = plain_row_keys(
                arguments, query[batch], ori[batch], cmp[batch], residual[batch], row
            )
            blocks.append(-(-ori_keys // KEY_BLOCK) + -(-cmp_keys // KEY_BLOCK))
    return plain_words(blocks, query, first_rows, num_cores, fingerprint, KEY_BLOCK, ROW_OVERHEAD)


def plain_lengths(
    arguments: dict[str, Any],
) -> tuple[list[int], list[int], list[int], list[int], list[int]]:
    """Of each batch: query rows, original keys, compressed keys, residual, first row in the output."""
    used, sums = arguments.get("seqused_q"), arguments.get("cu_seqlens_q")
    if used is not None:
        batches = len(used)
    elif sums is not None:
        batches = len(sums) - 1
    else:
        batches = arguments.get("batch_size", 0)
    parts = []
    for part in ("q", "ori_kv", "cmp_kv"):
        used, sums = arguments.get(f"seqused_{part}"), arguments.get(f"cu_seqlens_{part}")
        lengths = []
        for batch in range(batches):
            if not arguments.get(f"has_{part}", True):
                lengths.append(0)
            elif used is not None:
                lengths.append(int(used[batch]))
            elif sums is not None:
                lengths.append(int(sums[batch + 1]) - int(sums[batch]))
            else:
                lengths.append(arguments.get(f"max_seqlen_{part}", 0))
        parts.append(lengths)
    query, ori, cmp = parts
    residual = arguments.get("cmp_residual_kv")
    residuals = [0 if residual is None else int(residual[batch]) for batch in range(batches)]
    first_rows, packed = [], 0
    for batch in range(batches):
        if arguments.get("cu_seqlens_q") is not None:
            first_rows.append(int(arguments["cu_seqlens_q"][batch]))
        elif arguments.get("layout_q", "BSND") == "BSND" and arguments.get("max_seqlen_q", 0):
            first_rows.append(batch * arguments["max_seqlen_q"])
        else:
            first_rows.append(packed)
        packed += query[batch]
    return query, ori, cmp, residuals, first_rows


def plain_row_keys(
    arguments: dict[str, Any], query: int, ori: int, cmp: int, residual: int, row: int
) -> Place:
    """Original and compressed keys of one row."""
    diagonal = ori - query + row
    first, end = 0, ori
    mask = arguments.get("ori_mask_mode", 0)
    left, right = arguments.get("ori_win_left", -1), arguments.get("ori_win_right", -1)
    if mask == 3:
        end = diagonal + 1
    elif mask == 4:
        first = 0 if left == -1 else diagonal - left
        end = ori if right == -1 else diagonal + right + 1
    ori_keys = max(0, min(end, ori) - max(first, 0))
    cmp_keys = cmp
    if arguments.get("cmp_mask_mode", 0) == 3:
        ratio = arguments.get("cmp_ratio", 1)
        cmp_keys = max(0, min(cmp, (cmp * ratio + residual - query + row + 1) // ratio))
    if arguments.get("ori_topk", 0):
        ori_keys = min(ori_keys, arguments["ori_topk"])
    if arguments.get("cmp_topk", 0):
        cmp_keys = min(cmp_keys, arguments["cmp_topk"])
    return ori_keys, cmp_keys


def plain_words(
    blocks: list[int],
    rows_per_batch: list[int],
    first_rows: list[int],
    num_cores: int,
    fingerprint: int,
    key_block: int,
    overhead: int,
) -> list[int]:
    """The 1024 words for rows of key blocks, unsigned."""
    cuts, loads = plain_cuts(blocks, num_cores, overhead)
    places = []
    for batch, rows in enumerate(rows_per_batch):
        for row in range(rows):
            places.append((batch, row))
    split: list[int] = []
    for row, block in cuts:
        if block and row not in split:
            split.append(row)
    cursors, combines = [], []
    for row, block in cuts:
        slot = sum(blocks[other] for other in split if other < row) + (block if row in split else 0)
        batch, inside = places[row] if row < len(places) else (len(rows_per_batch), 0)
        cursors += [batch, inside, block, slot]
    slots = 0
    for row in split:
        batch, inside = places[row]
        combines += [first_rows[batch] + inside, slots, blocks[row]]
        slots += blocks[row]
    words = [0x314D5351, 1, num_cores, len(rows_per_batch), len(blocks), key_block, slots, len(split)]
    for number in (sum(loads), max(loads), fingerprint):
        words += [number % 2**32, number // 2**32]
    words += [overhead, 0, *cursors, *combines]
    return words + [0] * (1024 - len(words))


def plain_cuts(blocks: list[int], num_cores: int, overhead: int) -> tuple[list[Place], list[int]]:
    """Where each core begins, and the end; and each core's load."""
    total = 0
    for count in blocks:
        total += count + overhead if count else 0
    load = max(-(-total // num_cores), overhead + 1) if total else 0
    earliest = earliest_places(blocks, num_cores, load, overhead)
    while any(blocks[: earliest[0][0]]) or earliest[0][1]:
        load += 1
        earliest = earliest_places(blocks, num_cores, load, overhead)
    cuts, loads = [(0, 0)], []
    for core in range(num_cores):
        place, done = walk(blocks, cuts[-1], load, overhead, earliest[core + 1])
        cuts.append(place)
        loads.append(done)
    return cuts, loads


def walk(blocks: list[int], start: Place, load: int, overhead: int, earliest: Place) -> tuple[Place, int]:
    """The place a core reaches from `start`, and its load."""
    row, block = start
    left = load
    while row < len(blocks):
        todo = blocks[row] - block
        if todo == 0:
            row += 1
            continue
        if overhead + todo <= left:
            left -= overhead + todo
            row, block = row + 1, 0
            continue
        could_stay_whole = block == 0 and overhead + todo <= load and (row, 0) >= earliest
        if left > overhead and not could_stay_whole:
            block += left - overhead
            left = 0
        break
    return (row, block), load - left


def earliest_places(blocks: list[int], num_cores: int, load: int, overhead: int) -> list[Place]:
    """For each core, and the end: the earliest place from which it and those behind it can do the rest."""
    places = [(len(blocks), 0)]
    for _ in range(num_cores):
        row, block = places[-1]
        left = load
        while True:
            if block == 0:
                if row == 0:
                    break
                row -= 1
                block = blocks[row]
                if block == 0:
                    continue
            if overhead + block <= left:
                left -= overhead + block
                block = 0
                continue
            if left > overhead:
                block -= left - overhead
            if block == blocks[row]:
                row, block = row + 1, 0
            break
        places.append((row, block))
    places.reverse()
    return places
