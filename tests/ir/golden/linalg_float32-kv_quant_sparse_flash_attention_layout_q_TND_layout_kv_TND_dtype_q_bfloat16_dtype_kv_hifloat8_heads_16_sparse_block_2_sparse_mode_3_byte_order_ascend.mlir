!query = tensor<?x16x576xbf16>
!query_rows = tensor<?x16x576xbf16>
!key = tensor<?x656xi8>
!cache = tensor<?x656xi8>
!cache_as_query_dtype = tensor<?x328xbf16>
!cache_as_f32 = tensor<?x164xf32>
!indices = tensor<?x?xi32>
!indices_rows = tensor<?x?xi32>
!lengths = tensor<?xi32>
!item_query_nope = tensor<?x16x512xf32>
!item_query_rope = tensor<?x16x64xf32>
!item_rope = tensor<?x256x64xf32>
!items = tensor<?x3xi32> // query row, batch, key block of the row
!item_keys = tensor<?x256xi32>
!item_query = tensor<?x16x576xf32>
!item_nope = tensor<?x256x512xf32>
!item_scores = tensor<?x16x256xf32>
!item_weights = tensor<?x16x256xf32>
!item_partial = tensor<?x16x512xf32>
!item_per_head = tensor<?x16xf32>
!partial = tensor<?x16x512xf32>
!per_item = tensor<?xf32>
!per_head = tensor<?x16xf32>
!sinks = tensor<16xf32>
!folded = tensor<?x16x512xbf16>

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


module @kv_quant_sparse_flash_attention_layout_q_TND_layout_kv_TND_dtype_q_bfloat16_dtype_kv_hifloat8_heads_16_sparse_block_2_sparse_mode_3_byte_order_ascend {

// Partial results: sum of exp2(score - maximum) * value, the maximum (scores carry log2(e)), and the sum of the weights.
func.func @attend(
  %query: !query, %key: !key, %indices: !indices, %query_lengths: !lengths, %kv_lengths: !lengths, %scale: f32, %items: !items
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

  %query_rows = tensor.cast %query : !query to !query_rows
  %indices_rows = tensor.cast %indices : !indices to !indices_rows
  %cache = tensor.cast %key : !key to !cache

  %count = tensor.dim %items, %c0 : !items
  %cache_size = tensor.dim %cache, %c0 : !cache
  %selected = tensor.dim %indices_rows, %c1 : !indices_rows
  %last_selected = arith.subi %selected, %c1 : index

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
    %batch = arith.index_cast %batch_i32 : i32 to index
    %batch_is_first = arith.cmpi eq, %batch, %c0 : index
    %batch_less_one = arith.subi %batch, %c1 : index
    %batch_before = arith.select %batch_is_first, %c0, %batch_less_one : index
    %query_end = tensor.extract %query_lengths[%batch] : !lengths
    %query_before = tensor.extract %query_lengths[%batch_before] : !lengths
    %query_start = arith.select %batch_is_first, %zero_i32, %query_before : i32
    %query_length = arith.subi %query_end, %query_start : i32
    %kv_end = tensor.extract %kv_lengths[%batch] : !lengths
    %kv_before = tensor.extract %kv_lengths[%batch_before] : !lengths
    %kv_start = arith.select %batch_is_first, %zero_i32, %kv_before : i32
    %kv_length = arith.subi %kv_end, %kv_start : i32

    // Right-down causal: the last query row sees the last key.
    %row_in_batch = arith.subi %query_row_i32, %query_start : i32
    %diagonal = arith.subi %kv_length, %query_length : i32
    %seen_before = arith.addi %diagonal, %row_in_batch : i32
    %seen = arith.addi %seen_before, %one_i32 : i32
    %limit = arith.minsi %seen, %kv_length : i32

    // slot -> (place in the selection, token inside the selected block)
    %key_block = arith.constant 256 : index
    %block = arith.index_cast %block_i32 : i32 to index
    %block_start = arith.muli %block, %key_block : index
    %in_block = linalg.index 1 : index
    %slot = arith.addi %block_start, %in_block : index
    %tokens_per_place = arith.constant 2 : index
    %place = arith.divui %slot, %tokens_per_place : index
    %offset_index = arith.remui %slot, %tokens_per_place : index
    %offset = arith.index_cast %offset_index : index to i32
    %listed = arith.cmpi ult, %place, %selected : index
    %place_safe = arith.minui %place, %last_selected : index
    %query_row = arith.index_cast %query_row_i32 : i32 to index
    %id = tensor.extract %indices_rows[%query_row, %place_safe] : !indices_rows

    // An id is compared with the limit by its token number; divided, so that no id overflows.
    %sparse_block_size = arith.constant 2 : i32
    %end_of_ids = arith.ceildivsi %limit, %sparse_block_size : i32
    %not_negative = arith.cmpi sge, %id, %zero_i32 : i32
    %below_end = arith.cmpi slt, %id, %end_of_ids : i32
    %id_valid = arith.andi %not_negative, %below_end : i1
    %id_listed = arith.andi %id_valid, %listed : i1
    %id_safe = arith.select %id_listed, %id, %zero_i32 : i32
    %token_start = arith.muli %id_safe, %sparse_block_size : i32
    %token_any = arith.addi %token_start, %offset : i32
    %below_limit = arith.cmpi slt, %token_any, %limit : i32
    %attended = arith.andi %id_listed, %below_limit : i1
    %token = arith.select %attended, %token_any, %zero_i32 : i32
    %row = arith.addi %kv_start, %token : i32


    %slot_row = arith.select %attended, %row, %masked : i32
    linalg.yield %slot_row : i32
  } -> !item_keys
  // Without the barrier IREE fuses this into each of its users and redoes it for every column.
  %slots = iree_tensor_ext.compute_barrier.start %slots_computed : !item_keys{%count} -> !item_keys
  // Gather and dequantise: code -> f32 (exact), times the f32 scale, rounded to the query dtype. A masked slot is zeros.
  %cache_scales = flow.tensor.bitcast %cache : !cache{%cache_size} -> !cache_as_f32{%cache_size}
  %nope_empty = tensor.empty(%count) : !item_nope
  %nope = linalg.generic {
    indexing_maps = [#item_key_column_to_key, #item_key_column], // slots, nope
    iterator_types = ["parallel", "parallel", "parallel"]
  } ins(%slots : !item_keys) outs(%nope_empty : !item_nope) {
  ^bb0(%slot_row: i32, %unused: f32):
    %attended = arith.cmpi sge, %slot_row, %zero_i32 : i32
    %row_safe = arith.maxsi %slot_row, %zero_i32 : i32
    %row = arith.index_cast %row_safe : i32 to index
    %column = linalg.index 2 : index
    %tile_width = arith.constant 128 : index
    %scale_start = arith.constant 160 : index
    %tile = arith.divui %column, %tile_width : index
    %scale_column = arith.addi %tile, %scale_start : index
    %code = tensor.extract %cache[%row, %column] : !cache
    %tile_scale = tensor.extract %cache_scales[%row, %scale_column] : !cache_as_f32
    %code_index_i32 = arith.extui %code : i8 to i32
    %code_index = arith.index_cast %code_index_i32 : i32 to index
    %value = tensor.extract %code_table[%code_index] : tensor<256xf32>

    %scaled = arith.mulf %value, %tile_scale : f32
    %isolated = arith.select %attended, %scaled, %zero : f32
    // To bfloat16 and back by hand, ties to even: IREE computes bf16 arithmetic in f32, which loses a truncf under an extf.
    %round_bits = arith.bitcast %isolated : f32 to i32
    %round_shift = arith.constant 16 : i32
    %round_upper = arith.shrui %round_bits, %round_shift : i32
    %round_odd = arith.andi %round_upper, %one_i32 : i32
    %round_half = arith.constant 0x7FFF : i32
    %round_bias = arith.addi %round_odd, %round_half : i32
    %round_carried = arith.addi %round_bits, %round_bias : i32
    %round_mask = arith.constant 0xFFFF0000 : i32
    %round_masked = arith.andi %round_carried, %round_mask : i32
    %round_value = arith.bitcast %round_masked : i32 to f32
    %round_is_nan = arith.cmpf uno, %isolated, %isolated : f32
    %rounded = arith.select %round_is_nan, %isolated, %round_value : f32
    linalg.yield %rounded : f32


  } -> !item_nope
  %cache_rope = flow.tensor.bitcast %cache : !cache{%cache_size} -> !cache_as_query_dtype{%cache_size}
  %rope_empty = tensor.empty(%count) : !item_rope
  %rope = linalg.generic {
    indexing_maps = [#item_key_column_to_key, #item_key_column], // slots, rope
    iterator_types = ["parallel", "parallel", "parallel"]
  } ins(%slots : !item_keys) outs(%rope_empty : !item_rope) {
  ^bb0(%slot_row: i32, %unused: f32):
    %attended = arith.cmpi sge, %slot_row, %zero_i32 : i32
    %row_safe = arith.maxsi %slot_row, %zero_i32 : i32
    %row = arith.index_cast %row_safe : i32 to index
    %column = linalg.index 2 : index
    %rope_start = arith.constant 256 : index
    %rope_column = arith.addi %column, %rope_start : index
    %stored = tensor.extract %cache_rope[%row, %rope_column] : !cache_as_query_dtype
    %isolated = arith.select %attended, %stored, %zero_query_dtype : bf16
    %operand = arith.extf %isolated : bf16 to f32
    linalg.yield %operand : f32


  } -> !item_rope
  // The query row of each item.
  %item_query_empty = tensor.empty(%count) : !item_query
  %item_query = linalg.generic {
    indexing_maps = [affine_map<(w, h, d) -> (w, h, d)>], iterator_types = ["parallel", "parallel", "parallel"]
  } outs(%item_query_empty : !item_query) {
  ^bb0(%unused: f32):
    %item = linalg.index 0 : index
    %head = linalg.index 1 : index
    %column = linalg.index 2 : index
    %query_row_i32 = tensor.extract %items[%item, %c0] : !items
    %query_row = arith.index_cast %query_row_i32 : i32 to index
    %element = tensor.extract %query_rows[%query_row, %head, %column] : !query_rows
    %operand = arith.extf %element : bf16 to f32
    linalg.yield %operand : f32


  } -> !item_query  %query_nope = tensor.extract_slice %item_query[0, 0, 0] [%count, 16, 512] [1, 1, 1]
    : !item_query to !item_query_nope
  %query_rope = tensor.extract_slice %item_query[0, 0, 512] [%count, 16, 64] [1, 1, 1]
    : !item_query to !item_query_rope

  // Scores: Q.K, nope columns first, then rope columns.
  %scores_empty = tensor.empty(%count) : !item_scores
  %scores_zero = linalg.fill ins(%zero : f32) outs(%scores_empty : !item_scores) -> !item_scores
  %scores_nope = linalg.generic {
    indexing_maps = [
      affine_map<(w, m, n, c) -> (w, m, c)>, // %query_nope
      affine_map<(w, m, n, c) -> (w, n, c)>, // %nope
      affine_map<(w, m, n, c) -> (w, m, n)> // %scores_nope
    ],
    iterator_types = ["parallel", "parallel", "parallel", "reduction"]
  } ins(%query_nope, %nope : !item_query_nope, !item_nope) outs(%scores_zero : !item_scores) {
  ^bb0(%contract_lhs: f32, %contract_rhs: f32, %contract_sum: f32):
    %contract_product = arith.mulf %contract_lhs, %contract_rhs : f32
    %contract_next = arith.addf %contract_sum, %contract_product : f32
    linalg.yield %contract_next : f32
  } -> !item_scores
  %scores_raw = linalg.generic {
    indexing_maps = [
      affine_map<(w, m, n, c) -> (w, m, c)>, // %query_rope
      affine_map<(w, m, n, c) -> (w, n, c)>, // %rope
      affine_map<(w, m, n, c) -> (w, m, n)> // %scores_raw
    ],
    iterator_types = ["parallel", "parallel", "parallel", "reduction"]
  } ins(%query_rope, %rope : !item_query_rope, !item_rope) outs(%scores_nope : !item_scores) {
  ^bb0(%contract_lhs: f32, %contract_rhs: f32, %contract_sum: f32):
    %contract_product = arith.mulf %contract_lhs, %contract_rhs : f32
    %contract_next = arith.addf %contract_sum, %contract_product : f32
    linalg.yield %contract_next : f32
  } -> !item_scores
  %scale_log2_e = arith.mulf %scale, %log2_e : f32
  // Scale and mask.
  %scores = linalg.generic {
    indexing_maps = [#item_head_key, #item_head_key_to_key, #item_head_key],
    iterator_types = ["parallel", "parallel", "parallel"]
  } ins(%scores_raw, %slots : !item_scores, !item_keys) outs(%scores_empty : !item_scores) {
  ^bb0(%raw: f32, %slot_row: i32, %unused: f32):
    %is_attended = arith.cmpi sge, %slot_row, %zero_i32 : i32
    %scaled = arith.mulf %raw, %scale_log2_e : f32

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
  ^bb0(%weight: f32, %unused: f32):
    // To bfloat16 and back by hand, ties to even: IREE computes bf16 arithmetic in f32, which loses a truncf under an extf.
    %round_bits = arith.bitcast %weight : f32 to i32
    %round_shift = arith.constant 16 : i32
    %round_upper = arith.shrui %round_bits, %round_shift : i32
    %round_odd = arith.andi %round_upper, %one_i32 : i32
    %round_half = arith.constant 0x7FFF : i32
    %round_bias = arith.addi %round_odd, %round_half : i32
    %round_carried = arith.addi %round_bits, %round_bias : i32
    %round_mask = arith.constant 0xFFFF0000 : i32
    %round_masked = arith.andi %round_carried, %round_mask : i32
    %round_value = arith.bitcast %round_masked : i32 to f32
    %round_is_nan = arith.cmpf uno, %weight, %weight : f32
    %rounded = arith.select %round_is_nan, %weight, %round_value : f32
    linalg.yield %rounded : f32

  } -> !item_weights
  %partial_empty = tensor.empty(%count) : !item_partial
  %partial_zero = linalg.fill ins(%zero : f32) outs(%partial_empty : !item_partial) -> !item_partial
  %partial = linalg.generic {
    indexing_maps = [
      affine_map<(w, m, n, c) -> (w, m, c)>, // %weights_rounded
      affine_map<(w, m, n, c) -> (w, c, n)>, // %nope
      affine_map<(w, m, n, c) -> (w, m, n)> // %partial
    ],
    iterator_types = ["parallel", "parallel", "parallel", "reduction"]
  } ins(%weights_rounded, %nope : !item_weights, !item_nope) outs(%partial_zero : !item_partial) {
  ^bb0(%contract_lhs: f32, %contract_rhs: f32, %contract_sum: f32):
    %contract_product = arith.mulf %contract_lhs, %contract_rhs : f32
    %contract_next = arith.addf %contract_sum, %contract_product : f32
    linalg.yield %contract_next : f32
  } -> !item_partial
  return %partial, %maximum, %sum : !partial, !per_head, !per_head
}

// Rows to their outputs and log-sum-exp. %spans: a row's first partial result and how many; %longest: the most any
// row has. One block at a time and in order, so that a row's bits depend on its own blocks alone.
func.func @fold(
  %partial: !partial, %maximum: !per_head, %total: !per_head, %spans: tensor<?x2xi32>, %longest: i32
) -> (!folded, !per_head) attributes {iree.reflection = {}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero_i32 = arith.constant 0 : i32
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %minus_infinity = arith.constant 0xFF800000 : f32
  %infinity = arith.constant 0x7F800000 : f32
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


  %out_empty = tensor.empty(%rows) : !folded
  %out = linalg.generic {
    indexing_maps = [#row_head_column, #row_head_column_to_head, #row_head_column],
    iterator_types = ["parallel", "parallel", "parallel"]
  } ins(%row_values, %row_total : !partial, !per_head) outs(%out_empty : !folded) {
  ^bb0(%value: f32, %weight_sum: f32, %unused: bf16):
    %quotient = arith.divf %value, %weight_sum : f32
    %rounded = arith.truncf %quotient : f32 to bf16
    linalg.yield %rounded : bf16
  } -> !folded

  %lse = linalg.generic {
    indexing_maps = [#row_head, #row_head, #row_head], iterator_types = ["parallel", "parallel"]
  } ins(%row_maximum, %row_total : !per_head, !per_head) outs(%per_row_empty : !per_head) {
  ^bb0(%largest: f32, %weight_sum: f32, %unused: f32):
    %log2_sum = math.log2 %weight_sum : f32
    %lse_2 = arith.addf %largest, %log2_sum : f32
    %lse_e = arith.mulf %lse_2, %ln_2 : f32
    linalg.yield %lse_e : f32
  } -> !per_head
  return %out, %lse : !folded, !per_head
}

// `attend`, to memory of the caller's.
func.func @attend_into(
  %query: !query, %key: !key, %indices: !indices, %query_lengths: !lengths, %kv_lengths: !lengths, %scale: f32, %items: !items, %storage: !partial {iree.abi.output = 0 : index}
) -> (!partial, !per_head, !per_head) attributes {iree.reflection = {}} {
  %partial, %maximum, %total = call @attend(%query, %key, %indices, %query_lengths, %kv_lengths, %scale, %items)
    : (!query, !key, !indices, !lengths, !lengths, f32, !items) -> (!partial, !per_head, !per_head)
  return %partial, %maximum, %total : !partial, !per_head, !per_head
}

// Both passes, for rows whose work items are all there.
func.func @attend_rows(
  %query: !query, %key: !key, %indices: !indices, %query_lengths: !lengths, %kv_lengths: !lengths, %scale: f32, %items: !items, %spans: tensor<?x2xi32>, %longest: i32
) -> (!folded, !per_head) attributes {iree.reflection = {}} {
  %partial, %maximum, %total = call @attend(%query, %key, %indices, %query_lengths, %kv_lengths, %scale, %items)
    : (!query, !key, !indices, !lengths, !lengths, f32, !items) -> (!partial, !per_head, !per_head)
  %out, %lse = call @fold(%partial, %maximum, %total, %spans, %longest)
    : (!partial, !per_head, !per_head, tensor<?x2xi32>, i32) -> (!folded, !per_head)
  return %out, %lse : !folded, !per_head
}
}
