!query_rows = tensor<?x128x512xi8>
!kv = tensor<?x?x512xi8>
!cache = tensor<?x512xi8>
!indices_rows = tensor<?x?xi32>
!ranges = tensor<?x7xi32> // ori and cmp: cache row of the sequence's token 0, first token seen, end; then ori's key blocks
!descales = tensor<2xf32> // ori, cmp
!item_parts = tensor<?xi32>
!items = tensor<?x3xi32> // query row, batch, key block of the row
!item_keys = tensor<?x256xi32>
!item_query = tensor<?x128x512xbf16>
!item_nope = tensor<?x256x512xbf16>
!item_scores = tensor<?x128x256xf32>
!item_weights = tensor<?x128x256xbf16>
!item_partial = tensor<?x128x512xf32>
!item_per_head = tensor<?x128xf32>
!partial = tensor<?x128x512xf32>
!per_item = tensor<?xf32>
!per_head = tensor<?x128xf32>
!sinks = tensor<128xf32>
!folded = tensor<?x128x512xbf16>

#item_keys = affine_map<(w, k) -> (w, k)>
#item_head_key = affine_map<(w, h, k) -> (w, h, k)>
#item_head_key_to_item = affine_map<(w, h, k) -> (w)>
#item_head_key_to_key = affine_map<(w, h, k) -> (w, k)>
#item_head_key_to_head = affine_map<(w, h, k) -> (w, h)>
#item_key_column = affine_map<(w, k, d) -> (w, k, d)>
#item_key_column_to_key = affine_map<(w, k, d) -> (w, k)>
#row_head = affine_map<(r, h) -> (r, h)>
#row_head_column = affine_map<(r, h, d) -> (r, h, d)>
#row_head_column_to_head = affine_map<(r, h, d) -> (r, h)>
#row_head_to_head = affine_map<(r, h) -> (h)>
#item = affine_map<(w) -> (w)>
#row_head_column_to_row = affine_map<(r, h, d) -> (r)>


module @quant_sparse_flash_mla_ori_dense_cmp_sparse_kv_cache_paged_heads_128 {

// Partial results: sum of exp2(score - maximum) * value, the maximum (scores carry log2(e)), and the sum of the weights.
func.func @attend(
  %query_rows: !query_rows, %ori_kv: !kv, %ori_block_table: tensor<?x?xi32>, %cmp_kv: !kv, %cmp_indices: !indices_rows, %cmp_block_table: tensor<?x?xi32>, %ranges: !ranges, %descales: !descales, %scale: f32, %items: !items
) -> (!partial, !per_head, !per_head) attributes {iree.reflection = {}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero_i32 = arith.constant 0 : i32
  %one_i32 = arith.constant 1 : i32
  %masked = arith.constant -1 : i32
  %zero = arith.constant 0.0 : f32
  %zero_query_dtype = arith.constant 0.0 : bf16
  %minus_infinity = arith.constant 0xFF800000 : f32
  %infinity = arith.constant 0x7F800000 : f32
  %log2_e = arith.constant 1.44269504 : f32
  // The 256 values of hifloat8: exact on every target, NaN codes included.
  %code_table = arith.constant dense<[0x00000000, 0x34800000, 0x35000000, 0x35800000, 0x36000000, 0x36800000, 0x37000000, 0x37800000, 0x3F800000, 0x3F900000, 0x3FA00000, 0x3FB00000, 0x3FC00000, 0x3FD00000, 0x3FE00000, 0x3FF00000, 0x40000000, 0x40100000, 0x40200000, 0x40300000, 0x40400000, 0x40500000, 0x40600000, 0x40700000, 0x3F000000, 0x3F100000, 0x3F200000, 0x3F300000, 0x3F400000, 0x3F500000, 0x3F600000, 0x3F700000, 0x40800000, 0x40900000, 0x40A00000, 0x40B00000, 0x40C00000, 0x40D00000, 0x40E00000, 0x40F00000, 0x41000000, 0x41100000, 0x41200000, 0x41300000, 0x41400000, 0x41500000, 0x41600000, 0x41700000, 0x3E800000, 0x3E900000, 0x3EA00000, 0x3EB00000, 0x3EC00000, 0x3ED00000, 0x3EE00000, 0x3EF00000, 0x3E000000, 0x3E100000, 0x3E200000, 0x3E300000, 0x3E400000, 0x3E500000, 0x3E600000, 0x3E700000, 0x41800000, 0x41A00000, 0x41C00000, 0x41E00000, 0x42000000, 0x42200000, 0x42400000, 0x42600000, 0x42800000, 0x42A00000, 0x42C00000, 0x42E00000, 0x43000000, 0x43200000, 0x43400000, 0x43600000, 0x3D800000, 0x3DA00000, 0x3DC00000, 0x3DE00000, 0x3D000000, 0x3D200000, 0x3D400000, 0x3D600000, 0x3C800000, 0x3CA00000, 0x3CC00000, 0x3CE00000, 0x3C000000, 0x3C200000, 0x3C400000, 0x3C600000, 0x43800000, 0x43C00000, 0x44000000, 0x44400000, 0x44800000, 0x44C00000, 0x45000000, 0x45400000, 0x45800000, 0x45C00000, 0x46000000, 0x46400000, 0x46800000, 0x46C00000, 0x47000000, 0x7F800000, 0x3B800000, 0x3BC00000, 0x3B000000, 0x3B400000, 0x3A800000, 0x3AC00000, 0x3A000000, 0x3A400000, 0x39800000, 0x39C00000, 0x39000000, 0x39400000, 0x38800000, 0x38C00000, 0x38000000, 0x38400000, 0x7FC00000, 0xB4800000, 0xB5000000, 0xB5800000, 0xB6000000, 0xB6800000, 0xB7000000, 0xB7800000, 0xBF800000, 0xBF900000, 0xBFA00000, 0xBFB00000, 0xBFC00000, 0xBFD00000, 0xBFE00000, 0xBFF00000, 0xC0000000, 0xC0100000, 0xC0200000, 0xC0300000, 0xC0400000, 0xC0500000, 0xC0600000, 0xC0700000, 0xBF000000, 0xBF100000, 0xBF200000, 0xBF300000, 0xBF400000, 0xBF500000, 0xBF600000, 0xBF700000, 0xC0800000, 0xC0900000, 0xC0A00000, 0xC0B00000, 0xC0C00000, 0xC0D00000, 0xC0E00000, 0xC0F00000, 0xC1000000, 0xC1100000, 0xC1200000, 0xC1300000, 0xC1400000, 0xC1500000, 0xC1600000, 0xC1700000, 0xBE800000, 0xBE900000, 0xBEA00000, 0xBEB00000, 0xBEC00000, 0xBED00000, 0xBEE00000, 0xBEF00000, 0xBE000000, 0xBE100000, 0xBE200000, 0xBE300000, 0xBE400000, 0xBE500000, 0xBE600000, 0xBE700000, 0xC1800000, 0xC1A00000, 0xC1C00000, 0xC1E00000, 0xC2000000, 0xC2200000, 0xC2400000, 0xC2600000, 0xC2800000, 0xC2A00000, 0xC2C00000, 0xC2E00000, 0xC3000000, 0xC3200000, 0xC3400000, 0xC3600000, 0xBD800000, 0xBDA00000, 0xBDC00000, 0xBDE00000, 0xBD000000, 0xBD200000, 0xBD400000, 0xBD600000, 0xBC800000, 0xBCA00000, 0xBCC00000, 0xBCE00000, 0xBC000000, 0xBC200000, 0xBC400000, 0xBC600000, 0xC3800000, 0xC3C00000, 0xC4000000, 0xC4400000, 0xC4800000, 0xC4C00000, 0xC5000000, 0xC5400000, 0xC5800000, 0xC5C00000, 0xC6000000, 0xC6400000, 0xC6800000, 0xC6C00000, 0xC7000000, 0xFF800000, 0xBB800000, 0xBBC00000, 0xBB000000, 0xBB400000, 0xBA800000, 0xBAC00000, 0xBA000000, 0xBA400000, 0xB9800000, 0xB9C00000, 0xB9000000, 0xB9400000, 0xB8800000, 0xB8C00000, 0xB8000000, 0xB8400000]> : tensor<256xf32>

  %count = tensor.dim %items, %c0 : !items
  %ori_kv_extent_index = tensor.dim %ori_kv, %c1 : !kv
  %ori_kv_extent = arith.index_cast %ori_kv_extent_index : index to i32
  %ori_cache = tensor.collapse_shape %ori_kv [[0, 1], [2]] : !kv into !cache

  %cmp_kv_extent_index = tensor.dim %cmp_kv, %c1 : !kv
  %cmp_kv_extent = arith.index_cast %cmp_kv_extent_index : index to i32
  %cmp_cache = tensor.collapse_shape %cmp_kv [[0, 1], [2]] : !kv into !cache
  %cmp_selected = tensor.dim %cmp_indices, %c1 : !indices_rows
  %cmp_last_selected = arith.subi %cmp_selected, %c1 : index

  // A row's blocks: those of the original part, then those of the compressed one.
  %item_parts_empty = tensor.empty(%count) : !item_parts
  %item_descales_empty = tensor.empty(%count) : !per_item
  %item_parts_computed, %item_descales_computed = linalg.generic {
    indexing_maps = [#item, #item], iterator_types = ["parallel"]
  } outs(%item_parts_empty, %item_descales_empty : !item_parts, !per_item) {
  ^bb0(%unused_p: i32, %unused_d: f32):
    %item = linalg.index 0 : index
    %query_row_i32 = tensor.extract %items[%item, %c0] : !items
    %block_i32 = tensor.extract %items[%item, %c2] : !items
    %query_row = arith.index_cast %query_row_i32 : i32 to index
    %c6 = arith.constant 6 : index
    %ori_blocks = tensor.extract %ranges[%query_row, %c6] : !ranges
    %in_cmp = arith.cmpi sge, %block_i32, %ori_blocks : i32
    %part_i32 = arith.select %in_cmp, %one_i32, %zero_i32 : i32
    %ori_descale = tensor.extract %descales[%c0] : !descales
    %cmp_descale = tensor.extract %descales[%c1] : !descales
    %descale = arith.select %in_cmp, %cmp_descale, %ori_descale : f32
    linalg.yield %part_i32, %descale : i32, f32
  } -> (!item_parts, !per_item)
  %item_parts = iree_tensor_ext.compute_barrier.start %item_parts_computed : !item_parts{%count} -> !item_parts
  %item_descales = iree_tensor_ext.compute_barrier.start %item_descales_computed : !per_item{%count} -> !per_item

  // The cache row behind each key slot of an item, or -1: nothing there that the row attends to.
  %slots_empty = tensor.empty(%count) : !item_keys
  %slots_computed = linalg.generic {
    indexing_maps = [#item_keys], iterator_types = ["parallel", "parallel"]
  } outs(%slots_empty : !item_keys) {
  ^bb0(%unused: i32):
    %item = linalg.index 0 : index
    %query_row_i32 = tensor.extract %items[%item, %c0] : !items
    %batch_i32 = tensor.extract %items[%item, %c1] : !items
    %block_i32 = tensor.extract %items[%item, %c2] : !items
    %query_row = arith.index_cast %query_row_i32 : i32 to index
    %batch = arith.index_cast %batch_i32 : i32 to index
    %part_i32 = tensor.extract %item_parts[%item] : !item_parts
    %in_cmp = arith.cmpi ne, %part_i32, %zero_i32 : i32
    %c6 = arith.constant 6 : index
    %ori_blocks = tensor.extract %ranges[%query_row, %c6] : !ranges
    %blocks_before = arith.select %in_cmp, %ori_blocks, %zero_i32 : i32
    %part_block_i32 = arith.subi %block_i32, %blocks_before : i32

    %key_block = arith.constant 256 : index
    %block = arith.index_cast %part_block_i32 : i32 to index
    %block_start = arith.muli %block, %key_block : index
    %in_block = linalg.index 1 : index
    %slot = arith.addi %block_start, %in_block : index
    %ori_kv_start_at = arith.constant 0 : index
    %ori_kv_start = tensor.extract %ranges[%query_row, %ori_kv_start_at] : !ranges
    %ori_first_at = arith.constant 1 : index
    %ori_first = tensor.extract %ranges[%query_row, %ori_first_at] : !ranges
    %ori_end_at = arith.constant 2 : index
    %ori_end = tensor.extract %ranges[%query_row, %ori_end_at] : !ranges
    %ori_slot_i32 = arith.index_cast %slot : index to i32
    %ori_candidate = arith.addi %ori_slot_i32, %ori_first : i32
    %ori_not_before = arith.cmpi sge, %ori_candidate, %ori_first : i32
    %ori_below_end = arith.cmpi slt, %ori_candidate, %ori_end : i32
    %ori_attended = arith.andi %ori_not_before, %ori_below_end : i1
    %ori_token = arith.select %ori_attended, %ori_candidate, %zero_i32 : i32
    %ori_logical_i32 = arith.divui %ori_token, %ori_kv_extent : i32
    %ori_logical = arith.index_cast %ori_logical_i32 : i32 to index
    %ori_physical = tensor.extract %ori_block_table[%batch, %ori_logical] : tensor<?x?xi32>
    %ori_page_start = arith.muli %ori_physical, %ori_kv_extent : i32
    %ori_in_page = arith.remui %ori_token, %ori_kv_extent : i32
    %ori_row = arith.addi %ori_page_start, %ori_in_page : i32

    %cmp_kv_start_at = arith.constant 3 : index
    %cmp_kv_start = tensor.extract %ranges[%query_row, %cmp_kv_start_at] : !ranges
    %cmp_first_at = arith.constant 4 : index
    %cmp_first = tensor.extract %ranges[%query_row, %cmp_first_at] : !ranges
    %cmp_end_at = arith.constant 5 : index
    %cmp_end = tensor.extract %ranges[%query_row, %cmp_end_at] : !ranges
    %cmp_listed = arith.cmpi ult, %slot, %cmp_selected : index
    %cmp_place = arith.minui %slot, %cmp_last_selected : index
    %cmp_id = tensor.extract %cmp_indices[%query_row, %cmp_place] : !indices_rows
    %cmp_candidate = arith.select %cmp_listed, %cmp_id, %masked : i32
    %cmp_not_before = arith.cmpi sge, %cmp_candidate, %cmp_first : i32
    %cmp_below_end = arith.cmpi slt, %cmp_candidate, %cmp_end : i32
    %cmp_attended = arith.andi %cmp_not_before, %cmp_below_end : i1
    %cmp_token = arith.select %cmp_attended, %cmp_candidate, %zero_i32 : i32
    %cmp_logical_i32 = arith.divui %cmp_token, %cmp_kv_extent : i32
    %cmp_logical = arith.index_cast %cmp_logical_i32 : i32 to index
    %cmp_physical = tensor.extract %cmp_block_table[%batch, %cmp_logical] : tensor<?x?xi32>
    %cmp_page_start = arith.muli %cmp_physical, %cmp_kv_extent : i32
    %cmp_in_page = arith.remui %cmp_token, %cmp_kv_extent : i32
    %cmp_row = arith.addi %cmp_page_start, %cmp_in_page : i32

    %attended = arith.select %in_cmp, %cmp_attended, %ori_attended : i1
    %row = arith.select %in_cmp, %cmp_row, %ori_row : i32


    %slot_row = arith.select %attended, %row, %masked : i32
    linalg.yield %slot_row : i32
  } -> !item_keys
  // Without the barrier IREE fuses this into each of its users and redoes it for every column.
  %slots = iree_tensor_ext.compute_barrier.start %slots_computed : !item_keys{%count} -> !item_keys
  %scale_log2_e = arith.mulf %scale, %log2_e : f32
  // Gather and decode: code -> f32, which bf16 holds exactly. A masked slot is zeros.
  %keys_empty = tensor.empty(%count) : !item_nope
  %keys = linalg.generic {
    indexing_maps = [#item_key_column_to_key, #item_key_column], // slots, keys
    iterator_types = ["parallel", "parallel", "parallel"]
  } ins(%slots : !item_keys) outs(%keys_empty : !item_nope) {
  ^bb0(%slot_row: i32, %unused: bf16):
    %attended = arith.cmpi sge, %slot_row, %zero_i32 : i32
    %row_safe = arith.maxsi %slot_row, %zero_i32 : i32
    %row = arith.index_cast %row_safe : i32 to index
    %column = linalg.index 2 : index
    %item = linalg.index 0 : index
    %part_i32 = tensor.extract %item_parts[%item] : !item_parts
    %in_cmp = arith.cmpi ne, %part_i32, %zero_i32 : i32
    %ori_row = arith.select %in_cmp, %c0, %row : index
    %cmp_row = arith.select %in_cmp, %row, %c0 : index
    %ori_code = tensor.extract %ori_cache[%ori_row, %column] : !cache
    %cmp_code = tensor.extract %cmp_cache[%cmp_row, %column] : !cache
    %code = arith.select %in_cmp, %cmp_code, %ori_code : i8

    %code_index_i32 = arith.extui %code : i8 to i32
    %code_index = arith.index_cast %code_index_i32 : i32 to index
    %value = tensor.extract %code_table[%code_index] : tensor<256xf32>

    %isolated = arith.select %attended, %value, %zero : f32
    %exact = arith.truncf %isolated : f32 to bf16
    linalg.yield %exact : bf16


  } -> !item_nope
  // The query row of each item.
  %item_query_empty = tensor.empty(%count) : !item_query
  %item_query = linalg.generic {
    indexing_maps = [affine_map<(w, h, d) -> (w, h, d)>], iterator_types = ["parallel", "parallel", "parallel"]
  } outs(%item_query_empty : !item_query) {
  ^bb0(%unused: bf16):
    %item = linalg.index 0 : index
    %head = linalg.index 1 : index
    %column = linalg.index 2 : index
    %query_row_i32 = tensor.extract %items[%item, %c0] : !items
    %query_row = arith.index_cast %query_row_i32 : i32 to index
    %element = tensor.extract %query_rows[%query_row, %head, %column] : !query_rows
    %code_index_i32 = arith.extui %element : i8 to i32
    %code_index = arith.index_cast %code_index_i32 : i32 to index
    %value = tensor.extract %code_table[%code_index] : tensor<256xf32>

    %exact = arith.truncf %value : f32 to bf16
    linalg.yield %exact : bf16


  } -> !item_query
  // Scores: Q.K of the codes' values; the descales follow, so that both matmuls see exact operands.
  %scores_empty = tensor.empty(%count) : !item_scores
  %scores_zero = linalg.fill ins(%zero : f32) outs(%scores_empty : !item_scores) -> !item_scores
  %scores_raw = linalg.generic {
    indexing_maps = [
      affine_map<(w, m, n, c) -> (w, m, c)>, // %item_query
      affine_map<(w, m, n, c) -> (w, n, c)>, // %keys
      affine_map<(w, m, n, c) -> (w, m, n)> // %scores_raw
    ],
    iterator_types = ["parallel", "parallel", "parallel", "reduction"]
  } ins(%item_query, %keys : !item_query, !item_nope) outs(%scores_zero : !item_scores) {
  ^bb0(%contract_lhs: bf16, %contract_rhs: bf16, %contract_sum: f32):
    %contract_lhs_f32 = arith.extf %contract_lhs : bf16 to f32
    %contract_rhs_f32 = arith.extf %contract_rhs : bf16 to f32
    %contract_product = arith.mulf %contract_lhs_f32, %contract_rhs_f32 : f32
    %contract_next = arith.addf %contract_sum, %contract_product : f32
    linalg.yield %contract_next : f32
  } -> !item_scores
  // Scale and mask.
  %scores = linalg.generic {
    indexing_maps = [#item_head_key, #item_head_key_to_key, #item_head_key_to_item, #item_head_key],
    iterator_types = ["parallel", "parallel", "parallel"]
  } ins(%scores_raw, %slots, %item_descales : !item_scores, !item_keys, !per_item) outs(%scores_empty : !item_scores) {
  ^bb0(%raw: f32, %slot_row: i32, %item_factor: f32, %unused: f32):
    %is_attended = arith.cmpi sge, %slot_row, %zero_i32 : i32
    %factor = arith.mulf %scale_log2_e, %item_factor : f32
    %scaled = arith.mulf %raw, %factor : f32

    %score = arith.select %is_attended, %scaled, %minus_infinity : f32
    linalg.yield %score : f32
  } -> !item_scores

  // Softmax over the block.
  %item_per_head_empty = tensor.empty(%count) : !item_per_head
  %maximum_start = linalg.fill ins(%minus_infinity : f32) outs(%item_per_head_empty : !item_per_head) -> !item_per_head
  %maximum = linalg.generic {
    indexing_maps = [#item_head_key, #item_head_key_to_head],
    iterator_types = ["parallel", "parallel", "reduction"]
  } ins(%scores : !item_scores) outs(%maximum_start : !item_per_head) {
  ^bb0(%reduce_element: f32, %reduce_so_far: f32):
    %reduce_next = arith.maximumf %reduce_so_far, %reduce_element : f32
    linalg.yield %reduce_next : f32
  } -> !item_per_head
  %weights = linalg.generic {
    indexing_maps = [#item_head_key, #item_head_key_to_head, #item_head_key],
    iterator_types = ["parallel", "parallel", "parallel"]
  } ins(%scores, %maximum : !item_scores, !item_per_head) outs(%scores_empty : !item_scores) {
  ^bb0(%score: f32, %largest: f32, %unused: f32):
      %reference_magnitude = math.absf %largest : f32
      %reference_is_infinite = arith.cmpf oeq, %reference_magnitude, %infinity : f32
      %reference = arith.select %reference_is_infinite, %zero, %largest : f32
    %below = arith.subf %score, %reference : f32
    %weight = math.exp2 %below : f32
    linalg.yield %weight : f32
  } -> !item_scores
  %sum_start = linalg.fill ins(%zero : f32) outs(%item_per_head_empty : !item_per_head) -> !item_per_head
  %sum = linalg.generic {
    indexing_maps = [#item_head_key, #item_head_key_to_head],
    iterator_types = ["parallel", "parallel", "reduction"]
  } ins(%weights : !item_scores) outs(%sum_start : !item_per_head) {
  ^bb0(%reduce_element: f32, %reduce_so_far: f32):
    %reduce_next = arith.addf %reduce_so_far, %reduce_element : f32
    linalg.yield %reduce_next : f32
  } -> !item_per_head
  // Values: the weights rounded to bf16, their sum above from the float32 ones.
  %rounded_empty = tensor.empty(%count) : !item_weights
  %weights_rounded = linalg.generic {
    indexing_maps = [#item_head_key, #item_head_key], iterator_types = ["parallel", "parallel", "parallel"]
  } ins(%weights : !item_scores) outs(%rounded_empty : !item_weights) {
  ^bb0(%weight: f32, %unused: bf16):
    %rounded = arith.truncf %weight : f32 to bf16
    linalg.yield %rounded : bf16


  } -> !item_weights
  %partial_empty = tensor.empty(%count) : !item_partial
  %partial_zero = linalg.fill ins(%zero : f32) outs(%partial_empty : !item_partial) -> !item_partial
  %partial = linalg.generic {
    indexing_maps = [
      affine_map<(w, m, n, c) -> (w, m, c)>, // %weights_rounded
      affine_map<(w, m, n, c) -> (w, c, n)>, // %keys
      affine_map<(w, m, n, c) -> (w, m, n)> // %partial
    ],
    iterator_types = ["parallel", "parallel", "parallel", "reduction"]
  } ins(%weights_rounded, %keys : !item_weights, !item_nope) outs(%partial_zero : !item_partial) {
  ^bb0(%contract_lhs: bf16, %contract_rhs: bf16, %contract_sum: f32):
    %contract_lhs_f32 = arith.extf %contract_lhs : bf16 to f32
    %contract_rhs_f32 = arith.extf %contract_rhs : bf16 to f32
    %contract_product = arith.mulf %contract_lhs_f32, %contract_rhs_f32 : f32
    %contract_next = arith.addf %contract_sum, %contract_product : f32
    linalg.yield %contract_next : f32
  } -> !item_partial
  %values = linalg.generic {
    indexing_maps = [#row_head_column, #row_head_column_to_row, #row_head_column],
    iterator_types = ["parallel", "parallel", "parallel"]
  } ins(%partial, %item_descales : !partial, !per_item) outs(%partial_empty : !partial) {
  ^bb0(%value: f32, %descale: f32, %unused: f32):
    %descaled = arith.mulf %value, %descale : f32
    linalg.yield %descaled : f32
  } -> !partial
  return %values, %maximum, %sum : !partial, !per_head, !per_head
}

// Rows to their outputs and log-sum-exp. %spans: a row's first partial result and how many; %longest: the most any
// row has. One block at a time and in order, so that a row's bits depend on its own blocks alone.
func.func @fold(
  %partial: !partial, %maximum: !per_head, %total: !per_head, %sinks: !sinks, %spans: tensor<?x2xi32>, %longest: i32
) -> (!folded, !per_head) attributes {iree.reflection = {}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero_i32 = arith.constant 0 : i32
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %minus_infinity = arith.constant 0xFF800000 : f32
  %infinity = arith.constant 0x7F800000 : f32
  %log2_e = arith.constant 1.44269504 : f32
  %ln_2 = arith.constant 0.693147180 : f32
  %rows = tensor.dim %spans, %c0 : tensor<?x2xi32>
  %blocks = arith.index_cast %longest : i32 to index

  %per_row_empty = tensor.empty(%rows) : !per_head
  %values_empty = tensor.empty(%rows) : !partial
  %first_maximum = linalg.fill ins(%minus_infinity : f32) outs(%per_row_empty : !per_head) -> !per_head
  %first_total = linalg.fill ins(%zero : f32) outs(%per_row_empty : !per_head) -> !per_head
  %first_values = linalg.fill ins(%zero : f32) outs(%values_empty : !partial) -> !partial
  %row_maximum, %row_total, %row_values = scf.for %block = %c0 to %blocks step %c1
      iter_args(%old_maximum = %first_maximum, %old_total = %first_total, %old_values = %first_values)
      -> (!per_head, !per_head, !partial) {
    %block_i32 = arith.index_cast %block : index to i32

    // How much the row so far and the block weigh against the larger maximum of the two.
    %new_maximum, %new_total, %keep, %add = linalg.generic {
      indexing_maps = [#row_head, #row_head, #row_head, #row_head, #row_head, #row_head],
      iterator_types = ["parallel", "parallel"]
    } ins(%old_maximum, %old_total : !per_head, !per_head)
      outs(%per_row_empty, %per_row_empty, %per_row_empty, %per_row_empty : !per_head, !per_head, !per_head, !per_head) {
    ^bb0(%row_m: f32, %row_t: f32, %unused_m: f32, %unused_t: f32, %unused_k: f32, %unused_a: f32):
      %row = linalg.index 0 : index
      %head = linalg.index 1 : index
      %first = tensor.extract %spans[%row, %c0] : tensor<?x2xi32>
      %count = tensor.extract %spans[%row, %c1] : tensor<?x2xi32>
      %inside = arith.cmpi slt, %block_i32, %count : i32
      %offset = arith.select %inside, %block_i32, %zero_i32 : i32
      %place_i32 = arith.addi %first, %offset : i32
      %place = arith.index_cast %place_i32 : i32 to index
      %block_m = tensor.extract %maximum[%place, %head] : !per_head
      %block_t = tensor.extract %total[%place, %head] : !per_head
      %larger = arith.maximumf %row_m, %block_m : f32
      %reference_magnitude = math.absf %larger : f32
      %reference_is_infinite = arith.cmpf oeq, %reference_magnitude, %infinity : f32
      %reference = arith.select %reference_is_infinite, %zero, %larger : f32
      %row_below = arith.subf %row_m, %reference : f32
      %block_below = arith.subf %block_m, %reference : f32
      %row_factor = math.exp2 %row_below : f32
      %block_factor = math.exp2 %block_below : f32
      %row_share = arith.mulf %row_t, %row_factor : f32
      %block_share = arith.mulf %block_t, %block_factor : f32
      %both = arith.addf %row_share, %block_share : f32
      %next_m = arith.select %inside, %larger, %row_m : f32
      %next_t = arith.select %inside, %both, %row_t : f32
      linalg.yield %next_m, %next_t, %row_factor, %block_factor : f32, f32, f32, f32
    } -> (!per_head, !per_head, !per_head, !per_head)

    %new_values = linalg.generic {
      indexing_maps = [#row_head_column, #row_head_column_to_head, #row_head_column_to_head, #row_head_column],
      iterator_types = ["parallel", "parallel", "parallel"]
    } ins(%old_values, %keep, %add : !partial, !per_head, !per_head) outs(%values_empty : !partial) {
    ^bb0(%row_v: f32, %row_factor: f32, %block_factor: f32, %unused: f32):
      %row = linalg.index 0 : index
      %head = linalg.index 1 : index
      %column = linalg.index 2 : index
      %first = tensor.extract %spans[%row, %c0] : tensor<?x2xi32>
      %count = tensor.extract %spans[%row, %c1] : tensor<?x2xi32>
      %inside = arith.cmpi slt, %block_i32, %count : i32
      %offset = arith.select %inside, %block_i32, %zero_i32 : i32
      %place_i32 = arith.addi %first, %offset : i32
      %place = arith.index_cast %place_i32 : i32 to index
      %block_v = tensor.extract %partial[%place, %head, %column] : !partial
      %row_share = arith.mulf %row_v, %row_factor : f32
      %block_share = arith.mulf %block_v, %block_factor : f32
      %both = arith.addf %row_share, %block_share : f32
      %next_v = arith.select %inside, %both, %row_v : f32
      linalg.yield %next_v : f32
    } -> !partial
    scf.yield %new_maximum, %new_total, %new_values : !per_head, !per_head, !partial
  }

  // A sink is one more logit, which takes weight and adds no value.
  %divisor, %end_maximum, %end_total = linalg.generic {
    indexing_maps = [#row_head, #row_head, #row_head_to_head, #row_head, #row_head, #row_head],
    iterator_types = ["parallel", "parallel"]
  } ins(%row_maximum, %row_total, %sinks : !per_head, !per_head, !sinks)
    outs(%per_row_empty, %per_row_empty, %per_row_empty : !per_head, !per_head, !per_head) {
  ^bb0(%row_m: f32, %row_t: f32, %sink: f32, %unused_d: f32, %unused_m: f32, %unused_t: f32):
    %sink_2 = arith.mulf %sink, %log2_e : f32
    // The values stay as they are, relative to the row's own maximum: a sink that is far above makes them zeros.
    %no_score = arith.cmpf oeq, %row_m, %minus_infinity : f32
    %own = arith.select %no_score, %sink_2, %row_m : f32
      %own_reference_magnitude = math.absf %own : f32
      %own_reference_is_infinite = arith.cmpf oeq, %own_reference_magnitude, %infinity : f32
      %own_reference = arith.select %own_reference_is_infinite, %zero, %own : f32
    %sink_above = arith.subf %sink_2, %own_reference : f32
    %sink_share = math.exp2 %sink_above : f32
    %all = arith.addf %row_t, %sink_share : f32
    // The log-sum-exp is relative to the larger of the two, which does not overflow.
    %larger = arith.maximumf %row_m, %sink_2 : f32
      %reference_magnitude = math.absf %larger : f32
      %reference_is_infinite = arith.cmpf oeq, %reference_magnitude, %infinity : f32
      %reference = arith.select %reference_is_infinite, %zero, %larger : f32
    %row_below = arith.subf %row_m, %reference : f32
    %sink_below = arith.subf %sink_2, %reference : f32
    %row_factor = math.exp2 %row_below : f32
    %sink_weight = math.exp2 %sink_below : f32
    %row_weight = arith.mulf %row_t, %row_factor : f32
    %both = arith.addf %row_weight, %sink_weight : f32
    linalg.yield %all, %larger, %both : f32, f32, f32
  } -> (!per_head, !per_head, !per_head)

  %out_empty = tensor.empty(%rows) : !folded
  %out = linalg.generic {
    indexing_maps = [#row_head_column, #row_head_column_to_head, #row_head_column],
    iterator_types = ["parallel", "parallel", "parallel"]
  } ins(%row_values, %divisor : !partial, !per_head) outs(%out_empty : !folded) {
  ^bb0(%value: f32, %weight_sum: f32, %unused: bf16):
    %quotient = arith.divf %value, %weight_sum : f32
    %rounded = arith.truncf %quotient : f32 to bf16
    linalg.yield %rounded : bf16
  } -> !folded

  %lse = linalg.generic {
    indexing_maps = [#row_head, #row_head, #row_head_to_head, #row_head], iterator_types = ["parallel", "parallel"]
  } ins(%end_maximum, %end_total, %sinks : !per_head, !per_head, !sinks) outs(%per_row_empty : !per_head) {
  ^bb0(%largest: f32, %weight_sum: f32, %sink: f32, %unused: f32):
    %log2_sum = math.log2 %weight_sum : f32
    %lse_2 = arith.addf %largest, %log2_sum : f32
    %lse_e = arith.mulf %lse_2, %ln_2 : f32
    // A finite sink that log2(e) makes infinite is far above every score: it is the log-sum-exp.
    %sink_2 = arith.mulf %sink, %log2_e : f32
    %is_infinite_2 = arith.cmpf oeq, %sink_2, %infinity : f32
    %is_finite = arith.cmpf olt, %sink, %infinity : f32
    %is_all = arith.andi %is_infinite_2, %is_finite : i1
    %lse_or_sink = arith.select %is_all, %sink, %lse_e : f32
    linalg.yield %lse_or_sink : f32
  } -> !per_head
  return %out, %lse : !folded, !per_head
}

// `attend`, to memory of the caller's.
func.func @attend_into(
  %query_rows: !query_rows, %ori_kv: !kv, %ori_block_table: tensor<?x?xi32>, %cmp_kv: !kv, %cmp_indices: !indices_rows, %cmp_block_table: tensor<?x?xi32>, %ranges: !ranges, %descales: !descales, %scale: f32, %items: !items, %storage: !partial {iree.abi.output = 0 : index}
) -> (!partial, !per_head, !per_head) attributes {iree.reflection = {}} {
  %partial, %maximum, %total = call @attend(%query_rows, %ori_kv, %ori_block_table, %cmp_kv, %cmp_indices, %cmp_block_table, %ranges, %descales, %scale, %items)
    : (!query_rows, !kv, tensor<?x?xi32>, !kv, !indices_rows, tensor<?x?xi32>, !ranges, !descales, f32, !items) -> (!partial, !per_head, !per_head)
  return %partial, %maximum, %total : !partial, !per_head, !per_head
}

// Both passes, for rows whose work items are all there.
func.func @attend_rows(
  %query_rows: !query_rows, %ori_kv: !kv, %ori_block_table: tensor<?x?xi32>, %cmp_kv: !kv, %cmp_indices: !indices_rows, %cmp_block_table: tensor<?x?xi32>, %ranges: !ranges, %descales: !descales, %scale: f32, %items: !items, %sinks: !sinks, %spans: tensor<?x2xi32>, %longest: i32
) -> (!folded, !per_head) attributes {iree.reflection = {}} {
  %partial, %maximum, %total = call @attend(%query_rows, %ori_kv, %ori_block_table, %cmp_kv, %cmp_indices, %cmp_block_table, %ranges, %descales, %scale, %items)
    : (!query_rows, !kv, tensor<?x?xi32>, !kv, !indices_rows, tensor<?x?xi32>, !ranges, !descales, f32, !items) -> (!partial, !per_head, !per_head)
  %out, %lse = call @fold(%partial, %maximum, %total, %sinks, %spans, %longest)
    : (!partial, !per_head, !per_head, !sinks, tensor<?x2xi32>, i32) -> (!folded, !per_head)
  return %out, %lse : !folded, !per_head
}
}
