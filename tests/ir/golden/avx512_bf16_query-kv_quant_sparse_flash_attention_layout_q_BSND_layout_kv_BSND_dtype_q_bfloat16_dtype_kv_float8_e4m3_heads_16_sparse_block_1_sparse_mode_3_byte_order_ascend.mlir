!query = tensor<?x?x16x576xbf16>
!query_rows = tensor<?x16x576xbf16>
!key = tensor<?x?x656xi8>
!cache = tensor<?x656xi8>
!cache_as_query_dtype = tensor<?x328xbf16>
!cache_as_f32 = tensor<?x164xf32>
!indices = tensor<?x?x?xi32>
!indices_rows = tensor<?x?xi32>
!lengths = tensor<?xi32>
!item_query_nope = tensor<?x16x512xbf16>
!item_query_rope = tensor<?x16x64xbf16>
!item_rope = tensor<?x256x64xbf16>
!items = tensor<?x3xi32> // query row, batch, key block of the row
!item_keys = tensor<?x256xi32>
!item_query = tensor<?x16x576xbf16>
!item_nope = tensor<?x256x512xbf16>
!item_scores = tensor<?x16x256xf32>
!item_weights = tensor<?x16x256xbf16>
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


module @kv_quant_sparse_flash_attention_layout_q_BSND_layout_kv_BSND_dtype_q_bfloat16_dtype_kv_float8_e4m3_heads_16_sparse_block_1_sparse_mode_3_byte_order_ascend {

stream.executable private @attend_avx512_bf16 {
  stream.executable.export public @items workgroups(%items: index) -> (index, index, index) {
    %c1 = arith.constant 1 : index
    stream.return %items, %c1, %c1 : index, index, index
  }
  builtin.module {
    func.func @items(
      %query_binding: !stream.binding, %cache_binding: !stream.binding,
      %slots_binding: !stream.binding, %items_binding: !stream.binding,
      %rows: index, %cache_size: index,
      %count: index, %scale_log2_e: f32,
      %values_binding: !stream.binding, %maximum_binding: !stream.binding, %total_binding: !stream.binding
    ) attributes {translation_info = #iree_codegen.translation_info<pipeline = #iree_codegen.no_pipeline>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %lanes = arith.constant 16 : index
      %columns = arith.constant 288 : index
      %nope = arith.constant 512 : index
      %key_block = arith.constant 256 : index
      %key_step = arith.constant 16 : index
      %zero_i32 = arith.constant 0 : i32
      %masked = arith.constant -1 : i32
      %zero = arith.constant 0.0 : f32
      %minus_infinity = arith.constant 0xFF800000 : f32
      %no_elements = arith.constant dense<0> : vector<16xi32>
      %zeros = arith.constant dense<0.0> : vector<16xf32>
      %minus_infinities = arith.constant dense<0xFF800000> : vector<16xf32>
      %infinities = arith.constant dense<0x7F800000> : vector<16xf32>
      %least_power = arith.constant dense<-126.0> : vector<16xf32>
      %largest_power = arith.constant dense<127.0> : vector<16xf32>
      %rounder = arith.constant dense<12582912.0> : vector<16xf32>
      %exp2_0 = arith.constant dense<1.0> : vector<16xf32>
      %exp2_1 = arith.constant dense<0.693147180559945> : vector<16xf32>
      %exp2_2 = arith.constant dense<0.240226506959101> : vector<16xf32>
      %exp2_3 = arith.constant dense<0.0555041086648216> : vector<16xf32>
      %exp2_4 = arith.constant dense<0.00961812910762848> : vector<16xf32>
      %exp2_5 = arith.constant dense<0.00133335581464284> : vector<16xf32>
      %exp2_6 = arith.constant dense<0.000154035303933816> : vector<16xf32>
      %ones_i32 = arith.constant dense<1> : vector<16xi32>
      %sixteens = arith.constant dense<16> : vector<16xi32>
      %mantissa_bits = arith.constant dense<23> : vector<16xi32>
      %half_of_bfloat16 = arith.constant dense<0x7FFF> : vector<16xi32>
      %upper_half = arith.constant dense<0xFFFF0000> : vector<16xi32>
      %slots = stream.binding.subspan %slots_binding[%c0] : !stream.binding -> memref<?x256xi32>{%count}
      %items = stream.binding.subspan %items_binding[%c0] : !stream.binding -> memref<?x3xi32>{%count}
      %values = stream.binding.subspan %values_binding[%c0] : !stream.binding -> memref<?x16x512xf32>{%count}
      %maxima = stream.binding.subspan %maximum_binding[%c0] : !stream.binding -> memref<?x16xf32>{%count}
      %totals = stream.binding.subspan %total_binding[%c0] : !stream.binding -> memref<?x16xf32>{%count}
      %item = stream.dispatch.workgroup.id[0] : index
      %query_row_i32 = memref.load %items[%item, %c0] : memref<?x3xi32>
      %query_row = arith.index_cast %query_row_i32 : i32 to index
      %width = arith.constant 576 : index
      %nan = arith.constant 0x7FC00000 : f32
      %rope_at = arith.constant 256 : index
      %query = stream.binding.subspan %query_binding[%c0] : !stream.binding -> memref<?x16x576xi16>{%rows}
      %cache = stream.binding.subspan %cache_binding[%c0] : !stream.binding -> memref<?x656xi8>{%cache_size}
      %cache_short = stream.binding.subspan %cache_binding[%c0] : !stream.binding -> memref<?x328xi16>{%cache_size}
      %run = arith.constant 32 : index
      %e4m3_place = arith.constant dense<7> : vector<32xi16>
      %e4m3_bits = arith.constant dense<0xBF80> : vector<32xi16>
      %e4m3_sign = arith.constant dense<0x8000> : vector<32xi16>
      %e4m3_nan = arith.constant dense<0xBF80> : vector<32xi16>
      %nan_words = arith.constant dense<0x7E00> : vector<32xi16>
      %e4m3_factor = arith.constant dense<256.0> : vector<16xf32>

      %score_factor = arith.addf %scale_log2_e, %zero : f32
      %score_factor_lanes = vector.broadcast %score_factor : f32 to vector<16xf32>

      // Key slots behind the last one that the row attends to cost nothing.
      %last = scf.for %k = %c0 to %key_block step %c1 iter_args(%so_far = %c0) -> (index) {
        %slot = memref.load %slots[%item, %k] : memref<?x256xi32>
        %attended = arith.cmpi sge, %slot, %zero_i32 : i32
        %behind = arith.addi %k, %c1 : index
        %next = arith.select %attended, %behind, %so_far : index
        scf.yield %next : index
      }
      // A row without keys gets one pass, which makes it zeros.
      %passes_end = arith.maxui %last, %c1 : index
      %pass = arith.constant 64 : index

      %keys = "memref.alloca"() <{alignment = 64 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<64x304xi32>
      %ahead = arith.constant 8 : index
      %last_slot = arith.constant 255 : index
      %paired = "memref.alloca"() <{alignment = 64 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<32x528xi32>
      %scores = "memref.alloca"() <{alignment = 64 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<64x16xf32>
      %weights = "memref.alloca"() <{alignment = 64 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<32x16xi32>
      %query_rows = "memref.alloca"() <{alignment = 64 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<16x304xi32>
      %packed = "memref.alloca"() <{alignment = 64 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<1x288x16xi32>
      %factors = "memref.alloca"() <{alignment = 64 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<16xf32>
      %group = arith.constant 16 : index
      %groups = arith.constant 1 : index
      // Where the groups do not come out even, the last one does some heads of the one before again.
      %last_group = arith.constant 0 : index

      scf.for %g = %c0 to %groups step %c1 {
        %group_start = arith.muli %g, %group : index
        %first_head = arith.minui %group_start, %last_group : index
        scf.for %v = %c0 to %group step %lanes {
          %head = arith.addi %first_head, %v : index
          vector.store %minus_infinities, %maxima[%item, %head] : memref<?x16xf32>, vector<16xf32>
          vector.store %zeros, %totals[%item, %head] : memref<?x16xf32>, vector<16xf32>
        }

        // The group's queries, column by column.
        scf.for %h = %c0 to %group step %c1 {
          %head = arith.addi %first_head, %h : index
          scf.for %d = %c0 to %width step %lanes {
            %stored = vector.load %query[%query_row, %head, %d] : memref<?x16x576xi16>, vector<16xi16>
          %stored_pairs = vector.bitcast %stored : vector<16xi16> to vector<8xi32>
          %stored_column = arith.divui %d, %c2 : index
          vector.store %stored_pairs, %query_rows[%h, %stored_column] : memref<16x304xi32>, vector<8xi32>

          }
        }
        scf.for %h = %c0 to %group step %lanes {
          scf.for %d = %c0 to %columns step %lanes {
            %place0 = arith.constant 0 : index
            %h0 = arith.addi %h, %place0 : index
            %by_head0 = vector.load %query_rows[%h0, %d] : memref<16x304xi32>, vector<16xi32>
            %place1 = arith.constant 1 : index
            %h1 = arith.addi %h, %place1 : index
            %by_head1 = vector.load %query_rows[%h1, %d] : memref<16x304xi32>, vector<16xi32>
            %place2 = arith.constant 2 : index
            %h2 = arith.addi %h, %place2 : index
            %by_head2 = vector.load %query_rows[%h2, %d] : memref<16x304xi32>, vector<16xi32>
            %place3 = arith.constant 3 : index
            %h3 = arith.addi %h, %place3 : index
            %by_head3 = vector.load %query_rows[%h3, %d] : memref<16x304xi32>, vector<16xi32>
            %place4 = arith.constant 4 : index
            %h4 = arith.addi %h, %place4 : index
            %by_head4 = vector.load %query_rows[%h4, %d] : memref<16x304xi32>, vector<16xi32>
            %place5 = arith.constant 5 : index
            %h5 = arith.addi %h, %place5 : index
            %by_head5 = vector.load %query_rows[%h5, %d] : memref<16x304xi32>, vector<16xi32>
            %place6 = arith.constant 6 : index
            %h6 = arith.addi %h, %place6 : index
            %by_head6 = vector.load %query_rows[%h6, %d] : memref<16x304xi32>, vector<16xi32>
            %place7 = arith.constant 7 : index
            %h7 = arith.addi %h, %place7 : index
            %by_head7 = vector.load %query_rows[%h7, %d] : memref<16x304xi32>, vector<16xi32>
            %place8 = arith.constant 8 : index
            %h8 = arith.addi %h, %place8 : index
            %by_head8 = vector.load %query_rows[%h8, %d] : memref<16x304xi32>, vector<16xi32>
            %place9 = arith.constant 9 : index
            %h9 = arith.addi %h, %place9 : index
            %by_head9 = vector.load %query_rows[%h9, %d] : memref<16x304xi32>, vector<16xi32>
            %place10 = arith.constant 10 : index
            %h10 = arith.addi %h, %place10 : index
            %by_head10 = vector.load %query_rows[%h10, %d] : memref<16x304xi32>, vector<16xi32>
            %place11 = arith.constant 11 : index
            %h11 = arith.addi %h, %place11 : index
            %by_head11 = vector.load %query_rows[%h11, %d] : memref<16x304xi32>, vector<16xi32>
            %place12 = arith.constant 12 : index
            %h12 = arith.addi %h, %place12 : index
            %by_head12 = vector.load %query_rows[%h12, %d] : memref<16x304xi32>, vector<16xi32>
            %place13 = arith.constant 13 : index
            %h13 = arith.addi %h, %place13 : index
            %by_head13 = vector.load %query_rows[%h13, %d] : memref<16x304xi32>, vector<16xi32>
            %place14 = arith.constant 14 : index
            %h14 = arith.addi %h, %place14 : index
            %by_head14 = vector.load %query_rows[%h14, %d] : memref<16x304xi32>, vector<16xi32>
            %place15 = arith.constant 15 : index
            %h15 = arith.addi %h, %place15 : index
            %by_head15 = vector.load %query_rows[%h15, %d] : memref<16x304xi32>, vector<16xi32>
          %by_column_1_0 = vector.shuffle %by_head0, %by_head1 [0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30] : vector<16xi32>, vector<16xi32>
          %by_column_1_1 = vector.shuffle %by_head0, %by_head1 [1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31] : vector<16xi32>, vector<16xi32>
          %by_column_1_2 = vector.shuffle %by_head2, %by_head3 [0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30] : vector<16xi32>, vector<16xi32>
          %by_column_1_3 = vector.shuffle %by_head2, %by_head3 [1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31] : vector<16xi32>, vector<16xi32>
          %by_column_1_4 = vector.shuffle %by_head4, %by_head5 [0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30] : vector<16xi32>, vector<16xi32>
          %by_column_1_5 = vector.shuffle %by_head4, %by_head5 [1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31] : vector<16xi32>, vector<16xi32>
          %by_column_1_6 = vector.shuffle %by_head6, %by_head7 [0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30] : vector<16xi32>, vector<16xi32>
          %by_column_1_7 = vector.shuffle %by_head6, %by_head7 [1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31] : vector<16xi32>, vector<16xi32>
          %by_column_1_8 = vector.shuffle %by_head8, %by_head9 [0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30] : vector<16xi32>, vector<16xi32>
          %by_column_1_9 = vector.shuffle %by_head8, %by_head9 [1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31] : vector<16xi32>, vector<16xi32>
          %by_column_1_10 = vector.shuffle %by_head10, %by_head11 [0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30] : vector<16xi32>, vector<16xi32>
          %by_column_1_11 = vector.shuffle %by_head10, %by_head11 [1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31] : vector<16xi32>, vector<16xi32>
          %by_column_1_12 = vector.shuffle %by_head12, %by_head13 [0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30] : vector<16xi32>, vector<16xi32>
          %by_column_1_13 = vector.shuffle %by_head12, %by_head13 [1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31] : vector<16xi32>, vector<16xi32>
          %by_column_1_14 = vector.shuffle %by_head14, %by_head15 [0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30] : vector<16xi32>, vector<16xi32>
          %by_column_1_15 = vector.shuffle %by_head14, %by_head15 [1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31] : vector<16xi32>, vector<16xi32>
          %by_column_2_0 = vector.shuffle %by_column_1_0, %by_column_1_2 [0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29] : vector<16xi32>, vector<16xi32>
          %by_column_2_2 = vector.shuffle %by_column_1_0, %by_column_1_2 [2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31] : vector<16xi32>, vector<16xi32>
          %by_column_2_1 = vector.shuffle %by_column_1_1, %by_column_1_3 [0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29] : vector<16xi32>, vector<16xi32>
          %by_column_2_3 = vector.shuffle %by_column_1_1, %by_column_1_3 [2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31] : vector<16xi32>, vector<16xi32>
          %by_column_2_4 = vector.shuffle %by_column_1_4, %by_column_1_6 [0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29] : vector<16xi32>, vector<16xi32>
          %by_column_2_6 = vector.shuffle %by_column_1_4, %by_column_1_6 [2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31] : vector<16xi32>, vector<16xi32>
          %by_column_2_5 = vector.shuffle %by_column_1_5, %by_column_1_7 [0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29] : vector<16xi32>, vector<16xi32>
          %by_column_2_7 = vector.shuffle %by_column_1_5, %by_column_1_7 [2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31] : vector<16xi32>, vector<16xi32>
          %by_column_2_8 = vector.shuffle %by_column_1_8, %by_column_1_10 [0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29] : vector<16xi32>, vector<16xi32>
          %by_column_2_10 = vector.shuffle %by_column_1_8, %by_column_1_10 [2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31] : vector<16xi32>, vector<16xi32>
          %by_column_2_9 = vector.shuffle %by_column_1_9, %by_column_1_11 [0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29] : vector<16xi32>, vector<16xi32>
          %by_column_2_11 = vector.shuffle %by_column_1_9, %by_column_1_11 [2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31] : vector<16xi32>, vector<16xi32>
          %by_column_2_12 = vector.shuffle %by_column_1_12, %by_column_1_14 [0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29] : vector<16xi32>, vector<16xi32>
          %by_column_2_14 = vector.shuffle %by_column_1_12, %by_column_1_14 [2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31] : vector<16xi32>, vector<16xi32>
          %by_column_2_13 = vector.shuffle %by_column_1_13, %by_column_1_15 [0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29] : vector<16xi32>, vector<16xi32>
          %by_column_2_15 = vector.shuffle %by_column_1_13, %by_column_1_15 [2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31] : vector<16xi32>, vector<16xi32>
          %by_column_4_0 = vector.shuffle %by_column_2_0, %by_column_2_4 [0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27] : vector<16xi32>, vector<16xi32>
          %by_column_4_4 = vector.shuffle %by_column_2_0, %by_column_2_4 [4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31] : vector<16xi32>, vector<16xi32>
          %by_column_4_1 = vector.shuffle %by_column_2_1, %by_column_2_5 [0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27] : vector<16xi32>, vector<16xi32>
          %by_column_4_5 = vector.shuffle %by_column_2_1, %by_column_2_5 [4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31] : vector<16xi32>, vector<16xi32>
          %by_column_4_2 = vector.shuffle %by_column_2_2, %by_column_2_6 [0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27] : vector<16xi32>, vector<16xi32>
          %by_column_4_6 = vector.shuffle %by_column_2_2, %by_column_2_6 [4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31] : vector<16xi32>, vector<16xi32>
          %by_column_4_3 = vector.shuffle %by_column_2_3, %by_column_2_7 [0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27] : vector<16xi32>, vector<16xi32>
          %by_column_4_7 = vector.shuffle %by_column_2_3, %by_column_2_7 [4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31] : vector<16xi32>, vector<16xi32>
          %by_column_4_8 = vector.shuffle %by_column_2_8, %by_column_2_12 [0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27] : vector<16xi32>, vector<16xi32>
          %by_column_4_12 = vector.shuffle %by_column_2_8, %by_column_2_12 [4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31] : vector<16xi32>, vector<16xi32>
          %by_column_4_9 = vector.shuffle %by_column_2_9, %by_column_2_13 [0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27] : vector<16xi32>, vector<16xi32>
          %by_column_4_13 = vector.shuffle %by_column_2_9, %by_column_2_13 [4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31] : vector<16xi32>, vector<16xi32>
          %by_column_4_10 = vector.shuffle %by_column_2_10, %by_column_2_14 [0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27] : vector<16xi32>, vector<16xi32>
          %by_column_4_14 = vector.shuffle %by_column_2_10, %by_column_2_14 [4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31] : vector<16xi32>, vector<16xi32>
          %by_column_4_11 = vector.shuffle %by_column_2_11, %by_column_2_15 [0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27] : vector<16xi32>, vector<16xi32>
          %by_column_4_15 = vector.shuffle %by_column_2_11, %by_column_2_15 [4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31] : vector<16xi32>, vector<16xi32>
          %by_column0 = vector.shuffle %by_column_4_0, %by_column_4_8 [0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23] : vector<16xi32>, vector<16xi32>
          %by_column8 = vector.shuffle %by_column_4_0, %by_column_4_8 [8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31] : vector<16xi32>, vector<16xi32>
          %by_column1 = vector.shuffle %by_column_4_1, %by_column_4_9 [0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23] : vector<16xi32>, vector<16xi32>
          %by_column9 = vector.shuffle %by_column_4_1, %by_column_4_9 [8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31] : vector<16xi32>, vector<16xi32>
          %by_column2 = vector.shuffle %by_column_4_2, %by_column_4_10 [0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23] : vector<16xi32>, vector<16xi32>
          %by_column10 = vector.shuffle %by_column_4_2, %by_column_4_10 [8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31] : vector<16xi32>, vector<16xi32>
          %by_column3 = vector.shuffle %by_column_4_3, %by_column_4_11 [0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23] : vector<16xi32>, vector<16xi32>
          %by_column11 = vector.shuffle %by_column_4_3, %by_column_4_11 [8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31] : vector<16xi32>, vector<16xi32>
          %by_column4 = vector.shuffle %by_column_4_4, %by_column_4_12 [0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23] : vector<16xi32>, vector<16xi32>
          %by_column12 = vector.shuffle %by_column_4_4, %by_column_4_12 [8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31] : vector<16xi32>, vector<16xi32>
          %by_column5 = vector.shuffle %by_column_4_5, %by_column_4_13 [0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23] : vector<16xi32>, vector<16xi32>
          %by_column13 = vector.shuffle %by_column_4_5, %by_column_4_13 [8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31] : vector<16xi32>, vector<16xi32>
          %by_column6 = vector.shuffle %by_column_4_6, %by_column_4_14 [0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23] : vector<16xi32>, vector<16xi32>
          %by_column14 = vector.shuffle %by_column_4_6, %by_column_4_14 [8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31] : vector<16xi32>, vector<16xi32>
          %by_column7 = vector.shuffle %by_column_4_7, %by_column_4_15 [0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23] : vector<16xi32>, vector<16xi32>
          %by_column15 = vector.shuffle %by_column_4_7, %by_column_4_15 [8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31] : vector<16xi32>, vector<16xi32>

            %d0 = arith.addi %d, %place0 : index
            vector.store %by_column0, %packed[%g, %d0, %h] : memref<1x288x16xi32>, vector<16xi32>
            %d1 = arith.addi %d, %place1 : index
            vector.store %by_column1, %packed[%g, %d1, %h] : memref<1x288x16xi32>, vector<16xi32>
            %d2 = arith.addi %d, %place2 : index
            vector.store %by_column2, %packed[%g, %d2, %h] : memref<1x288x16xi32>, vector<16xi32>
            %d3 = arith.addi %d, %place3 : index
            vector.store %by_column3, %packed[%g, %d3, %h] : memref<1x288x16xi32>, vector<16xi32>
            %d4 = arith.addi %d, %place4 : index
            vector.store %by_column4, %packed[%g, %d4, %h] : memref<1x288x16xi32>, vector<16xi32>
            %d5 = arith.addi %d, %place5 : index
            vector.store %by_column5, %packed[%g, %d5, %h] : memref<1x288x16xi32>, vector<16xi32>
            %d6 = arith.addi %d, %place6 : index
            vector.store %by_column6, %packed[%g, %d6, %h] : memref<1x288x16xi32>, vector<16xi32>
            %d7 = arith.addi %d, %place7 : index
            vector.store %by_column7, %packed[%g, %d7, %h] : memref<1x288x16xi32>, vector<16xi32>
            %d8 = arith.addi %d, %place8 : index
            vector.store %by_column8, %packed[%g, %d8, %h] : memref<1x288x16xi32>, vector<16xi32>
            %d9 = arith.addi %d, %place9 : index
            vector.store %by_column9, %packed[%g, %d9, %h] : memref<1x288x16xi32>, vector<16xi32>
            %d10 = arith.addi %d, %place10 : index
            vector.store %by_column10, %packed[%g, %d10, %h] : memref<1x288x16xi32>, vector<16xi32>
            %d11 = arith.addi %d, %place11 : index
            vector.store %by_column11, %packed[%g, %d11, %h] : memref<1x288x16xi32>, vector<16xi32>
            %d12 = arith.addi %d, %place12 : index
            vector.store %by_column12, %packed[%g, %d12, %h] : memref<1x288x16xi32>, vector<16xi32>
            %d13 = arith.addi %d, %place13 : index
            vector.store %by_column13, %packed[%g, %d13, %h] : memref<1x288x16xi32>, vector<16xi32>
            %d14 = arith.addi %d, %place14 : index
            vector.store %by_column14, %packed[%g, %d14, %h] : memref<1x288x16xi32>, vector<16xi32>
            %d15 = arith.addi %d, %place15 : index
            vector.store %by_column15, %packed[%g, %d15, %h] : memref<1x288x16xi32>, vector<16xi32>
          }
        }
      }

      scf.for %pass_start = %c0 to %passes_end step %pass {
        %left = arith.subi %last, %pass_start : index
        %keys_here = arith.minui %left, %pass : index
        %key_steps = arith.ceildivui %keys_here, %key_step : index
        %key_end = arith.muli %key_steps, %key_step : index
        %is_first = arith.cmpi eq, %pass_start, %c0 : index
        // The rows lie anywhere in memory. All are touched at once, so that their pages are looked up side by side.
        %touched_end = arith.addi %key_end, %ahead : index
        scf.for %k = %c0 to %touched_end step %c1 {
          %any_place = arith.addi %pass_start, %k : index
          %place = arith.minui %any_place, %last_slot : index
          %slot = memref.load %slots[%item, %place] : memref<?x256xi32>
          %slot_or_first = arith.maxsi %slot, %zero_i32 : i32
          %row = arith.index_cast %slot_or_first : i32 to index
        memref.prefetch %cache[%row, %c0], read, locality<3>, data : memref<?x656xi8>
        }
      scf.for %k = %c0 to %key_end step %c1 {
        %place = arith.addi %pass_start, %k : index
        %in_block = arith.cmpi ult, %place, %key_block : index
        %slot_place = arith.select %in_block, %place, %c0 : index
        %slot_any = memref.load %slots[%item, %slot_place] : memref<?x256xi32>
        %slot = arith.select %in_block, %slot_any, %masked : i32
        %attended = arith.cmpi sge, %slot, %zero_i32 : i32
        scf.if %attended {
          %row = arith.index_cast %slot : i32 to index
          // One is asked for some keys before it is needed, line by line between the work.
          %any_place_ahead = arith.addi %place, %ahead : index
          %place_ahead = arith.minui %any_place_ahead, %last_slot : index
          %slot_ahead = memref.load %slots[%item, %place_ahead] : memref<?x256xi32>
          %attended_ahead = arith.cmpi sge, %slot_ahead, %zero_i32 : i32
          %slot_or_same = arith.select %attended_ahead, %slot_ahead, %slot : i32
          %row_ahead = arith.index_cast %slot_or_same : i32 to index
          %line0 = arith.constant 0 : index
          memref.prefetch %cache[%row_ahead, %line0], read, locality<3>, data : memref<?x656xi8>
          %line1 = arith.constant 64 : index
          memref.prefetch %cache[%row_ahead, %line1], read, locality<3>, data : memref<?x656xi8>
          %line2 = arith.constant 128 : index
          memref.prefetch %cache[%row_ahead, %line2], read, locality<3>, data : memref<?x656xi8>

          %scale_column0 = arith.constant 640 : index
          %scale_bytes0 = vector.load %cache[%row, %scale_column0] : memref<?x656xi8>, vector<4xi8>
          %scale_vector0 = vector.bitcast %scale_bytes0 : vector<4xi8> to vector<1xf32>
          %stored_scale0 = vector.extract %scale_vector0[0] : f32 from vector<1xf32>
          // Whatever the payload of a NaN is, from here on it is the one that rounding keeps.
          %scale_is_nan0 = arith.cmpf uno, %stored_scale0, %stored_scale0 : f32
          %tile_scale0 = arith.select %scale_is_nan0, %nan, %stored_scale0 : f32
          %tile_scale_lanes0 = vector.broadcast %tile_scale0 : f32 to vector<16xf32>
          %tile_start0 = arith.constant 0 : index
          %tile_end0 = arith.constant 128 : index
          scf.for %d = %tile_start0 to %tile_end0 step %run {
              %decoded_offset0 = arith.constant 0 : index
              %decoded_place0 = arith.addi %d, %decoded_offset0 : index
              %decoded_codes0 = vector.load %cache[%row, %decoded_place0] : memref<?x656xi8>, vector<32xi8>
              %decoded_codes0_words = arith.extsi %decoded_codes0 : vector<32xi8> to vector<32xi16>
              %decoded_codes0_placed = arith.shli %decoded_codes0_words, %e4m3_place : vector<32xi16>
              %decoded_codes0_finite = arith.andi %decoded_codes0_placed, %e4m3_bits : vector<32xi16>
              %decoded_codes0_magnitude = arith.ori %decoded_codes0_finite, %e4m3_sign : vector<32xi16>
              %decoded_codes0_is_nan = arith.cmpi eq, %decoded_codes0_magnitude, %e4m3_nan : vector<32xi16>
              %decoded_codes0_bits = arith.select %decoded_codes0_is_nan, %nan_words, %decoded_codes0_finite : vector<32xi1>, vector<32xi16>
              %decoded_codes0_halves = vector.bitcast %decoded_codes0_bits : vector<32xi16> to vector<32xf16>
              %decoded_codes0_half0 = vector.shuffle %decoded_codes0_halves, %decoded_codes0_halves [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15] : vector<32xf16>, vector<32xf16>
              %decoded_codes0_small0 = arith.extf %decoded_codes0_half0 : vector<16xf16> to vector<16xf32>
              %decoded0 = arith.mulf %decoded_codes0_small0, %e4m3_factor : vector<16xf32>
              %decoded_codes0_half1 = vector.shuffle %decoded_codes0_halves, %decoded_codes0_halves [16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31] : vector<32xf16>, vector<32xf16>
              %decoded_codes0_small1 = arith.extf %decoded_codes0_half1 : vector<16xf16> to vector<16xf32>
              %decoded1 = arith.mulf %decoded_codes0_small1, %e4m3_factor : vector<16xf32>


            %scaled0 = arith.mulf %decoded0, %tile_scale_lanes0 : vector<16xf32>
            %offset0 = arith.constant 0 : index
            %d0 = arith.addi %d, %offset0 : index
          %scaled0_short_bfloat16 = llvm.call_intrinsic "llvm.x86.avx512bf16.cvtneps2bf16.512"(%scaled0) : (vector<16xf32>) -> vector<16xbf16>
          %scaled0_short = vector.bitcast %scaled0_short_bfloat16 : vector<16xbf16> to vector<16xi16>

          %scaled0_short_pairs = vector.bitcast %scaled0_short : vector<16xi16> to vector<8xi32>
          %scaled0_short_column = arith.divui %d0, %c2 : index
          vector.store %scaled0_short_pairs, %keys[%k, %scaled0_short_column] : memref<64x304xi32>, vector<8xi32>


            %scaled1 = arith.mulf %decoded1, %tile_scale_lanes0 : vector<16xf32>
            %offset1 = arith.constant 16 : index
            %d1 = arith.addi %d, %offset1 : index
          %scaled1_short_bfloat16 = llvm.call_intrinsic "llvm.x86.avx512bf16.cvtneps2bf16.512"(%scaled1) : (vector<16xf32>) -> vector<16xbf16>
          %scaled1_short = vector.bitcast %scaled1_short_bfloat16 : vector<16xbf16> to vector<16xi16>

          %scaled1_short_pairs = vector.bitcast %scaled1_short : vector<16xi16> to vector<8xi32>
          %scaled1_short_column = arith.divui %d1, %c2 : index
          vector.store %scaled1_short_pairs, %keys[%k, %scaled1_short_column] : memref<64x304xi32>, vector<8xi32>


          }
          %line3 = arith.constant 192 : index
          memref.prefetch %cache[%row_ahead, %line3], read, locality<3>, data : memref<?x656xi8>
          %line4 = arith.constant 256 : index
          memref.prefetch %cache[%row_ahead, %line4], read, locality<3>, data : memref<?x656xi8>
          %line5 = arith.constant 320 : index
          memref.prefetch %cache[%row_ahead, %line5], read, locality<3>, data : memref<?x656xi8>

          %scale_column1 = arith.constant 644 : index
          %scale_bytes1 = vector.load %cache[%row, %scale_column1] : memref<?x656xi8>, vector<4xi8>
          %scale_vector1 = vector.bitcast %scale_bytes1 : vector<4xi8> to vector<1xf32>
          %stored_scale1 = vector.extract %scale_vector1[0] : f32 from vector<1xf32>
          // Whatever the payload of a NaN is, from here on it is the one that rounding keeps.
          %scale_is_nan1 = arith.cmpf uno, %stored_scale1, %stored_scale1 : f32
          %tile_scale1 = arith.select %scale_is_nan1, %nan, %stored_scale1 : f32
          %tile_scale_lanes1 = vector.broadcast %tile_scale1 : f32 to vector<16xf32>
          %tile_start1 = arith.constant 128 : index
          %tile_end1 = arith.constant 256 : index
          scf.for %d = %tile_start1 to %tile_end1 step %run {
              %decoded_offset0 = arith.constant 0 : index
              %decoded_place0 = arith.addi %d, %decoded_offset0 : index
              %decoded_codes0 = vector.load %cache[%row, %decoded_place0] : memref<?x656xi8>, vector<32xi8>
              %decoded_codes0_words = arith.extsi %decoded_codes0 : vector<32xi8> to vector<32xi16>
              %decoded_codes0_placed = arith.shli %decoded_codes0_words, %e4m3_place : vector<32xi16>
              %decoded_codes0_finite = arith.andi %decoded_codes0_placed, %e4m3_bits : vector<32xi16>
              %decoded_codes0_magnitude = arith.ori %decoded_codes0_finite, %e4m3_sign : vector<32xi16>
              %decoded_codes0_is_nan = arith.cmpi eq, %decoded_codes0_magnitude, %e4m3_nan : vector<32xi16>
              %decoded_codes0_bits = arith.select %decoded_codes0_is_nan, %nan_words, %decoded_codes0_finite : vector<32xi1>, vector<32xi16>
              %decoded_codes0_halves = vector.bitcast %decoded_codes0_bits : vector<32xi16> to vector<32xf16>
              %decoded_codes0_half0 = vector.shuffle %decoded_codes0_halves, %decoded_codes0_halves [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15] : vector<32xf16>, vector<32xf16>
              %decoded_codes0_small0 = arith.extf %decoded_codes0_half0 : vector<16xf16> to vector<16xf32>
              %decoded0 = arith.mulf %decoded_codes0_small0, %e4m3_factor : vector<16xf32>
              %decoded_codes0_half1 = vector.shuffle %decoded_codes0_halves, %decoded_codes0_halves [16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31] : vector<32xf16>, vector<32xf16>
              %decoded_codes0_small1 = arith.extf %decoded_codes0_half1 : vector<16xf16> to vector<16xf32>
              %decoded1 = arith.mulf %decoded_codes0_small1, %e4m3_factor : vector<16xf32>


            %scaled0 = arith.mulf %decoded0, %tile_scale_lanes1 : vector<16xf32>
            %offset0 = arith.constant 0 : index
            %d0 = arith.addi %d, %offset0 : index
          %scaled0_short_bfloat16 = llvm.call_intrinsic "llvm.x86.avx512bf16.cvtneps2bf16.512"(%scaled0) : (vector<16xf32>) -> vector<16xbf16>
          %scaled0_short = vector.bitcast %scaled0_short_bfloat16 : vector<16xbf16> to vector<16xi16>

          %scaled0_short_pairs = vector.bitcast %scaled0_short : vector<16xi16> to vector<8xi32>
          %scaled0_short_column = arith.divui %d0, %c2 : index
          vector.store %scaled0_short_pairs, %keys[%k, %scaled0_short_column] : memref<64x304xi32>, vector<8xi32>


            %scaled1 = arith.mulf %decoded1, %tile_scale_lanes1 : vector<16xf32>
            %offset1 = arith.constant 16 : index
            %d1 = arith.addi %d, %offset1 : index
          %scaled1_short_bfloat16 = llvm.call_intrinsic "llvm.x86.avx512bf16.cvtneps2bf16.512"(%scaled1) : (vector<16xf32>) -> vector<16xbf16>
          %scaled1_short = vector.bitcast %scaled1_short_bfloat16 : vector<16xbf16> to vector<16xi16>

          %scaled1_short_pairs = vector.bitcast %scaled1_short : vector<16xi16> to vector<8xi32>
          %scaled1_short_column = arith.divui %d1, %c2 : index
          vector.store %scaled1_short_pairs, %keys[%k, %scaled1_short_column] : memref<64x304xi32>, vector<8xi32>


          }
          %line6 = arith.constant 384 : index
          memref.prefetch %cache[%row_ahead, %line6], read, locality<3>, data : memref<?x656xi8>
          %line7 = arith.constant 448 : index
          memref.prefetch %cache[%row_ahead, %line7], read, locality<3>, data : memref<?x656xi8>
          %line8 = arith.constant 512 : index
          memref.prefetch %cache[%row_ahead, %line8], read, locality<3>, data : memref<?x656xi8>

          %scale_column2 = arith.constant 648 : index
          %scale_bytes2 = vector.load %cache[%row, %scale_column2] : memref<?x656xi8>, vector<4xi8>
          %scale_vector2 = vector.bitcast %scale_bytes2 : vector<4xi8> to vector<1xf32>
          %stored_scale2 = vector.extract %scale_vector2[0] : f32 from vector<1xf32>
          // Whatever the payload of a NaN is, from here on it is the one that rounding keeps.
          %scale_is_nan2 = arith.cmpf uno, %stored_scale2, %stored_scale2 : f32
          %tile_scale2 = arith.select %scale_is_nan2, %nan, %stored_scale2 : f32
          %tile_scale_lanes2 = vector.broadcast %tile_scale2 : f32 to vector<16xf32>
          %tile_start2 = arith.constant 256 : index
          %tile_end2 = arith.constant 384 : index
          scf.for %d = %tile_start2 to %tile_end2 step %run {
              %decoded_offset0 = arith.constant 0 : index
              %decoded_place0 = arith.addi %d, %decoded_offset0 : index
              %decoded_codes0 = vector.load %cache[%row, %decoded_place0] : memref<?x656xi8>, vector<32xi8>
              %decoded_codes0_words = arith.extsi %decoded_codes0 : vector<32xi8> to vector<32xi16>
              %decoded_codes0_placed = arith.shli %decoded_codes0_words, %e4m3_place : vector<32xi16>
              %decoded_codes0_finite = arith.andi %decoded_codes0_placed, %e4m3_bits : vector<32xi16>
              %decoded_codes0_magnitude = arith.ori %decoded_codes0_finite, %e4m3_sign : vector<32xi16>
              %decoded_codes0_is_nan = arith.cmpi eq, %decoded_codes0_magnitude, %e4m3_nan : vector<32xi16>
              %decoded_codes0_bits = arith.select %decoded_codes0_is_nan, %nan_words, %decoded_codes0_finite : vector<32xi1>, vector<32xi16>
              %decoded_codes0_halves = vector.bitcast %decoded_codes0_bits : vector<32xi16> to vector<32xf16>
              %decoded_codes0_half0 = vector.shuffle %decoded_codes0_halves, %decoded_codes0_halves [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15] : vector<32xf16>, vector<32xf16>
              %decoded_codes0_small0 = arith.extf %decoded_codes0_half0 : vector<16xf16> to vector<16xf32>
              %decoded0 = arith.mulf %decoded_codes0_small0, %e4m3_factor : vector<16xf32>
              %decoded_codes0_half1 = vector.shuffle %decoded_codes0_halves, %decoded_codes0_halves [16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31] : vector<32xf16>, vector<32xf16>
              %decoded_codes0_small1 = arith.extf %decoded_codes0_half1 : vector<16xf16> to vector<16xf32>
              %decoded1 = arith.mulf %decoded_codes0_small1, %e4m3_factor : vector<16xf32>


            %scaled0 = arith.mulf %decoded0, %tile_scale_lanes2 : vector<16xf32>
            %offset0 = arith.constant 0 : index
            %d0 = arith.addi %d, %offset0 : index
          %scaled0_short_bfloat16 = llvm.call_intrinsic "llvm.x86.avx512bf16.cvtneps2bf16.512"(%scaled0) : (vector<16xf32>) -> vector<16xbf16>
          %scaled0_short = vector.bitcast %scaled0_short_bfloat16 : vector<16xbf16> to vector<16xi16>

          %scaled0_short_pairs = vector.bitcast %scaled0_short : vector<16xi16> to vector<8xi32>
          %scaled0_short_column = arith.divui %d0, %c2 : index
          vector.store %scaled0_short_pairs, %keys[%k, %scaled0_short_column] : memref<64x304xi32>, vector<8xi32>


            %scaled1 = arith.mulf %decoded1, %tile_scale_lanes2 : vector<16xf32>
            %offset1 = arith.constant 16 : index
            %d1 = arith.addi %d, %offset1 : index
          %scaled1_short_bfloat16 = llvm.call_intrinsic "llvm.x86.avx512bf16.cvtneps2bf16.512"(%scaled1) : (vector<16xf32>) -> vector<16xbf16>
          %scaled1_short = vector.bitcast %scaled1_short_bfloat16 : vector<16xbf16> to vector<16xi16>

          %scaled1_short_pairs = vector.bitcast %scaled1_short : vector<16xi16> to vector<8xi32>
          %scaled1_short_column = arith.divui %d1, %c2 : index
          vector.store %scaled1_short_pairs, %keys[%k, %scaled1_short_column] : memref<64x304xi32>, vector<8xi32>


          }
          %line9 = arith.constant 576 : index
          memref.prefetch %cache[%row_ahead, %line9], read, locality<3>, data : memref<?x656xi8>
          %line10 = arith.constant 640 : index
          memref.prefetch %cache[%row_ahead, %line10], read, locality<3>, data : memref<?x656xi8>
          %line11 = arith.constant 655 : index
          memref.prefetch %cache[%row_ahead, %line11], read, locality<3>, data : memref<?x656xi8>

          %scale_column3 = arith.constant 652 : index
          %scale_bytes3 = vector.load %cache[%row, %scale_column3] : memref<?x656xi8>, vector<4xi8>
          %scale_vector3 = vector.bitcast %scale_bytes3 : vector<4xi8> to vector<1xf32>
          %stored_scale3 = vector.extract %scale_vector3[0] : f32 from vector<1xf32>
          // Whatever the payload of a NaN is, from here on it is the one that rounding keeps.
          %scale_is_nan3 = arith.cmpf uno, %stored_scale3, %stored_scale3 : f32
          %tile_scale3 = arith.select %scale_is_nan3, %nan, %stored_scale3 : f32
          %tile_scale_lanes3 = vector.broadcast %tile_scale3 : f32 to vector<16xf32>
          %tile_start3 = arith.constant 384 : index
          %tile_end3 = arith.constant 512 : index
          scf.for %d = %tile_start3 to %tile_end3 step %run {
              %decoded_offset0 = arith.constant 0 : index
              %decoded_place0 = arith.addi %d, %decoded_offset0 : index
              %decoded_codes0 = vector.load %cache[%row, %decoded_place0] : memref<?x656xi8>, vector<32xi8>
              %decoded_codes0_words = arith.extsi %decoded_codes0 : vector<32xi8> to vector<32xi16>
              %decoded_codes0_placed = arith.shli %decoded_codes0_words, %e4m3_place : vector<32xi16>
              %decoded_codes0_finite = arith.andi %decoded_codes0_placed, %e4m3_bits : vector<32xi16>
              %decoded_codes0_magnitude = arith.ori %decoded_codes0_finite, %e4m3_sign : vector<32xi16>
              %decoded_codes0_is_nan = arith.cmpi eq, %decoded_codes0_magnitude, %e4m3_nan : vector<32xi16>
              %decoded_codes0_bits = arith.select %decoded_codes0_is_nan, %nan_words, %decoded_codes0_finite : vector<32xi1>, vector<32xi16>
              %decoded_codes0_halves = vector.bitcast %decoded_codes0_bits : vector<32xi16> to vector<32xf16>
              %decoded_codes0_half0 = vector.shuffle %decoded_codes0_halves, %decoded_codes0_halves [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15] : vector<32xf16>, vector<32xf16>
              %decoded_codes0_small0 = arith.extf %decoded_codes0_half0 : vector<16xf16> to vector<16xf32>
              %decoded0 = arith.mulf %decoded_codes0_small0, %e4m3_factor : vector<16xf32>
              %decoded_codes0_half1 = vector.shuffle %decoded_codes0_halves, %decoded_codes0_halves [16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31] : vector<32xf16>, vector<32xf16>
              %decoded_codes0_small1 = arith.extf %decoded_codes0_half1 : vector<16xf16> to vector<16xf32>
              %decoded1 = arith.mulf %decoded_codes0_small1, %e4m3_factor : vector<16xf32>


            %scaled0 = arith.mulf %decoded0, %tile_scale_lanes3 : vector<16xf32>
            %offset0 = arith.constant 0 : index
            %d0 = arith.addi %d, %offset0 : index
          %scaled0_short_bfloat16 = llvm.call_intrinsic "llvm.x86.avx512bf16.cvtneps2bf16.512"(%scaled0) : (vector<16xf32>) -> vector<16xbf16>
          %scaled0_short = vector.bitcast %scaled0_short_bfloat16 : vector<16xbf16> to vector<16xi16>

          %scaled0_short_pairs = vector.bitcast %scaled0_short : vector<16xi16> to vector<8xi32>
          %scaled0_short_column = arith.divui %d0, %c2 : index
          vector.store %scaled0_short_pairs, %keys[%k, %scaled0_short_column] : memref<64x304xi32>, vector<8xi32>


            %scaled1 = arith.mulf %decoded1, %tile_scale_lanes3 : vector<16xf32>
            %offset1 = arith.constant 16 : index
            %d1 = arith.addi %d, %offset1 : index
          %scaled1_short_bfloat16 = llvm.call_intrinsic "llvm.x86.avx512bf16.cvtneps2bf16.512"(%scaled1) : (vector<16xf32>) -> vector<16xbf16>
          %scaled1_short = vector.bitcast %scaled1_short_bfloat16 : vector<16xbf16> to vector<16xi16>

          %scaled1_short_pairs = vector.bitcast %scaled1_short : vector<16xi16> to vector<8xi32>
          %scaled1_short_column = arith.divui %d1, %c2 : index
          vector.store %scaled1_short_pairs, %keys[%k, %scaled1_short_column] : memref<64x304xi32>, vector<8xi32>


          }
          scf.for %d = %nope to %width step %lanes {
            %in_rope = arith.subi %d, %nope : index
            %rope_column = arith.addi %rope_at, %in_rope : index
            %stored = vector.load %cache_short[%row, %rope_column] : memref<?x328xi16>, vector<16xi16>
          %stored_pairs = vector.bitcast %stored : vector<16xi16> to vector<8xi32>
          %stored_column = arith.divui %d, %c2 : index
          vector.store %stored_pairs, %keys[%k, %stored_column] : memref<64x304xi32>, vector<8xi32>

          }
        } else {
          scf.for %column = %c0 to %columns step %lanes {
            vector.store %no_elements, %keys[%k, %column] : memref<64x304xi32>, vector<16xi32>
          }
        }
      }

      // Key after key is what Q.K reads; P.V reads the same column of two keys at a time.
      scf.for %k = %c0 to %key_end step %c2 {
        %k_next = arith.addi %k, %c1 : index
        %pair = arith.divui %k, %c2 : index
        scf.for %d = %c0 to %nope step %lanes {
          %column = arith.divui %d, %c2 : index
          %even = vector.load %keys[%k, %column] : memref<64x304xi32>, vector<8xi32>
          %odd = vector.load %keys[%k_next, %column] : memref<64x304xi32>, vector<8xi32>
          %both_even_short = vector.bitcast %even : vector<8xi32> to vector<16xi16>
          %both_odd_short = vector.bitcast %odd : vector<8xi32> to vector<16xi16>
          %both_even = arith.extui %both_even_short : vector<16xi16> to vector<16xi32>
          %both_odd = arith.extui %both_odd_short : vector<16xi16> to vector<16xi32>
          %both_odd_upper = arith.shli %both_odd, %sixteens : vector<16xi32>
          %both = arith.ori %both_even, %both_odd_upper : vector<16xi32>
          vector.store %both, %paired[%pair, %d] : memref<32x528xi32>, vector<16xi32>
        }
      }

        scf.for %g = %c0 to %groups step %c1 {
          %group_start = arith.muli %g, %group : index
          %first_head = arith.minui %group_start, %last_group : index

          // Scores: 16 keys x 16 heads in registers, summed column by column.
          scf.for %k = %c0 to %key_end step %key_step {
            %place0 = arith.constant 0 : index
            %k0 = arith.addi %k, %place0 : index
            %place1 = arith.constant 1 : index
            %k1 = arith.addi %k, %place1 : index
            %place2 = arith.constant 2 : index
            %k2 = arith.addi %k, %place2 : index
            %place3 = arith.constant 3 : index
            %k3 = arith.addi %k, %place3 : index
            %place4 = arith.constant 4 : index
            %k4 = arith.addi %k, %place4 : index
            %place5 = arith.constant 5 : index
            %k5 = arith.addi %k, %place5 : index
            %place6 = arith.constant 6 : index
            %k6 = arith.addi %k, %place6 : index
            %place7 = arith.constant 7 : index
            %k7 = arith.addi %k, %place7 : index
            %place8 = arith.constant 8 : index
            %k8 = arith.addi %k, %place8 : index
            %place9 = arith.constant 9 : index
            %k9 = arith.addi %k, %place9 : index
            %place10 = arith.constant 10 : index
            %k10 = arith.addi %k, %place10 : index
            %place11 = arith.constant 11 : index
            %k11 = arith.addi %k, %place11 : index
            %place12 = arith.constant 12 : index
            %k12 = arith.addi %k, %place12 : index
            %place13 = arith.constant 13 : index
            %k13 = arith.addi %k, %place13 : index
            %place14 = arith.constant 14 : index
            %k14 = arith.addi %k, %place14 : index
            %place15 = arith.constant 15 : index
            %k15 = arith.addi %k, %place15 : index
            %dots:16 = scf.for %d = %c0 to %columns step %c1
                iter_args(%sum0 = %zeros, %sum1 = %zeros, %sum2 = %zeros, %sum3 = %zeros, %sum4 = %zeros, %sum5 = %zeros, %sum6 = %zeros, %sum7 = %zeros, %sum8 = %zeros, %sum9 = %zeros, %sum10 = %zeros, %sum11 = %zeros, %sum12 = %zeros, %sum13 = %zeros, %sum14 = %zeros, %sum15 = %zeros) -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>) {
              %lanes0 = arith.constant 0 : index
              %q0 = vector.load %packed[%g, %d, %lanes0] : memref<1x288x16xi32>, vector<16xi32>
              %key0 = memref.load %keys[%k0, %d] : memref<64x304xi32>
              %key_lanes0 = vector.broadcast %key0 : i32 to vector<16xi32>
            %next0_a = vector.bitcast %q0 : vector<16xi32> to vector<32xbf16>
            %next0_b = vector.bitcast %key_lanes0 : vector<16xi32> to vector<32xbf16>
            %next0 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum0, %next0_a, %next0_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

              %key1 = memref.load %keys[%k1, %d] : memref<64x304xi32>
              %key_lanes1 = vector.broadcast %key1 : i32 to vector<16xi32>
            %next1_a = vector.bitcast %q0 : vector<16xi32> to vector<32xbf16>
            %next1_b = vector.bitcast %key_lanes1 : vector<16xi32> to vector<32xbf16>
            %next1 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum1, %next1_a, %next1_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

              %key2 = memref.load %keys[%k2, %d] : memref<64x304xi32>
              %key_lanes2 = vector.broadcast %key2 : i32 to vector<16xi32>
            %next2_a = vector.bitcast %q0 : vector<16xi32> to vector<32xbf16>
            %next2_b = vector.bitcast %key_lanes2 : vector<16xi32> to vector<32xbf16>
            %next2 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum2, %next2_a, %next2_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

              %key3 = memref.load %keys[%k3, %d] : memref<64x304xi32>
              %key_lanes3 = vector.broadcast %key3 : i32 to vector<16xi32>
            %next3_a = vector.bitcast %q0 : vector<16xi32> to vector<32xbf16>
            %next3_b = vector.bitcast %key_lanes3 : vector<16xi32> to vector<32xbf16>
            %next3 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum3, %next3_a, %next3_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

              %key4 = memref.load %keys[%k4, %d] : memref<64x304xi32>
              %key_lanes4 = vector.broadcast %key4 : i32 to vector<16xi32>
            %next4_a = vector.bitcast %q0 : vector<16xi32> to vector<32xbf16>
            %next4_b = vector.bitcast %key_lanes4 : vector<16xi32> to vector<32xbf16>
            %next4 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum4, %next4_a, %next4_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

              %key5 = memref.load %keys[%k5, %d] : memref<64x304xi32>
              %key_lanes5 = vector.broadcast %key5 : i32 to vector<16xi32>
            %next5_a = vector.bitcast %q0 : vector<16xi32> to vector<32xbf16>
            %next5_b = vector.bitcast %key_lanes5 : vector<16xi32> to vector<32xbf16>
            %next5 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum5, %next5_a, %next5_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

              %key6 = memref.load %keys[%k6, %d] : memref<64x304xi32>
              %key_lanes6 = vector.broadcast %key6 : i32 to vector<16xi32>
            %next6_a = vector.bitcast %q0 : vector<16xi32> to vector<32xbf16>
            %next6_b = vector.bitcast %key_lanes6 : vector<16xi32> to vector<32xbf16>
            %next6 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum6, %next6_a, %next6_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

              %key7 = memref.load %keys[%k7, %d] : memref<64x304xi32>
              %key_lanes7 = vector.broadcast %key7 : i32 to vector<16xi32>
            %next7_a = vector.bitcast %q0 : vector<16xi32> to vector<32xbf16>
            %next7_b = vector.bitcast %key_lanes7 : vector<16xi32> to vector<32xbf16>
            %next7 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum7, %next7_a, %next7_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

              %key8 = memref.load %keys[%k8, %d] : memref<64x304xi32>
              %key_lanes8 = vector.broadcast %key8 : i32 to vector<16xi32>
            %next8_a = vector.bitcast %q0 : vector<16xi32> to vector<32xbf16>
            %next8_b = vector.bitcast %key_lanes8 : vector<16xi32> to vector<32xbf16>
            %next8 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum8, %next8_a, %next8_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

              %key9 = memref.load %keys[%k9, %d] : memref<64x304xi32>
              %key_lanes9 = vector.broadcast %key9 : i32 to vector<16xi32>
            %next9_a = vector.bitcast %q0 : vector<16xi32> to vector<32xbf16>
            %next9_b = vector.bitcast %key_lanes9 : vector<16xi32> to vector<32xbf16>
            %next9 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum9, %next9_a, %next9_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

              %key10 = memref.load %keys[%k10, %d] : memref<64x304xi32>
              %key_lanes10 = vector.broadcast %key10 : i32 to vector<16xi32>
            %next10_a = vector.bitcast %q0 : vector<16xi32> to vector<32xbf16>
            %next10_b = vector.bitcast %key_lanes10 : vector<16xi32> to vector<32xbf16>
            %next10 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum10, %next10_a, %next10_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

              %key11 = memref.load %keys[%k11, %d] : memref<64x304xi32>
              %key_lanes11 = vector.broadcast %key11 : i32 to vector<16xi32>
            %next11_a = vector.bitcast %q0 : vector<16xi32> to vector<32xbf16>
            %next11_b = vector.bitcast %key_lanes11 : vector<16xi32> to vector<32xbf16>
            %next11 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum11, %next11_a, %next11_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

              %key12 = memref.load %keys[%k12, %d] : memref<64x304xi32>
              %key_lanes12 = vector.broadcast %key12 : i32 to vector<16xi32>
            %next12_a = vector.bitcast %q0 : vector<16xi32> to vector<32xbf16>
            %next12_b = vector.bitcast %key_lanes12 : vector<16xi32> to vector<32xbf16>
            %next12 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum12, %next12_a, %next12_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

              %key13 = memref.load %keys[%k13, %d] : memref<64x304xi32>
              %key_lanes13 = vector.broadcast %key13 : i32 to vector<16xi32>
            %next13_a = vector.bitcast %q0 : vector<16xi32> to vector<32xbf16>
            %next13_b = vector.bitcast %key_lanes13 : vector<16xi32> to vector<32xbf16>
            %next13 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum13, %next13_a, %next13_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

              %key14 = memref.load %keys[%k14, %d] : memref<64x304xi32>
              %key_lanes14 = vector.broadcast %key14 : i32 to vector<16xi32>
            %next14_a = vector.bitcast %q0 : vector<16xi32> to vector<32xbf16>
            %next14_b = vector.bitcast %key_lanes14 : vector<16xi32> to vector<32xbf16>
            %next14 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum14, %next14_a, %next14_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

              %key15 = memref.load %keys[%k15, %d] : memref<64x304xi32>
              %key_lanes15 = vector.broadcast %key15 : i32 to vector<16xi32>
            %next15_a = vector.bitcast %q0 : vector<16xi32> to vector<32xbf16>
            %next15_b = vector.bitcast %key_lanes15 : vector<16xi32> to vector<32xbf16>
            %next15 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum15, %next15_a, %next15_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

              scf.yield %next0, %next1, %next2, %next3, %next4, %next5, %next6, %next7, %next8, %next9, %next10, %next11, %next12, %next13, %next14, %next15 : vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>
            }
            %place_in_block0 = arith.addi %pass_start, %k0 : index
            %in_block0 = arith.cmpi ult, %place_in_block0, %key_block : index
            %slot_place0 = arith.select %in_block0, %place_in_block0, %c0 : index
            %slot0 = memref.load %slots[%item, %slot_place0] : memref<?x256xi32>
            %is_key0 = arith.cmpi sge, %slot0, %zero_i32 : i32
            %attended0 = arith.andi %in_block0, %is_key0 : i1
            %scaled0_0 = arith.mulf %dots#0, %score_factor_lanes : vector<16xf32>
            %score0_0 = arith.select %attended0, %scaled0_0, %minus_infinities : vector<16xf32>
            %score_lanes0_0 = arith.constant 0 : index
            vector.store %score0_0, %scores[%k0, %score_lanes0_0] : memref<64x16xf32>, vector<16xf32>
            %place_in_block1 = arith.addi %pass_start, %k1 : index
            %in_block1 = arith.cmpi ult, %place_in_block1, %key_block : index
            %slot_place1 = arith.select %in_block1, %place_in_block1, %c0 : index
            %slot1 = memref.load %slots[%item, %slot_place1] : memref<?x256xi32>
            %is_key1 = arith.cmpi sge, %slot1, %zero_i32 : i32
            %attended1 = arith.andi %in_block1, %is_key1 : i1
            %scaled1_0 = arith.mulf %dots#1, %score_factor_lanes : vector<16xf32>
            %score1_0 = arith.select %attended1, %scaled1_0, %minus_infinities : vector<16xf32>
            %score_lanes1_0 = arith.constant 0 : index
            vector.store %score1_0, %scores[%k1, %score_lanes1_0] : memref<64x16xf32>, vector<16xf32>
            %place_in_block2 = arith.addi %pass_start, %k2 : index
            %in_block2 = arith.cmpi ult, %place_in_block2, %key_block : index
            %slot_place2 = arith.select %in_block2, %place_in_block2, %c0 : index
            %slot2 = memref.load %slots[%item, %slot_place2] : memref<?x256xi32>
            %is_key2 = arith.cmpi sge, %slot2, %zero_i32 : i32
            %attended2 = arith.andi %in_block2, %is_key2 : i1
            %scaled2_0 = arith.mulf %dots#2, %score_factor_lanes : vector<16xf32>
            %score2_0 = arith.select %attended2, %scaled2_0, %minus_infinities : vector<16xf32>
            %score_lanes2_0 = arith.constant 0 : index
            vector.store %score2_0, %scores[%k2, %score_lanes2_0] : memref<64x16xf32>, vector<16xf32>
            %place_in_block3 = arith.addi %pass_start, %k3 : index
            %in_block3 = arith.cmpi ult, %place_in_block3, %key_block : index
            %slot_place3 = arith.select %in_block3, %place_in_block3, %c0 : index
            %slot3 = memref.load %slots[%item, %slot_place3] : memref<?x256xi32>
            %is_key3 = arith.cmpi sge, %slot3, %zero_i32 : i32
            %attended3 = arith.andi %in_block3, %is_key3 : i1
            %scaled3_0 = arith.mulf %dots#3, %score_factor_lanes : vector<16xf32>
            %score3_0 = arith.select %attended3, %scaled3_0, %minus_infinities : vector<16xf32>
            %score_lanes3_0 = arith.constant 0 : index
            vector.store %score3_0, %scores[%k3, %score_lanes3_0] : memref<64x16xf32>, vector<16xf32>
            %place_in_block4 = arith.addi %pass_start, %k4 : index
            %in_block4 = arith.cmpi ult, %place_in_block4, %key_block : index
            %slot_place4 = arith.select %in_block4, %place_in_block4, %c0 : index
            %slot4 = memref.load %slots[%item, %slot_place4] : memref<?x256xi32>
            %is_key4 = arith.cmpi sge, %slot4, %zero_i32 : i32
            %attended4 = arith.andi %in_block4, %is_key4 : i1
            %scaled4_0 = arith.mulf %dots#4, %score_factor_lanes : vector<16xf32>
            %score4_0 = arith.select %attended4, %scaled4_0, %minus_infinities : vector<16xf32>
            %score_lanes4_0 = arith.constant 0 : index
            vector.store %score4_0, %scores[%k4, %score_lanes4_0] : memref<64x16xf32>, vector<16xf32>
            %place_in_block5 = arith.addi %pass_start, %k5 : index
            %in_block5 = arith.cmpi ult, %place_in_block5, %key_block : index
            %slot_place5 = arith.select %in_block5, %place_in_block5, %c0 : index
            %slot5 = memref.load %slots[%item, %slot_place5] : memref<?x256xi32>
            %is_key5 = arith.cmpi sge, %slot5, %zero_i32 : i32
            %attended5 = arith.andi %in_block5, %is_key5 : i1
            %scaled5_0 = arith.mulf %dots#5, %score_factor_lanes : vector<16xf32>
            %score5_0 = arith.select %attended5, %scaled5_0, %minus_infinities : vector<16xf32>
            %score_lanes5_0 = arith.constant 0 : index
            vector.store %score5_0, %scores[%k5, %score_lanes5_0] : memref<64x16xf32>, vector<16xf32>
            %place_in_block6 = arith.addi %pass_start, %k6 : index
            %in_block6 = arith.cmpi ult, %place_in_block6, %key_block : index
            %slot_place6 = arith.select %in_block6, %place_in_block6, %c0 : index
            %slot6 = memref.load %slots[%item, %slot_place6] : memref<?x256xi32>
            %is_key6 = arith.cmpi sge, %slot6, %zero_i32 : i32
            %attended6 = arith.andi %in_block6, %is_key6 : i1
            %scaled6_0 = arith.mulf %dots#6, %score_factor_lanes : vector<16xf32>
            %score6_0 = arith.select %attended6, %scaled6_0, %minus_infinities : vector<16xf32>
            %score_lanes6_0 = arith.constant 0 : index
            vector.store %score6_0, %scores[%k6, %score_lanes6_0] : memref<64x16xf32>, vector<16xf32>
            %place_in_block7 = arith.addi %pass_start, %k7 : index
            %in_block7 = arith.cmpi ult, %place_in_block7, %key_block : index
            %slot_place7 = arith.select %in_block7, %place_in_block7, %c0 : index
            %slot7 = memref.load %slots[%item, %slot_place7] : memref<?x256xi32>
            %is_key7 = arith.cmpi sge, %slot7, %zero_i32 : i32
            %attended7 = arith.andi %in_block7, %is_key7 : i1
            %scaled7_0 = arith.mulf %dots#7, %score_factor_lanes : vector<16xf32>
            %score7_0 = arith.select %attended7, %scaled7_0, %minus_infinities : vector<16xf32>
            %score_lanes7_0 = arith.constant 0 : index
            vector.store %score7_0, %scores[%k7, %score_lanes7_0] : memref<64x16xf32>, vector<16xf32>
            %place_in_block8 = arith.addi %pass_start, %k8 : index
            %in_block8 = arith.cmpi ult, %place_in_block8, %key_block : index
            %slot_place8 = arith.select %in_block8, %place_in_block8, %c0 : index
            %slot8 = memref.load %slots[%item, %slot_place8] : memref<?x256xi32>
            %is_key8 = arith.cmpi sge, %slot8, %zero_i32 : i32
            %attended8 = arith.andi %in_block8, %is_key8 : i1
            %scaled8_0 = arith.mulf %dots#8, %score_factor_lanes : vector<16xf32>
            %score8_0 = arith.select %attended8, %scaled8_0, %minus_infinities : vector<16xf32>
            %score_lanes8_0 = arith.constant 0 : index
            vector.store %score8_0, %scores[%k8, %score_lanes8_0] : memref<64x16xf32>, vector<16xf32>
            %place_in_block9 = arith.addi %pass_start, %k9 : index
            %in_block9 = arith.cmpi ult, %place_in_block9, %key_block : index
            %slot_place9 = arith.select %in_block9, %place_in_block9, %c0 : index
            %slot9 = memref.load %slots[%item, %slot_place9] : memref<?x256xi32>
            %is_key9 = arith.cmpi sge, %slot9, %zero_i32 : i32
            %attended9 = arith.andi %in_block9, %is_key9 : i1
            %scaled9_0 = arith.mulf %dots#9, %score_factor_lanes : vector<16xf32>
            %score9_0 = arith.select %attended9, %scaled9_0, %minus_infinities : vector<16xf32>
            %score_lanes9_0 = arith.constant 0 : index
            vector.store %score9_0, %scores[%k9, %score_lanes9_0] : memref<64x16xf32>, vector<16xf32>
            %place_in_block10 = arith.addi %pass_start, %k10 : index
            %in_block10 = arith.cmpi ult, %place_in_block10, %key_block : index
            %slot_place10 = arith.select %in_block10, %place_in_block10, %c0 : index
            %slot10 = memref.load %slots[%item, %slot_place10] : memref<?x256xi32>
            %is_key10 = arith.cmpi sge, %slot10, %zero_i32 : i32
            %attended10 = arith.andi %in_block10, %is_key10 : i1
            %scaled10_0 = arith.mulf %dots#10, %score_factor_lanes : vector<16xf32>
            %score10_0 = arith.select %attended10, %scaled10_0, %minus_infinities : vector<16xf32>
            %score_lanes10_0 = arith.constant 0 : index
            vector.store %score10_0, %scores[%k10, %score_lanes10_0] : memref<64x16xf32>, vector<16xf32>
            %place_in_block11 = arith.addi %pass_start, %k11 : index
            %in_block11 = arith.cmpi ult, %place_in_block11, %key_block : index
            %slot_place11 = arith.select %in_block11, %place_in_block11, %c0 : index
            %slot11 = memref.load %slots[%item, %slot_place11] : memref<?x256xi32>
            %is_key11 = arith.cmpi sge, %slot11, %zero_i32 : i32
            %attended11 = arith.andi %in_block11, %is_key11 : i1
            %scaled11_0 = arith.mulf %dots#11, %score_factor_lanes : vector<16xf32>
            %score11_0 = arith.select %attended11, %scaled11_0, %minus_infinities : vector<16xf32>
            %score_lanes11_0 = arith.constant 0 : index
            vector.store %score11_0, %scores[%k11, %score_lanes11_0] : memref<64x16xf32>, vector<16xf32>
            %place_in_block12 = arith.addi %pass_start, %k12 : index
            %in_block12 = arith.cmpi ult, %place_in_block12, %key_block : index
            %slot_place12 = arith.select %in_block12, %place_in_block12, %c0 : index
            %slot12 = memref.load %slots[%item, %slot_place12] : memref<?x256xi32>
            %is_key12 = arith.cmpi sge, %slot12, %zero_i32 : i32
            %attended12 = arith.andi %in_block12, %is_key12 : i1
            %scaled12_0 = arith.mulf %dots#12, %score_factor_lanes : vector<16xf32>
            %score12_0 = arith.select %attended12, %scaled12_0, %minus_infinities : vector<16xf32>
            %score_lanes12_0 = arith.constant 0 : index
            vector.store %score12_0, %scores[%k12, %score_lanes12_0] : memref<64x16xf32>, vector<16xf32>
            %place_in_block13 = arith.addi %pass_start, %k13 : index
            %in_block13 = arith.cmpi ult, %place_in_block13, %key_block : index
            %slot_place13 = arith.select %in_block13, %place_in_block13, %c0 : index
            %slot13 = memref.load %slots[%item, %slot_place13] : memref<?x256xi32>
            %is_key13 = arith.cmpi sge, %slot13, %zero_i32 : i32
            %attended13 = arith.andi %in_block13, %is_key13 : i1
            %scaled13_0 = arith.mulf %dots#13, %score_factor_lanes : vector<16xf32>
            %score13_0 = arith.select %attended13, %scaled13_0, %minus_infinities : vector<16xf32>
            %score_lanes13_0 = arith.constant 0 : index
            vector.store %score13_0, %scores[%k13, %score_lanes13_0] : memref<64x16xf32>, vector<16xf32>
            %place_in_block14 = arith.addi %pass_start, %k14 : index
            %in_block14 = arith.cmpi ult, %place_in_block14, %key_block : index
            %slot_place14 = arith.select %in_block14, %place_in_block14, %c0 : index
            %slot14 = memref.load %slots[%item, %slot_place14] : memref<?x256xi32>
            %is_key14 = arith.cmpi sge, %slot14, %zero_i32 : i32
            %attended14 = arith.andi %in_block14, %is_key14 : i1
            %scaled14_0 = arith.mulf %dots#14, %score_factor_lanes : vector<16xf32>
            %score14_0 = arith.select %attended14, %scaled14_0, %minus_infinities : vector<16xf32>
            %score_lanes14_0 = arith.constant 0 : index
            vector.store %score14_0, %scores[%k14, %score_lanes14_0] : memref<64x16xf32>, vector<16xf32>
            %place_in_block15 = arith.addi %pass_start, %k15 : index
            %in_block15 = arith.cmpi ult, %place_in_block15, %key_block : index
            %slot_place15 = arith.select %in_block15, %place_in_block15, %c0 : index
            %slot15 = memref.load %slots[%item, %slot_place15] : memref<?x256xi32>
            %is_key15 = arith.cmpi sge, %slot15, %zero_i32 : i32
            %attended15 = arith.andi %in_block15, %is_key15 : i1
            %scaled15_0 = arith.mulf %dots#15, %score_factor_lanes : vector<16xf32>
            %score15_0 = arith.select %attended15, %scaled15_0, %minus_infinities : vector<16xf32>
            %score_lanes15_0 = arith.constant 0 : index
            vector.store %score15_0, %scores[%k15, %score_lanes15_0] : memref<64x16xf32>, vector<16xf32>
          }

          // Softmax over the pass; the weights are rounded, their sum is of the float32 ones.
          scf.for %v = %c0 to %group step %lanes {
            %head = arith.addi %first_head, %v : index
            %old_maximum = vector.load %maxima[%item, %head] : memref<?x16xf32>, vector<16xf32>
            %maximum = scf.for %k = %c0 to %key_end step %c1 iter_args(%so_far = %old_maximum) -> (vector<16xf32>) {
              %score = vector.load %scores[%k, %v] : memref<64x16xf32>, vector<16xf32>
              %larger = arith.maximumf %so_far, %score : vector<16xf32>
              scf.yield %larger : vector<16xf32>
            }
          %reference_magnitude = math.absf %maximum : vector<16xf32>
          %reference_is_infinite = arith.cmpf oeq, %reference_magnitude, %infinities : vector<16xf32>
          %reference = arith.select %reference_is_infinite, %zeros, %maximum : vector<16xi1>, vector<16xf32>
            %old_below = arith.subf %old_maximum, %reference : vector<16xf32>
          %factor_above = arith.maximumf %old_below, %least_power : vector<16xf32>
          %factor_inside = arith.minimumf %factor_above, %largest_power : vector<16xf32>
          %factor_shifted = arith.addf %factor_inside, %rounder : vector<16xf32>
          %factor_whole = arith.subf %factor_shifted, %rounder : vector<16xf32>
          %factor_rest = arith.subf %factor_inside, %factor_whole : vector<16xf32>
          %factor_5 = math.fma %exp2_6, %factor_rest, %exp2_5 : vector<16xf32>
          %factor_4 = math.fma %factor_5, %factor_rest, %exp2_4 : vector<16xf32>
          %factor_3 = math.fma %factor_4, %factor_rest, %exp2_3 : vector<16xf32>
          %factor_2 = math.fma %factor_3, %factor_rest, %exp2_2 : vector<16xf32>
          %factor_1 = math.fma %factor_2, %factor_rest, %exp2_1 : vector<16xf32>
          %factor_0 = math.fma %factor_1, %factor_rest, %exp2_0 : vector<16xf32>
          %factor_whole_bits = vector.bitcast %factor_shifted : vector<16xf32> to vector<16xi32>
          %factor_exponent = arith.shli %factor_whole_bits, %mantissa_bits : vector<16xi32>
          %factor_bits = vector.bitcast %factor_0 : vector<16xf32> to vector<16xi32>
          %factor_scaled_bits = arith.addi %factor_bits, %factor_exponent : vector<16xi32>
          %factor_power = vector.bitcast %factor_scaled_bits : vector<16xi32> to vector<16xf32>
          %factor_is_small = arith.cmpf olt, %old_below, %least_power : vector<16xf32>
          %factor_or_zero = arith.select %factor_is_small, %zeros, %factor_power : vector<16xi1>, vector<16xf32>
          %factor_is_large = arith.cmpf ogt, %old_below, %largest_power : vector<16xf32>
          %factor_or_infinity = arith.select %factor_is_large, %infinities, %factor_or_zero : vector<16xi1>, vector<16xf32>
          %factor_is_nan = arith.cmpf uno, %old_below, %old_below : vector<16xf32>
          %factor = arith.select %factor_is_nan, %old_below, %factor_or_infinity : vector<16xi1>, vector<16xf32>
            vector.store %factor, %factors[%v] : memref<16xf32>, vector<16xf32>
            %total_before = vector.load %totals[%item, %head] : memref<?x16xf32>, vector<16xf32>
            %old_total = arith.mulf %total_before, %factor : vector<16xf32>
            %total = scf.for %k = %c0 to %key_end step %c2 iter_args(%so_far0 = %old_total) -> (vector<16xf32>) {
              %k0 = arith.addi %k, %c0 : index
              %score0 = vector.load %scores[%k0, %v] : memref<64x16xf32>, vector<16xf32>
              %below0 = arith.subf %score0, %reference : vector<16xf32>
          %weight0_above = arith.maximumf %below0, %least_power : vector<16xf32>
          %weight0_inside = arith.minimumf %weight0_above, %largest_power : vector<16xf32>
          %weight0_shifted = arith.addf %weight0_inside, %rounder : vector<16xf32>
          %weight0_whole = arith.subf %weight0_shifted, %rounder : vector<16xf32>
          %weight0_rest = arith.subf %weight0_inside, %weight0_whole : vector<16xf32>
          %weight0_5 = math.fma %exp2_6, %weight0_rest, %exp2_5 : vector<16xf32>
          %weight0_4 = math.fma %weight0_5, %weight0_rest, %exp2_4 : vector<16xf32>
          %weight0_3 = math.fma %weight0_4, %weight0_rest, %exp2_3 : vector<16xf32>
          %weight0_2 = math.fma %weight0_3, %weight0_rest, %exp2_2 : vector<16xf32>
          %weight0_1 = math.fma %weight0_2, %weight0_rest, %exp2_1 : vector<16xf32>
          %weight0_0 = math.fma %weight0_1, %weight0_rest, %exp2_0 : vector<16xf32>
          %weight0_whole_bits = vector.bitcast %weight0_shifted : vector<16xf32> to vector<16xi32>
          %weight0_exponent = arith.shli %weight0_whole_bits, %mantissa_bits : vector<16xi32>
          %weight0_bits = vector.bitcast %weight0_0 : vector<16xf32> to vector<16xi32>
          %weight0_scaled_bits = arith.addi %weight0_bits, %weight0_exponent : vector<16xi32>
          %weight0_power = vector.bitcast %weight0_scaled_bits : vector<16xi32> to vector<16xf32>
          %weight0_is_small = arith.cmpf olt, %below0, %least_power : vector<16xf32>
          %weight0_or_zero = arith.select %weight0_is_small, %zeros, %weight0_power : vector<16xi1>, vector<16xf32>
          %weight0_is_large = arith.cmpf ogt, %below0, %largest_power : vector<16xf32>
          %weight0_or_infinity = arith.select %weight0_is_large, %infinities, %weight0_or_zero : vector<16xi1>, vector<16xf32>
          %weight0_is_nan = arith.cmpf uno, %below0, %below0 : vector<16xf32>
          %weight0 = arith.select %weight0_is_nan, %below0, %weight0_or_infinity : vector<16xi1>, vector<16xf32>
              %so_far1 = arith.addf %so_far0, %weight0 : vector<16xf32>
              %k1 = arith.addi %k, %c1 : index
              %score1 = vector.load %scores[%k1, %v] : memref<64x16xf32>, vector<16xf32>
              %below1 = arith.subf %score1, %reference : vector<16xf32>
          %weight1_above = arith.maximumf %below1, %least_power : vector<16xf32>
          %weight1_inside = arith.minimumf %weight1_above, %largest_power : vector<16xf32>
          %weight1_shifted = arith.addf %weight1_inside, %rounder : vector<16xf32>
          %weight1_whole = arith.subf %weight1_shifted, %rounder : vector<16xf32>
          %weight1_rest = arith.subf %weight1_inside, %weight1_whole : vector<16xf32>
          %weight1_5 = math.fma %exp2_6, %weight1_rest, %exp2_5 : vector<16xf32>
          %weight1_4 = math.fma %weight1_5, %weight1_rest, %exp2_4 : vector<16xf32>
          %weight1_3 = math.fma %weight1_4, %weight1_rest, %exp2_3 : vector<16xf32>
          %weight1_2 = math.fma %weight1_3, %weight1_rest, %exp2_2 : vector<16xf32>
          %weight1_1 = math.fma %weight1_2, %weight1_rest, %exp2_1 : vector<16xf32>
          %weight1_0 = math.fma %weight1_1, %weight1_rest, %exp2_0 : vector<16xf32>
          %weight1_whole_bits = vector.bitcast %weight1_shifted : vector<16xf32> to vector<16xi32>
          %weight1_exponent = arith.shli %weight1_whole_bits, %mantissa_bits : vector<16xi32>
          %weight1_bits = vector.bitcast %weight1_0 : vector<16xf32> to vector<16xi32>
          %weight1_scaled_bits = arith.addi %weight1_bits, %weight1_exponent : vector<16xi32>
          %weight1_power = vector.bitcast %weight1_scaled_bits : vector<16xi32> to vector<16xf32>
          %weight1_is_small = arith.cmpf olt, %below1, %least_power : vector<16xf32>
          %weight1_or_zero = arith.select %weight1_is_small, %zeros, %weight1_power : vector<16xi1>, vector<16xf32>
          %weight1_is_large = arith.cmpf ogt, %below1, %largest_power : vector<16xf32>
          %weight1_or_infinity = arith.select %weight1_is_large, %infinities, %weight1_or_zero : vector<16xi1>, vector<16xf32>
          %weight1_is_nan = arith.cmpf uno, %below1, %below1 : vector<16xf32>
          %weight1 = arith.select %weight1_is_nan, %below1, %weight1_or_infinity : vector<16xi1>, vector<16xf32>
              %so_far2 = arith.addf %so_far1, %weight1 : vector<16xf32>
          %weight_pair_even_short_bfloat16 = llvm.call_intrinsic "llvm.x86.avx512bf16.cvtneps2bf16.512"(%weight0) : (vector<16xf32>) -> vector<16xbf16>
          %weight_pair_even_short = vector.bitcast %weight_pair_even_short_bfloat16 : vector<16xbf16> to vector<16xi16>

          %weight_pair_odd_short_bfloat16 = llvm.call_intrinsic "llvm.x86.avx512bf16.cvtneps2bf16.512"(%weight1) : (vector<16xf32>) -> vector<16xbf16>
          %weight_pair_odd_short = vector.bitcast %weight_pair_odd_short_bfloat16 : vector<16xbf16> to vector<16xi16>

          %weight_pair_even = arith.extui %weight_pair_even_short : vector<16xi16> to vector<16xi32>
          %weight_pair_odd = arith.extui %weight_pair_odd_short : vector<16xi16> to vector<16xi32>
          %weight_pair_odd_upper = arith.shli %weight_pair_odd, %sixteens : vector<16xi32>
          %weight_pair = arith.ori %weight_pair_even, %weight_pair_odd_upper : vector<16xi32>
              %pair = arith.divui %k, %c2 : index
              vector.store %weight_pair, %weights[%pair, %v] : memref<32x16xi32>, vector<16xi32>
              scf.yield %so_far2 : vector<16xf32>
            }
            vector.store %maximum, %maxima[%item, %head] : memref<?x16xf32>, vector<16xf32>
            vector.store %total, %totals[%item, %head] : memref<?x16xf32>, vector<16xf32>
          }

          // Values: some heads x 2 vectors of columns in registers, summed key by key; a panel of columns serves the
          // whole group.
          %panel = arith.constant 32 : index
          %terms = arith.divui %key_end, %c2 : index
          scf.for %d0 = %c0 to %nope step %panel {
            %columns1 = arith.constant 16 : index
            %d1 = arith.addi %d0, %columns1 : index
            %h0 = arith.constant 0 : index
            %head0 = arith.addi %first_head, %h0 : index
            %h1 = arith.constant 1 : index
            %head1 = arith.addi %first_head, %h1 : index
            %h2 = arith.constant 2 : index
            %head2 = arith.addi %first_head, %h2 : index
            %h3 = arith.constant 3 : index
            %head3 = arith.addi %first_head, %h3 : index
            %h4 = arith.constant 4 : index
            %head4 = arith.addi %first_head, %h4 : index
            %h5 = arith.constant 5 : index
            %head5 = arith.addi %first_head, %h5 : index
            %h6 = arith.constant 6 : index
            %head6 = arith.addi %first_head, %h6 : index
            %h7 = arith.constant 7 : index
            %head7 = arith.addi %first_head, %h7 : index
            %sums0:16 = scf.for %k = %c0 to %terms step %c1
                iter_args(%sum0 = %zeros, %sum1 = %zeros, %sum2 = %zeros, %sum3 = %zeros, %sum4 = %zeros, %sum5 = %zeros, %sum6 = %zeros, %sum7 = %zeros, %sum8 = %zeros, %sum9 = %zeros, %sum10 = %zeros, %sum11 = %zeros, %sum12 = %zeros, %sum13 = %zeros, %sum14 = %zeros, %sum15 = %zeros) -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>) {
              %value0 = vector.load %paired[%k, %d0] : memref<32x528xi32>, vector<16xi32>
              %value1 = vector.load %paired[%k, %d1] : memref<32x528xi32>, vector<16xi32>
              %weight0 = memref.load %weights[%k, %h0] : memref<32x16xi32>
              %weight_lanes0 = vector.broadcast %weight0 : i32 to vector<16xi32>
            %next0_a = vector.bitcast %value0 : vector<16xi32> to vector<32xbf16>
            %next0_b = vector.bitcast %weight_lanes0 : vector<16xi32> to vector<32xbf16>
            %next0 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum0, %next0_a, %next0_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

            %next1_a = vector.bitcast %value1 : vector<16xi32> to vector<32xbf16>
            %next1_b = vector.bitcast %weight_lanes0 : vector<16xi32> to vector<32xbf16>
            %next1 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum1, %next1_a, %next1_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

              %weight1 = memref.load %weights[%k, %h1] : memref<32x16xi32>
              %weight_lanes1 = vector.broadcast %weight1 : i32 to vector<16xi32>
            %next2_a = vector.bitcast %value0 : vector<16xi32> to vector<32xbf16>
            %next2_b = vector.bitcast %weight_lanes1 : vector<16xi32> to vector<32xbf16>
            %next2 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum2, %next2_a, %next2_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

            %next3_a = vector.bitcast %value1 : vector<16xi32> to vector<32xbf16>
            %next3_b = vector.bitcast %weight_lanes1 : vector<16xi32> to vector<32xbf16>
            %next3 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum3, %next3_a, %next3_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

              %weight2 = memref.load %weights[%k, %h2] : memref<32x16xi32>
              %weight_lanes2 = vector.broadcast %weight2 : i32 to vector<16xi32>
            %next4_a = vector.bitcast %value0 : vector<16xi32> to vector<32xbf16>
            %next4_b = vector.bitcast %weight_lanes2 : vector<16xi32> to vector<32xbf16>
            %next4 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum4, %next4_a, %next4_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

            %next5_a = vector.bitcast %value1 : vector<16xi32> to vector<32xbf16>
            %next5_b = vector.bitcast %weight_lanes2 : vector<16xi32> to vector<32xbf16>
            %next5 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum5, %next5_a, %next5_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

              %weight3 = memref.load %weights[%k, %h3] : memref<32x16xi32>
              %weight_lanes3 = vector.broadcast %weight3 : i32 to vector<16xi32>
            %next6_a = vector.bitcast %value0 : vector<16xi32> to vector<32xbf16>
            %next6_b = vector.bitcast %weight_lanes3 : vector<16xi32> to vector<32xbf16>
            %next6 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum6, %next6_a, %next6_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

            %next7_a = vector.bitcast %value1 : vector<16xi32> to vector<32xbf16>
            %next7_b = vector.bitcast %weight_lanes3 : vector<16xi32> to vector<32xbf16>
            %next7 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum7, %next7_a, %next7_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

              %weight4 = memref.load %weights[%k, %h4] : memref<32x16xi32>
              %weight_lanes4 = vector.broadcast %weight4 : i32 to vector<16xi32>
            %next8_a = vector.bitcast %value0 : vector<16xi32> to vector<32xbf16>
            %next8_b = vector.bitcast %weight_lanes4 : vector<16xi32> to vector<32xbf16>
            %next8 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum8, %next8_a, %next8_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

            %next9_a = vector.bitcast %value1 : vector<16xi32> to vector<32xbf16>
            %next9_b = vector.bitcast %weight_lanes4 : vector<16xi32> to vector<32xbf16>
            %next9 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum9, %next9_a, %next9_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

              %weight5 = memref.load %weights[%k, %h5] : memref<32x16xi32>
              %weight_lanes5 = vector.broadcast %weight5 : i32 to vector<16xi32>
            %next10_a = vector.bitcast %value0 : vector<16xi32> to vector<32xbf16>
            %next10_b = vector.bitcast %weight_lanes5 : vector<16xi32> to vector<32xbf16>
            %next10 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum10, %next10_a, %next10_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

            %next11_a = vector.bitcast %value1 : vector<16xi32> to vector<32xbf16>
            %next11_b = vector.bitcast %weight_lanes5 : vector<16xi32> to vector<32xbf16>
            %next11 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum11, %next11_a, %next11_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

              %weight6 = memref.load %weights[%k, %h6] : memref<32x16xi32>
              %weight_lanes6 = vector.broadcast %weight6 : i32 to vector<16xi32>
            %next12_a = vector.bitcast %value0 : vector<16xi32> to vector<32xbf16>
            %next12_b = vector.bitcast %weight_lanes6 : vector<16xi32> to vector<32xbf16>
            %next12 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum12, %next12_a, %next12_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

            %next13_a = vector.bitcast %value1 : vector<16xi32> to vector<32xbf16>
            %next13_b = vector.bitcast %weight_lanes6 : vector<16xi32> to vector<32xbf16>
            %next13 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum13, %next13_a, %next13_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

              %weight7 = memref.load %weights[%k, %h7] : memref<32x16xi32>
              %weight_lanes7 = vector.broadcast %weight7 : i32 to vector<16xi32>
            %next14_a = vector.bitcast %value0 : vector<16xi32> to vector<32xbf16>
            %next14_b = vector.bitcast %weight_lanes7 : vector<16xi32> to vector<32xbf16>
            %next14 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum14, %next14_a, %next14_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

            %next15_a = vector.bitcast %value1 : vector<16xi32> to vector<32xbf16>
            %next15_b = vector.bitcast %weight_lanes7 : vector<16xi32> to vector<32xbf16>
            %next15 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum15, %next15_a, %next15_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

              scf.yield %next0, %next1, %next2, %next3, %next4, %next5, %next6, %next7, %next8, %next9, %next10, %next11, %next12, %next13, %next14, %next15 : vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>
            }
              %factor0 = memref.load %factors[%h0] : memref<16xf32>
              %factor_lanes0 = vector.broadcast %factor0 : f32 to vector<16xf32>
            %so_far0_0_before = vector.load %values[%item, %head0, %d0] : memref<?x16x512xf32>, vector<16xf32>
            %so_far0_0_kept = arith.select %is_first, %zeros, %so_far0_0_before : vector<16xf32>
            %so_far0_0 = math.fma %so_far0_0_kept, %factor_lanes0, %sums0#0 : vector<16xf32>
            vector.store %so_far0_0, %values[%item, %head0, %d0] : memref<?x16x512xf32>, vector<16xf32>
            %so_far0_1_before = vector.load %values[%item, %head0, %d1] : memref<?x16x512xf32>, vector<16xf32>
            %so_far0_1_kept = arith.select %is_first, %zeros, %so_far0_1_before : vector<16xf32>
            %so_far0_1 = math.fma %so_far0_1_kept, %factor_lanes0, %sums0#1 : vector<16xf32>
            vector.store %so_far0_1, %values[%item, %head0, %d1] : memref<?x16x512xf32>, vector<16xf32>
              %factor1 = memref.load %factors[%h1] : memref<16xf32>
              %factor_lanes1 = vector.broadcast %factor1 : f32 to vector<16xf32>
            %so_far1_0_before = vector.load %values[%item, %head1, %d0] : memref<?x16x512xf32>, vector<16xf32>
            %so_far1_0_kept = arith.select %is_first, %zeros, %so_far1_0_before : vector<16xf32>
            %so_far1_0 = math.fma %so_far1_0_kept, %factor_lanes1, %sums0#2 : vector<16xf32>
            vector.store %so_far1_0, %values[%item, %head1, %d0] : memref<?x16x512xf32>, vector<16xf32>
            %so_far1_1_before = vector.load %values[%item, %head1, %d1] : memref<?x16x512xf32>, vector<16xf32>
            %so_far1_1_kept = arith.select %is_first, %zeros, %so_far1_1_before : vector<16xf32>
            %so_far1_1 = math.fma %so_far1_1_kept, %factor_lanes1, %sums0#3 : vector<16xf32>
            vector.store %so_far1_1, %values[%item, %head1, %d1] : memref<?x16x512xf32>, vector<16xf32>
              %factor2 = memref.load %factors[%h2] : memref<16xf32>
              %factor_lanes2 = vector.broadcast %factor2 : f32 to vector<16xf32>
            %so_far2_0_before = vector.load %values[%item, %head2, %d0] : memref<?x16x512xf32>, vector<16xf32>
            %so_far2_0_kept = arith.select %is_first, %zeros, %so_far2_0_before : vector<16xf32>
            %so_far2_0 = math.fma %so_far2_0_kept, %factor_lanes2, %sums0#4 : vector<16xf32>
            vector.store %so_far2_0, %values[%item, %head2, %d0] : memref<?x16x512xf32>, vector<16xf32>
            %so_far2_1_before = vector.load %values[%item, %head2, %d1] : memref<?x16x512xf32>, vector<16xf32>
            %so_far2_1_kept = arith.select %is_first, %zeros, %so_far2_1_before : vector<16xf32>
            %so_far2_1 = math.fma %so_far2_1_kept, %factor_lanes2, %sums0#5 : vector<16xf32>
            vector.store %so_far2_1, %values[%item, %head2, %d1] : memref<?x16x512xf32>, vector<16xf32>
              %factor3 = memref.load %factors[%h3] : memref<16xf32>
              %factor_lanes3 = vector.broadcast %factor3 : f32 to vector<16xf32>
            %so_far3_0_before = vector.load %values[%item, %head3, %d0] : memref<?x16x512xf32>, vector<16xf32>
            %so_far3_0_kept = arith.select %is_first, %zeros, %so_far3_0_before : vector<16xf32>
            %so_far3_0 = math.fma %so_far3_0_kept, %factor_lanes3, %sums0#6 : vector<16xf32>
            vector.store %so_far3_0, %values[%item, %head3, %d0] : memref<?x16x512xf32>, vector<16xf32>
            %so_far3_1_before = vector.load %values[%item, %head3, %d1] : memref<?x16x512xf32>, vector<16xf32>
            %so_far3_1_kept = arith.select %is_first, %zeros, %so_far3_1_before : vector<16xf32>
            %so_far3_1 = math.fma %so_far3_1_kept, %factor_lanes3, %sums0#7 : vector<16xf32>
            vector.store %so_far3_1, %values[%item, %head3, %d1] : memref<?x16x512xf32>, vector<16xf32>
              %factor4 = memref.load %factors[%h4] : memref<16xf32>
              %factor_lanes4 = vector.broadcast %factor4 : f32 to vector<16xf32>
            %so_far4_0_before = vector.load %values[%item, %head4, %d0] : memref<?x16x512xf32>, vector<16xf32>
            %so_far4_0_kept = arith.select %is_first, %zeros, %so_far4_0_before : vector<16xf32>
            %so_far4_0 = math.fma %so_far4_0_kept, %factor_lanes4, %sums0#8 : vector<16xf32>
            vector.store %so_far4_0, %values[%item, %head4, %d0] : memref<?x16x512xf32>, vector<16xf32>
            %so_far4_1_before = vector.load %values[%item, %head4, %d1] : memref<?x16x512xf32>, vector<16xf32>
            %so_far4_1_kept = arith.select %is_first, %zeros, %so_far4_1_before : vector<16xf32>
            %so_far4_1 = math.fma %so_far4_1_kept, %factor_lanes4, %sums0#9 : vector<16xf32>
            vector.store %so_far4_1, %values[%item, %head4, %d1] : memref<?x16x512xf32>, vector<16xf32>
              %factor5 = memref.load %factors[%h5] : memref<16xf32>
              %factor_lanes5 = vector.broadcast %factor5 : f32 to vector<16xf32>
            %so_far5_0_before = vector.load %values[%item, %head5, %d0] : memref<?x16x512xf32>, vector<16xf32>
            %so_far5_0_kept = arith.select %is_first, %zeros, %so_far5_0_before : vector<16xf32>
            %so_far5_0 = math.fma %so_far5_0_kept, %factor_lanes5, %sums0#10 : vector<16xf32>
            vector.store %so_far5_0, %values[%item, %head5, %d0] : memref<?x16x512xf32>, vector<16xf32>
            %so_far5_1_before = vector.load %values[%item, %head5, %d1] : memref<?x16x512xf32>, vector<16xf32>
            %so_far5_1_kept = arith.select %is_first, %zeros, %so_far5_1_before : vector<16xf32>
            %so_far5_1 = math.fma %so_far5_1_kept, %factor_lanes5, %sums0#11 : vector<16xf32>
            vector.store %so_far5_1, %values[%item, %head5, %d1] : memref<?x16x512xf32>, vector<16xf32>
              %factor6 = memref.load %factors[%h6] : memref<16xf32>
              %factor_lanes6 = vector.broadcast %factor6 : f32 to vector<16xf32>
            %so_far6_0_before = vector.load %values[%item, %head6, %d0] : memref<?x16x512xf32>, vector<16xf32>
            %so_far6_0_kept = arith.select %is_first, %zeros, %so_far6_0_before : vector<16xf32>
            %so_far6_0 = math.fma %so_far6_0_kept, %factor_lanes6, %sums0#12 : vector<16xf32>
            vector.store %so_far6_0, %values[%item, %head6, %d0] : memref<?x16x512xf32>, vector<16xf32>
            %so_far6_1_before = vector.load %values[%item, %head6, %d1] : memref<?x16x512xf32>, vector<16xf32>
            %so_far6_1_kept = arith.select %is_first, %zeros, %so_far6_1_before : vector<16xf32>
            %so_far6_1 = math.fma %so_far6_1_kept, %factor_lanes6, %sums0#13 : vector<16xf32>
            vector.store %so_far6_1, %values[%item, %head6, %d1] : memref<?x16x512xf32>, vector<16xf32>
              %factor7 = memref.load %factors[%h7] : memref<16xf32>
              %factor_lanes7 = vector.broadcast %factor7 : f32 to vector<16xf32>
            %so_far7_0_before = vector.load %values[%item, %head7, %d0] : memref<?x16x512xf32>, vector<16xf32>
            %so_far7_0_kept = arith.select %is_first, %zeros, %so_far7_0_before : vector<16xf32>
            %so_far7_0 = math.fma %so_far7_0_kept, %factor_lanes7, %sums0#14 : vector<16xf32>
            vector.store %so_far7_0, %values[%item, %head7, %d0] : memref<?x16x512xf32>, vector<16xf32>
            %so_far7_1_before = vector.load %values[%item, %head7, %d1] : memref<?x16x512xf32>, vector<16xf32>
            %so_far7_1_kept = arith.select %is_first, %zeros, %so_far7_1_before : vector<16xf32>
            %so_far7_1 = math.fma %so_far7_1_kept, %factor_lanes7, %sums0#15 : vector<16xf32>
            vector.store %so_far7_1, %values[%item, %head7, %d1] : memref<?x16x512xf32>, vector<16xf32>
            %h8 = arith.constant 8 : index
            %head8 = arith.addi %first_head, %h8 : index
            %h9 = arith.constant 9 : index
            %head9 = arith.addi %first_head, %h9 : index
            %h10 = arith.constant 10 : index
            %head10 = arith.addi %first_head, %h10 : index
            %h11 = arith.constant 11 : index
            %head11 = arith.addi %first_head, %h11 : index
            %h12 = arith.constant 12 : index
            %head12 = arith.addi %first_head, %h12 : index
            %h13 = arith.constant 13 : index
            %head13 = arith.addi %first_head, %h13 : index
            %h14 = arith.constant 14 : index
            %head14 = arith.addi %first_head, %h14 : index
            %h15 = arith.constant 15 : index
            %head15 = arith.addi %first_head, %h15 : index
            %sums1:16 = scf.for %k = %c0 to %terms step %c1
                iter_args(%sum0 = %zeros, %sum1 = %zeros, %sum2 = %zeros, %sum3 = %zeros, %sum4 = %zeros, %sum5 = %zeros, %sum6 = %zeros, %sum7 = %zeros, %sum8 = %zeros, %sum9 = %zeros, %sum10 = %zeros, %sum11 = %zeros, %sum12 = %zeros, %sum13 = %zeros, %sum14 = %zeros, %sum15 = %zeros) -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>) {
              %value0 = vector.load %paired[%k, %d0] : memref<32x528xi32>, vector<16xi32>
              %value1 = vector.load %paired[%k, %d1] : memref<32x528xi32>, vector<16xi32>
              %weight8 = memref.load %weights[%k, %h8] : memref<32x16xi32>
              %weight_lanes8 = vector.broadcast %weight8 : i32 to vector<16xi32>
            %next0_a = vector.bitcast %value0 : vector<16xi32> to vector<32xbf16>
            %next0_b = vector.bitcast %weight_lanes8 : vector<16xi32> to vector<32xbf16>
            %next0 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum0, %next0_a, %next0_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

            %next1_a = vector.bitcast %value1 : vector<16xi32> to vector<32xbf16>
            %next1_b = vector.bitcast %weight_lanes8 : vector<16xi32> to vector<32xbf16>
            %next1 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum1, %next1_a, %next1_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

              %weight9 = memref.load %weights[%k, %h9] : memref<32x16xi32>
              %weight_lanes9 = vector.broadcast %weight9 : i32 to vector<16xi32>
            %next2_a = vector.bitcast %value0 : vector<16xi32> to vector<32xbf16>
            %next2_b = vector.bitcast %weight_lanes9 : vector<16xi32> to vector<32xbf16>
            %next2 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum2, %next2_a, %next2_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

            %next3_a = vector.bitcast %value1 : vector<16xi32> to vector<32xbf16>
            %next3_b = vector.bitcast %weight_lanes9 : vector<16xi32> to vector<32xbf16>
            %next3 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum3, %next3_a, %next3_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

              %weight10 = memref.load %weights[%k, %h10] : memref<32x16xi32>
              %weight_lanes10 = vector.broadcast %weight10 : i32 to vector<16xi32>
            %next4_a = vector.bitcast %value0 : vector<16xi32> to vector<32xbf16>
            %next4_b = vector.bitcast %weight_lanes10 : vector<16xi32> to vector<32xbf16>
            %next4 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum4, %next4_a, %next4_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

            %next5_a = vector.bitcast %value1 : vector<16xi32> to vector<32xbf16>
            %next5_b = vector.bitcast %weight_lanes10 : vector<16xi32> to vector<32xbf16>
            %next5 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum5, %next5_a, %next5_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

              %weight11 = memref.load %weights[%k, %h11] : memref<32x16xi32>
              %weight_lanes11 = vector.broadcast %weight11 : i32 to vector<16xi32>
            %next6_a = vector.bitcast %value0 : vector<16xi32> to vector<32xbf16>
            %next6_b = vector.bitcast %weight_lanes11 : vector<16xi32> to vector<32xbf16>
            %next6 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum6, %next6_a, %next6_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

            %next7_a = vector.bitcast %value1 : vector<16xi32> to vector<32xbf16>
            %next7_b = vector.bitcast %weight_lanes11 : vector<16xi32> to vector<32xbf16>
            %next7 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum7, %next7_a, %next7_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

              %weight12 = memref.load %weights[%k, %h12] : memref<32x16xi32>
              %weight_lanes12 = vector.broadcast %weight12 : i32 to vector<16xi32>
            %next8_a = vector.bitcast %value0 : vector<16xi32> to vector<32xbf16>
            %next8_b = vector.bitcast %weight_lanes12 : vector<16xi32> to vector<32xbf16>
            %next8 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum8, %next8_a, %next8_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

            %next9_a = vector.bitcast %value1 : vector<16xi32> to vector<32xbf16>
            %next9_b = vector.bitcast %weight_lanes12 : vector<16xi32> to vector<32xbf16>
            %next9 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum9, %next9_a, %next9_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

              %weight13 = memref.load %weights[%k, %h13] : memref<32x16xi32>
              %weight_lanes13 = vector.broadcast %weight13 : i32 to vector<16xi32>
            %next10_a = vector.bitcast %value0 : vector<16xi32> to vector<32xbf16>
            %next10_b = vector.bitcast %weight_lanes13 : vector<16xi32> to vector<32xbf16>
            %next10 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum10, %next10_a, %next10_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

            %next11_a = vector.bitcast %value1 : vector<16xi32> to vector<32xbf16>
            %next11_b = vector.bitcast %weight_lanes13 : vector<16xi32> to vector<32xbf16>
            %next11 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum11, %next11_a, %next11_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

              %weight14 = memref.load %weights[%k, %h14] : memref<32x16xi32>
              %weight_lanes14 = vector.broadcast %weight14 : i32 to vector<16xi32>
            %next12_a = vector.bitcast %value0 : vector<16xi32> to vector<32xbf16>
            %next12_b = vector.bitcast %weight_lanes14 : vector<16xi32> to vector<32xbf16>
            %next12 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum12, %next12_a, %next12_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

            %next13_a = vector.bitcast %value1 : vector<16xi32> to vector<32xbf16>
            %next13_b = vector.bitcast %weight_lanes14 : vector<16xi32> to vector<32xbf16>
            %next13 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum13, %next13_a, %next13_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

              %weight15 = memref.load %weights[%k, %h15] : memref<32x16xi32>
              %weight_lanes15 = vector.broadcast %weight15 : i32 to vector<16xi32>
            %next14_a = vector.bitcast %value0 : vector<16xi32> to vector<32xbf16>
            %next14_b = vector.bitcast %weight_lanes15 : vector<16xi32> to vector<32xbf16>
            %next14 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum14, %next14_a, %next14_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

            %next15_a = vector.bitcast %value1 : vector<16xi32> to vector<32xbf16>
            %next15_b = vector.bitcast %weight_lanes15 : vector<16xi32> to vector<32xbf16>
            %next15 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum15, %next15_a, %next15_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

              scf.yield %next0, %next1, %next2, %next3, %next4, %next5, %next6, %next7, %next8, %next9, %next10, %next11, %next12, %next13, %next14, %next15 : vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>
            }
              %factor8 = memref.load %factors[%h8] : memref<16xf32>
              %factor_lanes8 = vector.broadcast %factor8 : f32 to vector<16xf32>
            %so_far8_0_before = vector.load %values[%item, %head8, %d0] : memref<?x16x512xf32>, vector<16xf32>
            %so_far8_0_kept = arith.select %is_first, %zeros, %so_far8_0_before : vector<16xf32>
            %so_far8_0 = math.fma %so_far8_0_kept, %factor_lanes8, %sums1#0 : vector<16xf32>
            vector.store %so_far8_0, %values[%item, %head8, %d0] : memref<?x16x512xf32>, vector<16xf32>
            %so_far8_1_before = vector.load %values[%item, %head8, %d1] : memref<?x16x512xf32>, vector<16xf32>
            %so_far8_1_kept = arith.select %is_first, %zeros, %so_far8_1_before : vector<16xf32>
            %so_far8_1 = math.fma %so_far8_1_kept, %factor_lanes8, %sums1#1 : vector<16xf32>
            vector.store %so_far8_1, %values[%item, %head8, %d1] : memref<?x16x512xf32>, vector<16xf32>
              %factor9 = memref.load %factors[%h9] : memref<16xf32>
              %factor_lanes9 = vector.broadcast %factor9 : f32 to vector<16xf32>
            %so_far9_0_before = vector.load %values[%item, %head9, %d0] : memref<?x16x512xf32>, vector<16xf32>
            %so_far9_0_kept = arith.select %is_first, %zeros, %so_far9_0_before : vector<16xf32>
            %so_far9_0 = math.fma %so_far9_0_kept, %factor_lanes9, %sums1#2 : vector<16xf32>
            vector.store %so_far9_0, %values[%item, %head9, %d0] : memref<?x16x512xf32>, vector<16xf32>
            %so_far9_1_before = vector.load %values[%item, %head9, %d1] : memref<?x16x512xf32>, vector<16xf32>
            %so_far9_1_kept = arith.select %is_first, %zeros, %so_far9_1_before : vector<16xf32>
            %so_far9_1 = math.fma %so_far9_1_kept, %factor_lanes9, %sums1#3 : vector<16xf32>
            vector.store %so_far9_1, %values[%item, %head9, %d1] : memref<?x16x512xf32>, vector<16xf32>
              %factor10 = memref.load %factors[%h10] : memref<16xf32>
              %factor_lanes10 = vector.broadcast %factor10 : f32 to vector<16xf32>
            %so_far10_0_before = vector.load %values[%item, %head10, %d0] : memref<?x16x512xf32>, vector<16xf32>
            %so_far10_0_kept = arith.select %is_first, %zeros, %so_far10_0_before : vector<16xf32>
            %so_far10_0 = math.fma %so_far10_0_kept, %factor_lanes10, %sums1#4 : vector<16xf32>
            vector.store %so_far10_0, %values[%item, %head10, %d0] : memref<?x16x512xf32>, vector<16xf32>
            %so_far10_1_before = vector.load %values[%item, %head10, %d1] : memref<?x16x512xf32>, vector<16xf32>
            %so_far10_1_kept = arith.select %is_first, %zeros, %so_far10_1_before : vector<16xf32>
            %so_far10_1 = math.fma %so_far10_1_kept, %factor_lanes10, %sums1#5 : vector<16xf32>
            vector.store %so_far10_1, %values[%item, %head10, %d1] : memref<?x16x512xf32>, vector<16xf32>
              %factor11 = memref.load %factors[%h11] : memref<16xf32>
              %factor_lanes11 = vector.broadcast %factor11 : f32 to vector<16xf32>
            %so_far11_0_before = vector.load %values[%item, %head11, %d0] : memref<?x16x512xf32>, vector<16xf32>
            %so_far11_0_kept = arith.select %is_first, %zeros, %so_far11_0_before : vector<16xf32>
            %so_far11_0 = math.fma %so_far11_0_kept, %factor_lanes11, %sums1#6 : vector<16xf32>
            vector.store %so_far11_0, %values[%item, %head11, %d0] : memref<?x16x512xf32>, vector<16xf32>
            %so_far11_1_before = vector.load %values[%item, %head11, %d1] : memref<?x16x512xf32>, vector<16xf32>
            %so_far11_1_kept = arith.select %is_first, %zeros, %so_far11_1_before : vector<16xf32>
            %so_far11_1 = math.fma %so_far11_1_kept, %factor_lanes11, %sums1#7 : vector<16xf32>
            vector.store %so_far11_1, %values[%item, %head11, %d1] : memref<?x16x512xf32>, vector<16xf32>
              %factor12 = memref.load %factors[%h12] : memref<16xf32>
              %factor_lanes12 = vector.broadcast %factor12 : f32 to vector<16xf32>
            %so_far12_0_before = vector.load %values[%item, %head12, %d0] : memref<?x16x512xf32>, vector<16xf32>
            %so_far12_0_kept = arith.select %is_first, %zeros, %so_far12_0_before : vector<16xf32>
            %so_far12_0 = math.fma %so_far12_0_kept, %factor_lanes12, %sums1#8 : vector<16xf32>
            vector.store %so_far12_0, %values[%item, %head12, %d0] : memref<?x16x512xf32>, vector<16xf32>
            %so_far12_1_before = vector.load %values[%item, %head12, %d1] : memref<?x16x512xf32>, vector<16xf32>
            %so_far12_1_kept = arith.select %is_first, %zeros, %so_far12_1_before : vector<16xf32>
            %so_far12_1 = math.fma %so_far12_1_kept, %factor_lanes12, %sums1#9 : vector<16xf32>
            vector.store %so_far12_1, %values[%item, %head12, %d1] : memref<?x16x512xf32>, vector<16xf32>
              %factor13 = memref.load %factors[%h13] : memref<16xf32>
              %factor_lanes13 = vector.broadcast %factor13 : f32 to vector<16xf32>
            %so_far13_0_before = vector.load %values[%item, %head13, %d0] : memref<?x16x512xf32>, vector<16xf32>
            %so_far13_0_kept = arith.select %is_first, %zeros, %so_far13_0_before : vector<16xf32>
            %so_far13_0 = math.fma %so_far13_0_kept, %factor_lanes13, %sums1#10 : vector<16xf32>
            vector.store %so_far13_0, %values[%item, %head13, %d0] : memref<?x16x512xf32>, vector<16xf32>
            %so_far13_1_before = vector.load %values[%item, %head13, %d1] : memref<?x16x512xf32>, vector<16xf32>
            %so_far13_1_kept = arith.select %is_first, %zeros, %so_far13_1_before : vector<16xf32>
            %so_far13_1 = math.fma %so_far13_1_kept, %factor_lanes13, %sums1#11 : vector<16xf32>
            vector.store %so_far13_1, %values[%item, %head13, %d1] : memref<?x16x512xf32>, vector<16xf32>
              %factor14 = memref.load %factors[%h14] : memref<16xf32>
              %factor_lanes14 = vector.broadcast %factor14 : f32 to vector<16xf32>
            %so_far14_0_before = vector.load %values[%item, %head14, %d0] : memref<?x16x512xf32>, vector<16xf32>
            %so_far14_0_kept = arith.select %is_first, %zeros, %so_far14_0_before : vector<16xf32>
            %so_far14_0 = math.fma %so_far14_0_kept, %factor_lanes14, %sums1#12 : vector<16xf32>
            vector.store %so_far14_0, %values[%item, %head14, %d0] : memref<?x16x512xf32>, vector<16xf32>
            %so_far14_1_before = vector.load %values[%item, %head14, %d1] : memref<?x16x512xf32>, vector<16xf32>
            %so_far14_1_kept = arith.select %is_first, %zeros, %so_far14_1_before : vector<16xf32>
            %so_far14_1 = math.fma %so_far14_1_kept, %factor_lanes14, %sums1#13 : vector<16xf32>
            vector.store %so_far14_1, %values[%item, %head14, %d1] : memref<?x16x512xf32>, vector<16xf32>
              %factor15 = memref.load %factors[%h15] : memref<16xf32>
              %factor_lanes15 = vector.broadcast %factor15 : f32 to vector<16xf32>
            %so_far15_0_before = vector.load %values[%item, %head15, %d0] : memref<?x16x512xf32>, vector<16xf32>
            %so_far15_0_kept = arith.select %is_first, %zeros, %so_far15_0_before : vector<16xf32>
            %so_far15_0 = math.fma %so_far15_0_kept, %factor_lanes15, %sums1#14 : vector<16xf32>
            vector.store %so_far15_0, %values[%item, %head15, %d0] : memref<?x16x512xf32>, vector<16xf32>
            %so_far15_1_before = vector.load %values[%item, %head15, %d1] : memref<?x16x512xf32>, vector<16xf32>
            %so_far15_1_kept = arith.select %is_first, %zeros, %so_far15_1_before : vector<16xf32>
            %so_far15_1 = math.fma %so_far15_1_kept, %factor_lanes15, %sums1#15 : vector<16xf32>
            vector.store %so_far15_1, %values[%item, %head15, %d1] : memref<?x16x512xf32>, vector<16xf32>
          }
        }
      }
      return
    }
  }
}
stream.executable private @fold_avx512_bf16 {
  stream.executable.export public @rows workgroups(%rows: index) -> (index, index, index) {
    %c1 = arith.constant 1 : index
    stream.return %rows, %c1, %c1 : index, index, index
  }
  builtin.module {
    func.func @rows(
      %partial_binding: !stream.binding, %maximum_binding: !stream.binding, %total_binding: !stream.binding,
      %spans_binding: !stream.binding, %count: index, %rows: index,
      %row_values_binding: !stream.binding, %row_maximum_binding: !stream.binding, %row_total_binding: !stream.binding
    ) attributes {translation_info = #iree_codegen.translation_info<pipeline = #iree_codegen.no_pipeline>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %lanes = arith.constant 16 : index
      %columns = arith.constant 288 : index
      %nope = arith.constant 512 : index
      %key_block = arith.constant 256 : index
      %key_step = arith.constant 16 : index
      %zero_i32 = arith.constant 0 : i32
      %masked = arith.constant -1 : i32
      %zero = arith.constant 0.0 : f32
      %minus_infinity = arith.constant 0xFF800000 : f32
      %no_elements = arith.constant dense<0> : vector<16xi32>
      %zeros = arith.constant dense<0.0> : vector<16xf32>
      %minus_infinities = arith.constant dense<0xFF800000> : vector<16xf32>
      %infinities = arith.constant dense<0x7F800000> : vector<16xf32>
      %least_power = arith.constant dense<-126.0> : vector<16xf32>
      %largest_power = arith.constant dense<127.0> : vector<16xf32>
      %rounder = arith.constant dense<12582912.0> : vector<16xf32>
      %exp2_0 = arith.constant dense<1.0> : vector<16xf32>
      %exp2_1 = arith.constant dense<0.693147180559945> : vector<16xf32>
      %exp2_2 = arith.constant dense<0.240226506959101> : vector<16xf32>
      %exp2_3 = arith.constant dense<0.0555041086648216> : vector<16xf32>
      %exp2_4 = arith.constant dense<0.00961812910762848> : vector<16xf32>
      %exp2_5 = arith.constant dense<0.00133335581464284> : vector<16xf32>
      %exp2_6 = arith.constant dense<0.000154035303933816> : vector<16xf32>
      %ones_i32 = arith.constant dense<1> : vector<16xi32>
      %sixteens = arith.constant dense<16> : vector<16xi32>
      %mantissa_bits = arith.constant dense<23> : vector<16xi32>
      %half_of_bfloat16 = arith.constant dense<0x7FFF> : vector<16xi32>
      %upper_half = arith.constant dense<0xFFFF0000> : vector<16xi32>
      %heads = arith.constant 16 : index
      %last_group = arith.constant 0 : index
      %blocks_at_once = arith.constant 64 : index
      %panel = arith.constant 128 : index
      %partial = stream.binding.subspan %partial_binding[%c0] : !stream.binding -> memref<?x16x512xf32>{%count}
      %maxima = stream.binding.subspan %maximum_binding[%c0] : !stream.binding -> memref<?x16xf32>{%count}
      %totals = stream.binding.subspan %total_binding[%c0] : !stream.binding -> memref<?x16xf32>{%count}
      %spans = stream.binding.subspan %spans_binding[%c0] : !stream.binding -> memref<?x2xi32>{%rows}
      %row_values = stream.binding.subspan %row_values_binding[%c0] : !stream.binding -> memref<?x16x512xf32>{%rows}
      %row_maxima = stream.binding.subspan %row_maximum_binding[%c0] : !stream.binding -> memref<?x16xf32>{%rows}
      %row_totals = stream.binding.subspan %row_total_binding[%c0] : !stream.binding -> memref<?x16xf32>{%rows}
      %weights = "memref.alloca"() <{alignment = 64 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<64x16xf32>
      %row = stream.dispatch.workgroup.id[0] : index
      %first_i32 = memref.load %spans[%row, %c0] : memref<?x2xi32>
      %first = arith.index_cast %first_i32 : i32 to index
      %blocks_i32 = memref.load %spans[%row, %c1] : memref<?x2xi32>
      %blocks = arith.index_cast %blocks_i32 : i32 to index
      // A row without blocks gets one turn, which makes it zeros.
      %blocks_to_do = arith.maxui %blocks, %c1 : index
      %end = arith.addi %first, %blocks : index

      scf.for %group_start = %c0 to %heads step %lanes {
        %h = arith.minui %group_start, %last_group : index
        %maximum = scf.for %b = %first to %end step %c1 iter_args(%so_far = %minus_infinities) -> (vector<16xf32>) {
          %block_maximum = vector.load %maxima[%b, %h] : memref<?x16xf32>, vector<16xf32>

          %larger = arith.maximumf %so_far, %block_maximum : vector<16xf32>
          scf.yield %larger : vector<16xf32>
        }
          vector.store %maximum, %row_maxima[%row, %h] : memref<?x16xf32>, vector<16xf32>

          vector.store %zeros, %row_totals[%row, %h] : memref<?x16xf32>, vector<16xf32>

      }
      scf.for %chunk = %c0 to %blocks_to_do step %blocks_at_once {
        %left = arith.subi %blocks, %chunk : index
        %count_here_any = arith.minsi %left, %blocks_at_once : index
        %count_here = arith.maxsi %count_here_any, %c0 : index
        %chunk_first = arith.addi %first, %chunk : index
        %is_first = arith.cmpi eq, %chunk, %c0 : index

        // How much each block weighs against the row's maximum.
        scf.for %group_start = %c0 to %heads step %lanes {
          %h = arith.minui %group_start, %last_group : index
          %maximum = vector.load %row_maxima[%row, %h] : memref<?x16xf32>, vector<16xf32>

          %reference_magnitude = math.absf %maximum : vector<16xf32>
          %reference_is_infinite = arith.cmpf oeq, %reference_magnitude, %infinities : vector<16xf32>
          %reference = arith.select %reference_is_infinite, %zeros, %maximum : vector<16xi1>, vector<16xf32>
          scf.for %b = %c0 to %count_here step %c1 {
            %place = arith.addi %chunk_first, %b : index
          %block_maximum = vector.load %maxima[%place, %h] : memref<?x16xf32>, vector<16xf32>

            %below = arith.subf %block_maximum, %reference : vector<16xf32>
          %weight_above = arith.maximumf %below, %least_power : vector<16xf32>
          %weight_inside = arith.minimumf %weight_above, %largest_power : vector<16xf32>
          %weight_shifted = arith.addf %weight_inside, %rounder : vector<16xf32>
          %weight_whole = arith.subf %weight_shifted, %rounder : vector<16xf32>
          %weight_rest = arith.subf %weight_inside, %weight_whole : vector<16xf32>
          %weight_5 = math.fma %exp2_6, %weight_rest, %exp2_5 : vector<16xf32>
          %weight_4 = math.fma %weight_5, %weight_rest, %exp2_4 : vector<16xf32>
          %weight_3 = math.fma %weight_4, %weight_rest, %exp2_3 : vector<16xf32>
          %weight_2 = math.fma %weight_3, %weight_rest, %exp2_2 : vector<16xf32>
          %weight_1 = math.fma %weight_2, %weight_rest, %exp2_1 : vector<16xf32>
          %weight_0 = math.fma %weight_1, %weight_rest, %exp2_0 : vector<16xf32>
          %weight_whole_bits = vector.bitcast %weight_shifted : vector<16xf32> to vector<16xi32>
          %weight_exponent = arith.shli %weight_whole_bits, %mantissa_bits : vector<16xi32>
          %weight_bits = vector.bitcast %weight_0 : vector<16xf32> to vector<16xi32>
          %weight_scaled_bits = arith.addi %weight_bits, %weight_exponent : vector<16xi32>
          %weight_power = vector.bitcast %weight_scaled_bits : vector<16xi32> to vector<16xf32>
          %weight_is_small = arith.cmpf olt, %below, %least_power : vector<16xf32>
          %weight_or_zero = arith.select %weight_is_small, %zeros, %weight_power : vector<16xi1>, vector<16xf32>
          %weight_is_large = arith.cmpf ogt, %below, %largest_power : vector<16xf32>
          %weight_or_infinity = arith.select %weight_is_large, %infinities, %weight_or_zero : vector<16xi1>, vector<16xf32>
          %weight_is_nan = arith.cmpf uno, %below, %below : vector<16xf32>
          %weight = arith.select %weight_is_nan, %below, %weight_or_infinity : vector<16xi1>, vector<16xf32>
          vector.store %weight, %weights[%b, %h] : memref<64x16xf32>, vector<16xf32>

          }
        }
        // The last group of heads may overlap the one before, so totals come after all weights are there, head by head.
        scf.for %h = %c0 to %heads step %c1 {
          %total_so_far = memref.load %row_totals[%row, %h] : memref<?x16xf32>
          %total = scf.for %b = %c0 to %count_here step %c1 iter_args(%so_far = %total_so_far) -> (f32) {
            %place = arith.addi %chunk_first, %b : index
            %block_total = memref.load %totals[%place, %h] : memref<?x16xf32>
            %weight = memref.load %weights[%b, %h] : memref<64x16xf32>
            %share = arith.mulf %block_total, %weight : f32
            %next = arith.addf %so_far, %share : f32
            scf.yield %next : f32
          }
          memref.store %total, %row_totals[%row, %h] : memref<?x16xf32>

          // Values: 8 vectors of columns in registers.
          scf.for %d = %c0 to %nope step %panel {
            %columns0 = arith.constant 0 : index
            %d0 = arith.addi %d, %columns0 : index
            %columns1 = arith.constant 16 : index
            %d1 = arith.addi %d, %columns1 : index
            %columns2 = arith.constant 32 : index
            %d2 = arith.addi %d, %columns2 : index
            %columns3 = arith.constant 48 : index
            %d3 = arith.addi %d, %columns3 : index
            %columns4 = arith.constant 64 : index
            %d4 = arith.addi %d, %columns4 : index
            %columns5 = arith.constant 80 : index
            %d5 = arith.addi %d, %columns5 : index
            %columns6 = arith.constant 96 : index
            %d6 = arith.addi %d, %columns6 : index
            %columns7 = arith.constant 112 : index
            %d7 = arith.addi %d, %columns7 : index
            %begin:8 = scf.if %is_first -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>) {
              scf.yield %zeros, %zeros, %zeros, %zeros, %zeros, %zeros, %zeros, %zeros : vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>
            } else {
              %kept0 = vector.load %row_values[%row, %h, %d0] : memref<?x16x512xf32>, vector<16xf32>
              %kept1 = vector.load %row_values[%row, %h, %d1] : memref<?x16x512xf32>, vector<16xf32>
              %kept2 = vector.load %row_values[%row, %h, %d2] : memref<?x16x512xf32>, vector<16xf32>
              %kept3 = vector.load %row_values[%row, %h, %d3] : memref<?x16x512xf32>, vector<16xf32>
              %kept4 = vector.load %row_values[%row, %h, %d4] : memref<?x16x512xf32>, vector<16xf32>
              %kept5 = vector.load %row_values[%row, %h, %d5] : memref<?x16x512xf32>, vector<16xf32>
              %kept6 = vector.load %row_values[%row, %h, %d6] : memref<?x16x512xf32>, vector<16xf32>
              %kept7 = vector.load %row_values[%row, %h, %d7] : memref<?x16x512xf32>, vector<16xf32>
              scf.yield %kept0, %kept1, %kept2, %kept3, %kept4, %kept5, %kept6, %kept7 : vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>
            }
            %sums:8 = scf.for %b = %c0 to %count_here step %c1
                iter_args(%sum0 = %begin#0, %sum1 = %begin#1, %sum2 = %begin#2, %sum3 = %begin#3, %sum4 = %begin#4, %sum5 = %begin#5, %sum6 = %begin#6, %sum7 = %begin#7) -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>) {
              %place = arith.addi %chunk_first, %b : index
              %weight = memref.load %weights[%b, %h] : memref<64x16xf32>
              %weight_lanes = vector.broadcast %weight : f32 to vector<16xf32>
              %value0 = vector.load %partial[%place, %h, %d0] : memref<?x16x512xf32>, vector<16xf32>
              %next0 = math.fma %weight_lanes, %value0, %sum0 : vector<16xf32>
              %value1 = vector.load %partial[%place, %h, %d1] : memref<?x16x512xf32>, vector<16xf32>
              %next1 = math.fma %weight_lanes, %value1, %sum1 : vector<16xf32>
              %value2 = vector.load %partial[%place, %h, %d2] : memref<?x16x512xf32>, vector<16xf32>
              %next2 = math.fma %weight_lanes, %value2, %sum2 : vector<16xf32>
              %value3 = vector.load %partial[%place, %h, %d3] : memref<?x16x512xf32>, vector<16xf32>
              %next3 = math.fma %weight_lanes, %value3, %sum3 : vector<16xf32>
              %value4 = vector.load %partial[%place, %h, %d4] : memref<?x16x512xf32>, vector<16xf32>
              %next4 = math.fma %weight_lanes, %value4, %sum4 : vector<16xf32>
              %value5 = vector.load %partial[%place, %h, %d5] : memref<?x16x512xf32>, vector<16xf32>
              %next5 = math.fma %weight_lanes, %value5, %sum5 : vector<16xf32>
              %value6 = vector.load %partial[%place, %h, %d6] : memref<?x16x512xf32>, vector<16xf32>
              %next6 = math.fma %weight_lanes, %value6, %sum6 : vector<16xf32>
              %value7 = vector.load %partial[%place, %h, %d7] : memref<?x16x512xf32>, vector<16xf32>
              %next7 = math.fma %weight_lanes, %value7, %sum7 : vector<16xf32>
              scf.yield %next0, %next1, %next2, %next3, %next4, %next5, %next6, %next7 : vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>
            }
            vector.store %sums#0, %row_values[%row, %h, %d0] : memref<?x16x512xf32>, vector<16xf32>
            vector.store %sums#1, %row_values[%row, %h, %d1] : memref<?x16x512xf32>, vector<16xf32>
            vector.store %sums#2, %row_values[%row, %h, %d2] : memref<?x16x512xf32>, vector<16xf32>
            vector.store %sums#3, %row_values[%row, %h, %d3] : memref<?x16x512xf32>, vector<16xf32>
            vector.store %sums#4, %row_values[%row, %h, %d4] : memref<?x16x512xf32>, vector<16xf32>
            vector.store %sums#5, %row_values[%row, %h, %d5] : memref<?x16x512xf32>, vector<16xf32>
            vector.store %sums#6, %row_values[%row, %h, %d6] : memref<?x16x512xf32>, vector<16xf32>
            vector.store %sums#7, %row_values[%row, %h, %d7] : memref<?x16x512xf32>, vector<16xf32>
          }
        }
      }
      return
    }
  }
}

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
  %query_rows = tensor.collapse_shape %query [[0, 1], [2], [3]] : !query into !query_rows
  %indices_rows = tensor.collapse_shape %indices [[0, 1], [2]] : !indices into !indices_rows
  %cache = tensor.collapse_shape %key [[0, 1], [2]] : !key into !cache

  %count = tensor.dim %items, %c0 : !items
  %cache_size = tensor.dim %cache, %c0 : !cache
  %selected = tensor.dim %indices_rows, %c1 : !indices_rows
  %last_selected = arith.subi %selected, %c1 : index
  %query_extent_index = tensor.dim %query, %c1 : !query
  %query_extent = arith.index_cast %query_extent_index : index to i32
  %kv_extent_index = tensor.dim %key, %c1 : !key
  %kv_extent = arith.index_cast %kv_extent_index : index to i32

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
    %query_length = tensor.extract %query_lengths[%batch] : !lengths
    %query_start = arith.muli %batch_i32, %query_extent : i32
    %kv_length = tensor.extract %kv_lengths[%batch] : !lengths
    %kv_start = arith.muli %batch_i32, %kv_extent : i32

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
    %tokens_per_place = arith.constant 1 : index
    %place = arith.divui %slot, %tokens_per_place : index
    %offset_index = arith.remui %slot, %tokens_per_place : index
    %offset = arith.index_cast %offset_index : index to i32
    %listed = arith.cmpi ult, %place, %selected : index
    %place_safe = arith.minui %place, %last_selected : index
    %query_row = arith.index_cast %query_row_i32 : i32 to index
    %id = tensor.extract %indices_rows[%query_row, %place_safe] : !indices_rows

    // An id is compared with the limit by its token number; divided, so that no id overflows.
    %sparse_block_size = arith.constant 1 : i32
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
  %rows = tensor.dim %query_rows, %c0 : !query_rows
  %scale_log2_e = arith.mulf %scale, %log2_e : f32
  %partial, %maximum, %sum = flow.dispatch @attend_avx512_bf16::@items[%count](
    %query_rows, %cache, %slots, %items, %rows, %cache_size, %count, %scale_log2_e
  ) : (
    !query_rows{%rows}, !cache{%cache_size}, !item_keys{%count}, !items{%count}, index, index, index, f32
  ) -> (!partial{%count}, !per_head{%count}, !per_head{%count})
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
  %count = tensor.dim %partial, %c0 : !partial
  %row_values, %row_maximum, %row_total = flow.dispatch @fold_avx512_bf16::@rows[%rows](
    %partial, %maximum, %total, %spans, %count, %rows
  ) : (
    !partial{%count}, !per_head{%count}, !per_head{%count}, tensor<?x2xi32>{%rows}, index, index
  ) -> (!partial{%rows}, !per_head{%rows}, !per_head{%rows})


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
