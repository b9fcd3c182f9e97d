!query = tensor<?x?x4x576xbf16>
!query_rows = tensor<?x4x576xbf16>
!key = tensor<?x?x656xi8>
!cache = tensor<?x656xi8>
!cache_as_query_dtype = tensor<?x328xbf16>
!cache_as_f32 = tensor<?x164xf32>
!indices = tensor<?x?x?xi32>
!indices_rows = tensor<?x?xi32>
!lengths = tensor<?xi32>
!item_query_nope = tensor<?x4x512xf32>
!item_query_rope = tensor<?x4x64xf32>
!item_rope = tensor<?x256x64xf32>
!items = tensor<?x3xi32> // query row, batch, key block of the row
!item_keys = tensor<?x256xi32>
!item_query = tensor<?x4x576xf32>
!item_nope = tensor<?x256x512xf32>
!item_scores = tensor<?x4x256xf32>
!item_weights = tensor<?x4x256xf32>
!item_partial = tensor<?x4x512xf32>
!item_per_head = tensor<?x4xf32>
!partial = tensor<?x4x512xf32>
!per_item = tensor<?xf32>
!per_head = tensor<?x4xf32>
!sinks = tensor<4xf32>
!folded = tensor<?x4x512xbf16>

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


module @kv_quant_sparse_flash_attention_layout_q_BSND_layout_kv_PA_BSND_dtype_q_bfloat16_dtype_kv_int8_heads_4_sparse_block_1_sparse_mode_3_byte_order_ascend {

stream.executable private @attend_avx2 {
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
      %lanes = arith.constant 8 : index
      %columns = arith.constant 576 : index
      %nope = arith.constant 512 : index
      %key_block = arith.constant 256 : index
      %key_step = arith.constant 8 : index
      %zero_i32 = arith.constant 0 : i32
      %masked = arith.constant -1 : i32
      %zero = arith.constant 0.0 : f32
      %minus_infinity = arith.constant 0xFF800000 : f32
      %no_elements = arith.constant dense<0.0> : vector<8xf32>
      %zeros = arith.constant dense<0.0> : vector<8xf32>
      %minus_infinities = arith.constant dense<0xFF800000> : vector<8xf32>
      %infinities = arith.constant dense<0x7F800000> : vector<8xf32>
      %least_power = arith.constant dense<-126.0> : vector<8xf32>
      %largest_power = arith.constant dense<127.0> : vector<8xf32>
      %rounder = arith.constant dense<12582912.0> : vector<8xf32>
      %exp2_0 = arith.constant dense<1.0> : vector<8xf32>
      %exp2_1 = arith.constant dense<0.693147180559945> : vector<8xf32>
      %exp2_2 = arith.constant dense<0.240226506959101> : vector<8xf32>
      %exp2_3 = arith.constant dense<0.0555041086648216> : vector<8xf32>
      %exp2_4 = arith.constant dense<0.00961812910762848> : vector<8xf32>
      %exp2_5 = arith.constant dense<0.00133335581464284> : vector<8xf32>
      %exp2_6 = arith.constant dense<0.000154035303933816> : vector<8xf32>
      %ones_i32 = arith.constant dense<1> : vector<8xi32>
      %sixteens = arith.constant dense<16> : vector<8xi32>
      %mantissa_bits = arith.constant dense<23> : vector<8xi32>
      %half_of_bfloat16 = arith.constant dense<0x7FFF> : vector<8xi32>
      %upper_half = arith.constant dense<0xFFFF0000> : vector<8xi32>
      %slots = stream.binding.subspan %slots_binding[%c0] : !stream.binding -> memref<?x256xi32>{%count}
      %items = stream.binding.subspan %items_binding[%c0] : !stream.binding -> memref<?x3xi32>{%count}
      %values = stream.binding.subspan %values_binding[%c0] : !stream.binding -> memref<?x4x512xf32>{%count}
      %maxima = stream.binding.subspan %maximum_binding[%c0] : !stream.binding -> memref<?x4xf32>{%count}
      %totals = stream.binding.subspan %total_binding[%c0] : !stream.binding -> memref<?x4xf32>{%count}
      %item = stream.dispatch.workgroup.id[0] : index
      %query_row_i32 = memref.load %items[%item, %c0] : memref<?x3xi32>
      %query_row = arith.index_cast %query_row_i32 : i32 to index
      %width = arith.constant 576 : index
      %nan = arith.constant 0x7FC00000 : f32
      %rope_at = arith.constant 256 : index
      %query = stream.binding.subspan %query_binding[%c0] : !stream.binding -> memref<?x4x576xi16>{%rows}
      %cache = stream.binding.subspan %cache_binding[%c0] : !stream.binding -> memref<?x656xi8>{%cache_size}
      %cache_short = stream.binding.subspan %cache_binding[%c0] : !stream.binding -> memref<?x328xi16>{%cache_size}
      %run = arith.constant 32 : index

      %score_factor = arith.addf %scale_log2_e, %zero : f32
      %score_factor_lanes = vector.broadcast %score_factor : f32 to vector<8xf32>

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

      %keys = "memref.alloca"() <{alignment = 64 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<64x592xf32>
      %ahead = arith.constant 8 : index
      %last_slot = arith.constant 255 : index
      %scores = "memref.alloca"() <{alignment = 64 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<4x64xf32>
      %packed = "memref.alloca"() <{alignment = 64 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<4x576xf32>
      %keys_at_once = arith.constant 2 : index
      %some_factors = vector.broadcast %score_factor : f32 to vector<2xf32>
      %some_minus_infinities = arith.constant dense<0xFF800000> : vector<2xf32>
      %some_zeros_i32 = arith.constant dense<0> : vector<2xi32>
      %head0 = arith.constant 0 : index
          scf.for %d = %c0 to %width step %lanes {
            %stored = vector.load %query[%query_row, %head0, %d] : memref<?x4x576xi16>, vector<8xi16>
          %stored_f32_lower = arith.extui %stored : vector<8xi16> to vector<8xi32>
          %stored_f32_upper = arith.shli %stored_f32_lower, %sixteens : vector<8xi32>
          %stored_f32 = vector.bitcast %stored_f32_upper : vector<8xi32> to vector<8xf32>

          vector.store %stored_f32, %packed[%head0, %d] : memref<4x576xf32>, vector<8xf32>

          }
      %head1 = arith.constant 1 : index
          scf.for %d = %c0 to %width step %lanes {
            %stored = vector.load %query[%query_row, %head1, %d] : memref<?x4x576xi16>, vector<8xi16>
          %stored_f32_lower = arith.extui %stored : vector<8xi16> to vector<8xi32>
          %stored_f32_upper = arith.shli %stored_f32_lower, %sixteens : vector<8xi32>
          %stored_f32 = vector.bitcast %stored_f32_upper : vector<8xi32> to vector<8xf32>

          vector.store %stored_f32, %packed[%head1, %d] : memref<4x576xf32>, vector<8xf32>

          }
      %head2 = arith.constant 2 : index
          scf.for %d = %c0 to %width step %lanes {
            %stored = vector.load %query[%query_row, %head2, %d] : memref<?x4x576xi16>, vector<8xi16>
          %stored_f32_lower = arith.extui %stored : vector<8xi16> to vector<8xi32>
          %stored_f32_upper = arith.shli %stored_f32_lower, %sixteens : vector<8xi32>
          %stored_f32 = vector.bitcast %stored_f32_upper : vector<8xi32> to vector<8xf32>

          vector.store %stored_f32, %packed[%head2, %d] : memref<4x576xf32>, vector<8xf32>

          }
      %head3 = arith.constant 3 : index
          scf.for %d = %c0 to %width step %lanes {
            %stored = vector.load %query[%query_row, %head3, %d] : memref<?x4x576xi16>, vector<8xi16>
          %stored_f32_lower = arith.extui %stored : vector<8xi16> to vector<8xi32>
          %stored_f32_upper = arith.shli %stored_f32_lower, %sixteens : vector<8xi32>
          %stored_f32 = vector.bitcast %stored_f32_upper : vector<8xi32> to vector<8xf32>

          vector.store %stored_f32, %packed[%head3, %d] : memref<4x576xf32>, vector<8xf32>

          }

      // Before the first pass.
      memref.store %minus_infinity, %maxima[%item, %head0] : memref<?x4xf32>
      memref.store %zero, %totals[%item, %head0] : memref<?x4xf32>
      memref.store %minus_infinity, %maxima[%item, %head1] : memref<?x4xf32>
      memref.store %zero, %totals[%item, %head1] : memref<?x4xf32>
      memref.store %minus_infinity, %maxima[%item, %head2] : memref<?x4xf32>
      memref.store %zero, %totals[%item, %head2] : memref<?x4xf32>
      memref.store %minus_infinity, %maxima[%item, %head3] : memref<?x4xf32>
      memref.store %zero, %totals[%item, %head3] : memref<?x4xf32>
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
          %tile_scale_lanes0 = vector.broadcast %tile_scale0 : f32 to vector<8xf32>
          %tile_start0 = arith.constant 0 : index
          %tile_end0 = arith.constant 128 : index
          scf.for %d = %tile_start0 to %tile_end0 step %run {
              %decoded_offset0 = arith.constant 0 : index
              %decoded_place0 = arith.addi %d, %decoded_offset0 : index
              %decoded_codes0 = vector.load %cache[%row, %decoded_place0] : memref<?x656xi8>, vector<8xi8>
              %decoded0 = arith.sitofp %decoded_codes0 : vector<8xi8> to vector<8xf32>
              %decoded_offset1 = arith.constant 8 : index
              %decoded_place1 = arith.addi %d, %decoded_offset1 : index
              %decoded_codes1 = vector.load %cache[%row, %decoded_place1] : memref<?x656xi8>, vector<8xi8>
              %decoded1 = arith.sitofp %decoded_codes1 : vector<8xi8> to vector<8xf32>
              %decoded_offset2 = arith.constant 16 : index
              %decoded_place2 = arith.addi %d, %decoded_offset2 : index
              %decoded_codes2 = vector.load %cache[%row, %decoded_place2] : memref<?x656xi8>, vector<8xi8>
              %decoded2 = arith.sitofp %decoded_codes2 : vector<8xi8> to vector<8xf32>
              %decoded_offset3 = arith.constant 24 : index
              %decoded_place3 = arith.addi %d, %decoded_offset3 : index
              %decoded_codes3 = vector.load %cache[%row, %decoded_place3] : memref<?x656xi8>, vector<8xi8>
              %decoded3 = arith.sitofp %decoded_codes3 : vector<8xi8> to vector<8xf32>

            %scaled0 = arith.mulf %decoded0, %tile_scale_lanes0 : vector<8xf32>
            %offset0 = arith.constant 0 : index
            %d0 = arith.addi %d, %offset0 : index
          %scaled0_rounded_rounding_bits = vector.bitcast %scaled0 : vector<8xf32> to vector<8xi32>
          %scaled0_rounded_rounding_upper = arith.shrui %scaled0_rounded_rounding_bits, %sixteens : vector<8xi32>
          %scaled0_rounded_rounding_odd = arith.andi %scaled0_rounded_rounding_upper, %ones_i32 : vector<8xi32>
          %scaled0_rounded_rounding_bias = arith.addi %scaled0_rounded_rounding_odd, %half_of_bfloat16 : vector<8xi32>
          %scaled0_rounded_rounding = arith.addi %scaled0_rounded_rounding_bits, %scaled0_rounded_rounding_bias : vector<8xi32>

          %scaled0_rounded_masked = arith.andi %scaled0_rounded_rounding, %upper_half : vector<8xi32>
          %scaled0_rounded = vector.bitcast %scaled0_rounded_masked : vector<8xi32> to vector<8xf32>

          vector.store %scaled0_rounded, %keys[%k, %d0] : memref<64x592xf32>, vector<8xf32>

            %scaled1 = arith.mulf %decoded1, %tile_scale_lanes0 : vector<8xf32>
            %offset1 = arith.constant 8 : index
            %d1 = arith.addi %d, %offset1 : index
          %scaled1_rounded_rounding_bits = vector.bitcast %scaled1 : vector<8xf32> to vector<8xi32>
          %scaled1_rounded_rounding_upper = arith.shrui %scaled1_rounded_rounding_bits, %sixteens : vector<8xi32>
          %scaled1_rounded_rounding_odd = arith.andi %scaled1_rounded_rounding_upper, %ones_i32 : vector<8xi32>
          %scaled1_rounded_rounding_bias = arith.addi %scaled1_rounded_rounding_odd, %half_of_bfloat16 : vector<8xi32>
          %scaled1_rounded_rounding = arith.addi %scaled1_rounded_rounding_bits, %scaled1_rounded_rounding_bias : vector<8xi32>

          %scaled1_rounded_masked = arith.andi %scaled1_rounded_rounding, %upper_half : vector<8xi32>
          %scaled1_rounded = vector.bitcast %scaled1_rounded_masked : vector<8xi32> to vector<8xf32>

          vector.store %scaled1_rounded, %keys[%k, %d1] : memref<64x592xf32>, vector<8xf32>

            %scaled2 = arith.mulf %decoded2, %tile_scale_lanes0 : vector<8xf32>
            %offset2 = arith.constant 16 : index
            %d2 = arith.addi %d, %offset2 : index
          %scaled2_rounded_rounding_bits = vector.bitcast %scaled2 : vector<8xf32> to vector<8xi32>
          %scaled2_rounded_rounding_upper = arith.shrui %scaled2_rounded_rounding_bits, %sixteens : vector<8xi32>
          %scaled2_rounded_rounding_odd = arith.andi %scaled2_rounded_rounding_upper, %ones_i32 : vector<8xi32>
          %scaled2_rounded_rounding_bias = arith.addi %scaled2_rounded_rounding_odd, %half_of_bfloat16 : vector<8xi32>
          %scaled2_rounded_rounding = arith.addi %scaled2_rounded_rounding_bits, %scaled2_rounded_rounding_bias : vector<8xi32>

          %scaled2_rounded_masked = arith.andi %scaled2_rounded_rounding, %upper_half : vector<8xi32>
          %scaled2_rounded = vector.bitcast %scaled2_rounded_masked : vector<8xi32> to vector<8xf32>

          vector.store %scaled2_rounded, %keys[%k, %d2] : memref<64x592xf32>, vector<8xf32>

            %scaled3 = arith.mulf %decoded3, %tile_scale_lanes0 : vector<8xf32>
            %offset3 = arith.constant 24 : index
            %d3 = arith.addi %d, %offset3 : index
          %scaled3_rounded_rounding_bits = vector.bitcast %scaled3 : vector<8xf32> to vector<8xi32>
          %scaled3_rounded_rounding_upper = arith.shrui %scaled3_rounded_rounding_bits, %sixteens : vector<8xi32>
          %scaled3_rounded_rounding_odd = arith.andi %scaled3_rounded_rounding_upper, %ones_i32 : vector<8xi32>
          %scaled3_rounded_rounding_bias = arith.addi %scaled3_rounded_rounding_odd, %half_of_bfloat16 : vector<8xi32>
          %scaled3_rounded_rounding = arith.addi %scaled3_rounded_rounding_bits, %scaled3_rounded_rounding_bias : vector<8xi32>

          %scaled3_rounded_masked = arith.andi %scaled3_rounded_rounding, %upper_half : vector<8xi32>
          %scaled3_rounded = vector.bitcast %scaled3_rounded_masked : vector<8xi32> to vector<8xf32>

          vector.store %scaled3_rounded, %keys[%k, %d3] : memref<64x592xf32>, vector<8xf32>

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
          %tile_scale_lanes1 = vector.broadcast %tile_scale1 : f32 to vector<8xf32>
          %tile_start1 = arith.constant 128 : index
          %tile_end1 = arith.constant 256 : index
          scf.for %d = %tile_start1 to %tile_end1 step %run {
              %decoded_offset0 = arith.constant 0 : index
              %decoded_place0 = arith.addi %d, %decoded_offset0 : index
              %decoded_codes0 = vector.load %cache[%row, %decoded_place0] : memref<?x656xi8>, vector<8xi8>
              %decoded0 = arith.sitofp %decoded_codes0 : vector<8xi8> to vector<8xf32>
              %decoded_offset1 = arith.constant 8 : index
              %decoded_place1 = arith.addi %d, %decoded_offset1 : index
              %decoded_codes1 = vector.load %cache[%row, %decoded_place1] : memref<?x656xi8>, vector<8xi8>
              %decoded1 = arith.sitofp %decoded_codes1 : vector<8xi8> to vector<8xf32>
              %decoded_offset2 = arith.constant 16 : index
              %decoded_place2 = arith.addi %d, %decoded_offset2 : index
              %decoded_codes2 = vector.load %cache[%row, %decoded_place2] : memref<?x656xi8>, vector<8xi8>
              %decoded2 = arith.sitofp %decoded_codes2 : vector<8xi8> to vector<8xf32>
              %decoded_offset3 = arith.constant 24 : index
              %decoded_place3 = arith.addi %d, %decoded_offset3 : index
              %decoded_codes3 = vector.load %cache[%row, %decoded_place3] : memref<?x656xi8>, vector<8xi8>
              %decoded3 = arith.sitofp %decoded_codes3 : vector<8xi8> to vector<8xf32>

            %scaled0 = arith.mulf %decoded0, %tile_scale_lanes1 : vector<8xf32>
            %offset0 = arith.constant 0 : index
            %d0 = arith.addi %d, %offset0 : index
          %scaled0_rounded_rounding_bits = vector.bitcast %scaled0 : vector<8xf32> to vector<8xi32>
          %scaled0_rounded_rounding_upper = arith.shrui %scaled0_rounded_rounding_bits, %sixteens : vector<8xi32>
          %scaled0_rounded_rounding_odd = arith.andi %scaled0_rounded_rounding_upper, %ones_i32 : vector<8xi32>
          %scaled0_rounded_rounding_bias = arith.addi %scaled0_rounded_rounding_odd, %half_of_bfloat16 : vector<8xi32>
          %scaled0_rounded_rounding = arith.addi %scaled0_rounded_rounding_bits, %scaled0_rounded_rounding_bias : vector<8xi32>

          %scaled0_rounded_masked = arith.andi %scaled0_rounded_rounding, %upper_half : vector<8xi32>
          %scaled0_rounded = vector.bitcast %scaled0_rounded_masked : vector<8xi32> to vector<8xf32>

          vector.store %scaled0_rounded, %keys[%k, %d0] : memref<64x592xf32>, vector<8xf32>

            %scaled1 = arith.mulf %decoded1, %tile_scale_lanes1 : vector<8xf32>
            %offset1 = arith.constant 8 : index
            %d1 = arith.addi %d, %offset1 : index
          %scaled1_rounded_rounding_bits = vector.bitcast %scaled1 : vector<8xf32> to vector<8xi32>
          %scaled1_rounded_rounding_upper = arith.shrui %scaled1_rounded_rounding_bits, %sixteens : vector<8xi32>
          %scaled1_rounded_rounding_odd = arith.andi %scaled1_rounded_rounding_upper, %ones_i32 : vector<8xi32>
          %scaled1_rounded_rounding_bias = arith.addi %scaled1_rounded_rounding_odd, %half_of_bfloat16 : vector<8xi32>
          %scaled1_rounded_rounding = arith.addi %scaled1_rounded_rounding_bits, %scaled1_rounded_rounding_bias : vector<8xi32>

          %scaled1_rounded_masked = arith.andi %scaled1_rounded_rounding, %upper_half : vector<8xi32>
          %scaled1_rounded = vector.bitcast %scaled1_rounded_masked : vector<8xi32> to vector<8xf32>

          vector.store %scaled1_rounded, %keys[%k, %d1] : memref<64x592xf32>, vector<8xf32>

            %scaled2 = arith.mulf %decoded2, %tile_scale_lanes1 : vector<8xf32>
            %offset2 = arith.constant 16 : index
            %d2 = arith.addi %d, %offset2 : index
          %scaled2_rounded_rounding_bits = vector.bitcast %scaled2 : vector<8xf32> to vector<8xi32>
          %scaled2_rounded_rounding_upper = arith.shrui %scaled2_rounded_rounding_bits, %sixteens : vector<8xi32>
          %scaled2_rounded_rounding_odd = arith.andi %scaled2_rounded_rounding_upper, %ones_i32 : vector<8xi32>
          %scaled2_rounded_rounding_bias = arith.addi %scaled2_rounded_rounding_odd, %half_of_bfloat16 : vector<8xi32>
          %scaled2_rounded_rounding = arith.addi %scaled2_rounded_rounding_bits, %scaled2_rounded_rounding_bias : vector<8xi32>

          %scaled2_rounded_masked = arith.andi %scaled2_rounded_rounding, %upper_half : vector<8xi32>
          %scaled2_rounded = vector.bitcast %scaled2_rounded_masked : vector<8xi32> to vector<8xf32>

          vector.store %scaled2_rounded, %keys[%k, %d2] : memref<64x592xf32>, vector<8xf32>

            %scaled3 = arith.mulf %decoded3, %tile_scale_lanes1 : vector<8xf32>
            %offset3 = arith.constant 24 : index
            %d3 = arith.addi %d, %offset3 : index
          %scaled3_rounded_rounding_bits = vector.bitcast %scaled3 : vector<8xf32> to vector<8xi32>
          %scaled3_rounded_rounding_upper = arith.shrui %scaled3_rounded_rounding_bits, %sixteens : vector<8xi32>
          %scaled3_rounded_rounding_odd = arith.andi %scaled3_rounded_rounding_upper, %ones_i32 : vector<8xi32>
          %scaled3_rounded_rounding_bias = arith.addi %scaled3_rounded_rounding_odd, %half_of_bfloat16 : vector<8xi32>
          %scaled3_rounded_rounding = arith.addi %scaled3_rounded_rounding_bits, %scaled3_rounded_rounding_bias : vector<8xi32>

          %scaled3_rounded_masked = arith.andi %scaled3_rounded_rounding, %upper_half : vector<8xi32>
          %scaled3_rounded = vector.bitcast %scaled3_rounded_masked : vector<8xi32> to vector<8xf32>

          vector.store %scaled3_rounded, %keys[%k, %d3] : memref<64x592xf32>, vector<8xf32>

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
          %tile_scale_lanes2 = vector.broadcast %tile_scale2 : f32 to vector<8xf32>
          %tile_start2 = arith.constant 256 : index
          %tile_end2 = arith.constant 384 : index
          scf.for %d = %tile_start2 to %tile_end2 step %run {
              %decoded_offset0 = arith.constant 0 : index
              %decoded_place0 = arith.addi %d, %decoded_offset0 : index
              %decoded_codes0 = vector.load %cache[%row, %decoded_place0] : memref<?x656xi8>, vector<8xi8>
              %decoded0 = arith.sitofp %decoded_codes0 : vector<8xi8> to vector<8xf32>
              %decoded_offset1 = arith.constant 8 : index
              %decoded_place1 = arith.addi %d, %decoded_offset1 : index
              %decoded_codes1 = vector.load %cache[%row, %decoded_place1] : memref<?x656xi8>, vector<8xi8>
              %decoded1 = arith.sitofp %decoded_codes1 : vector<8xi8> to vector<8xf32>
              %decoded_offset2 = arith.constant 16 : index
              %decoded_place2 = arith.addi %d, %decoded_offset2 : index
              %decoded_codes2 = vector.load %cache[%row, %decoded_place2] : memref<?x656xi8>, vector<8xi8>
              %decoded2 = arith.sitofp %decoded_codes2 : vector<8xi8> to vector<8xf32>
              %decoded_offset3 = arith.constant 24 : index
              %decoded_place3 = arith.addi %d, %decoded_offset3 : index
              %decoded_codes3 = vector.load %cache[%row, %decoded_place3] : memref<?x656xi8>, vector<8xi8>
              %decoded3 = arith.sitofp %decoded_codes3 : vector<8xi8> to vector<8xf32>

            %scaled0 = arith.mulf %decoded0, %tile_scale_lanes2 : vector<8xf32>
            %offset0 = arith.constant 0 : index
            %d0 = arith.addi %d, %offset0 : index
          %scaled0_rounded_rounding_bits = vector.bitcast %scaled0 : vector<8xf32> to vector<8xi32>
          %scaled0_rounded_rounding_upper = arith.shrui %scaled0_rounded_rounding_bits, %sixteens : vector<8xi32>
          %scaled0_rounded_rounding_odd = arith.andi %scaled0_rounded_rounding_upper, %ones_i32 : vector<8xi32>
          %scaled0_rounded_rounding_bias = arith.addi %scaled0_rounded_rounding_odd, %half_of_bfloat16 : vector<8xi32>
          %scaled0_rounded_rounding = arith.addi %scaled0_rounded_rounding_bits, %scaled0_rounded_rounding_bias : vector<8xi32>

          %scaled0_rounded_masked = arith.andi %scaled0_rounded_rounding, %upper_half : vector<8xi32>
          %scaled0_rounded = vector.bitcast %scaled0_rounded_masked : vector<8xi32> to vector<8xf32>

          vector.store %scaled0_rounded, %keys[%k, %d0] : memref<64x592xf32>, vector<8xf32>

            %scaled1 = arith.mulf %decoded1, %tile_scale_lanes2 : vector<8xf32>
            %offset1 = arith.constant 8 : index
            %d1 = arith.addi %d, %offset1 : index
          %scaled1_rounded_rounding_bits = vector.bitcast %scaled1 : vector<8xf32> to vector<8xi32>
          %scaled1_rounded_rounding_upper = arith.shrui %scaled1_rounded_rounding_bits, %sixteens : vector<8xi32>
          %scaled1_rounded_rounding_odd = arith.andi %scaled1_rounded_rounding_upper, %ones_i32 : vector<8xi32>
          %scaled1_rounded_rounding_bias = arith.addi %scaled1_rounded_rounding_odd, %half_of_bfloat16 : vector<8xi32>
          %scaled1_rounded_rounding = arith.addi %scaled1_rounded_rounding_bits, %scaled1_rounded_rounding_bias : vector<8xi32>

          %scaled1_rounded_masked = arith.andi %scaled1_rounded_rounding, %upper_half : vector<8xi32>
          %scaled1_rounded = vector.bitcast %scaled1_rounded_masked : vector<8xi32> to vector<8xf32>

          vector.store %scaled1_rounded, %keys[%k, %d1] : memref<64x592xf32>, vector<8xf32>

            %scaled2 = arith.mulf %decoded2, %tile_scale_lanes2 : vector<8xf32>
            %offset2 = arith.constant 16 : index
            %d2 = arith.addi %d, %offset2 : index
          %scaled2_rounded_rounding_bits = vector.bitcast %scaled2 : vector<8xf32> to vector<8xi32>
          %scaled2_rounded_rounding_upper = arith.shrui %scaled2_rounded_rounding_bits, %sixteens : vector<8xi32>
          %scaled2_rounded_rounding_odd = arith.andi %scaled2_rounded_rounding_upper, %ones_i32 : vector<8xi32>
          %scaled2_rounded_rounding_bias = arith.addi %scaled2_rounded_rounding_odd, %half_of_bfloat16 : vector<8xi32>
          %scaled2_rounded_rounding = arith.addi %scaled2_rounded_rounding_bits, %scaled2_rounded_rounding_bias : vector<8xi32>

          %scaled2_rounded_masked = arith.andi %scaled2_rounded_rounding, %upper_half : vector<8xi32>
          %scaled2_rounded = vector.bitcast %scaled2_rounded_masked : vector<8xi32> to vector<8xf32>

          vector.store %scaled2_rounded, %keys[%k, %d2] : memref<64x592xf32>, vector<8xf32>

            %scaled3 = arith.mulf %decoded3, %tile_scale_lanes2 : vector<8xf32>
            %offset3 = arith.constant 24 : index
            %d3 = arith.addi %d, %offset3 : index
          %scaled3_rounded_rounding_bits = vector.bitcast %scaled3 : vector<8xf32> to vector<8xi32>
          %scaled3_rounded_rounding_upper = arith.shrui %scaled3_rounded_rounding_bits, %sixteens : vector<8xi32>
          %scaled3_rounded_rounding_odd = arith.andi %scaled3_rounded_rounding_upper, %ones_i32 : vector<8xi32>
          %scaled3_rounded_rounding_bias = arith.addi %scaled3_rounded_rounding_odd, %half_of_bfloat16 : vector<8xi32>
          %scaled3_rounded_rounding = arith.addi %scaled3_rounded_rounding_bits, %scaled3_rounded_rounding_bias : vector<8xi32>

          %scaled3_rounded_masked = arith.andi %scaled3_rounded_rounding, %upper_half : vector<8xi32>
          %scaled3_rounded = vector.bitcast %scaled3_rounded_masked : vector<8xi32> to vector<8xf32>

          vector.store %scaled3_rounded, %keys[%k, %d3] : memref<64x592xf32>, vector<8xf32>

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
          %tile_scale_lanes3 = vector.broadcast %tile_scale3 : f32 to vector<8xf32>
          %tile_start3 = arith.constant 384 : index
          %tile_end3 = arith.constant 512 : index
          scf.for %d = %tile_start3 to %tile_end3 step %run {
              %decoded_offset0 = arith.constant 0 : index
              %decoded_place0 = arith.addi %d, %decoded_offset0 : index
              %decoded_codes0 = vector.load %cache[%row, %decoded_place0] : memref<?x656xi8>, vector<8xi8>
              %decoded0 = arith.sitofp %decoded_codes0 : vector<8xi8> to vector<8xf32>
              %decoded_offset1 = arith.constant 8 : index
              %decoded_place1 = arith.addi %d, %decoded_offset1 : index
              %decoded_codes1 = vector.load %cache[%row, %decoded_place1] : memref<?x656xi8>, vector<8xi8>
              %decoded1 = arith.sitofp %decoded_codes1 : vector<8xi8> to vector<8xf32>
              %decoded_offset2 = arith.constant 16 : index
              %decoded_place2 = arith.addi %d, %decoded_offset2 : index
              %decoded_codes2 = vector.load %cache[%row, %decoded_place2] : memref<?x656xi8>, vector<8xi8>
              %decoded2 = arith.sitofp %decoded_codes2 : vector<8xi8> to vector<8xf32>
              %decoded_offset3 = arith.constant 24 : index
              %decoded_place3 = arith.addi %d, %decoded_offset3 : index
              %decoded_codes3 = vector.load %cache[%row, %decoded_place3] : memref<?x656xi8>, vector<8xi8>
              %decoded3 = arith.sitofp %decoded_codes3 : vector<8xi8> to vector<8xf32>

            %scaled0 = arith.mulf %decoded0, %tile_scale_lanes3 : vector<8xf32>
            %offset0 = arith.constant 0 : index
            %d0 = arith.addi %d, %offset0 : index
          %scaled0_rounded_rounding_bits = vector.bitcast %scaled0 : vector<8xf32> to vector<8xi32>
          %scaled0_rounded_rounding_upper = arith.shrui %scaled0_rounded_rounding_bits, %sixteens : vector<8xi32>
          %scaled0_rounded_rounding_odd = arith.andi %scaled0_rounded_rounding_upper, %ones_i32 : vector<8xi32>
          %scaled0_rounded_rounding_bias = arith.addi %scaled0_rounded_rounding_odd, %half_of_bfloat16 : vector<8xi32>
          %scaled0_rounded_rounding = arith.addi %scaled0_rounded_rounding_bits, %scaled0_rounded_rounding_bias : vector<8xi32>

          %scaled0_rounded_masked = arith.andi %scaled0_rounded_rounding, %upper_half : vector<8xi32>
          %scaled0_rounded = vector.bitcast %scaled0_rounded_masked : vector<8xi32> to vector<8xf32>

          vector.store %scaled0_rounded, %keys[%k, %d0] : memref<64x592xf32>, vector<8xf32>

            %scaled1 = arith.mulf %decoded1, %tile_scale_lanes3 : vector<8xf32>
            %offset1 = arith.constant 8 : index
            %d1 = arith.addi %d, %offset1 : index
          %scaled1_rounded_rounding_bits = vector.bitcast %scaled1 : vector<8xf32> to vector<8xi32>
          %scaled1_rounded_rounding_upper = arith.shrui %scaled1_rounded_rounding_bits, %sixteens : vector<8xi32>
          %scaled1_rounded_rounding_odd = arith.andi %scaled1_rounded_rounding_upper, %ones_i32 : vector<8xi32>
          %scaled1_rounded_rounding_bias = arith.addi %scaled1_rounded_rounding_odd, %half_of_bfloat16 : vector<8xi32>
          %scaled1_rounded_rounding = arith.addi %scaled1_rounded_rounding_bits, %scaled1_rounded_rounding_bias : vector<8xi32>

          %scaled1_rounded_masked = arith.andi %scaled1_rounded_rounding, %upper_half : vector<8xi32>
          %scaled1_rounded = vector.bitcast %scaled1_rounded_masked : vector<8xi32> to vector<8xf32>

          vector.store %scaled1_rounded, %keys[%k, %d1] : memref<64x592xf32>, vector<8xf32>

            %scaled2 = arith.mulf %decoded2, %tile_scale_lanes3 : vector<8xf32>
            %offset2 = arith.constant 16 : index
            %d2 = arith.addi %d, %offset2 : index
          %scaled2_rounded_rounding_bits = vector.bitcast %scaled2 : vector<8xf32> to vector<8xi32>
          %scaled2_rounded_rounding_upper = arith.shrui %scaled2_rounded_rounding_bits, %sixteens : vector<8xi32>
          %scaled2_rounded_rounding_odd = arith.andi %scaled2_rounded_rounding_upper, %ones_i32 : vector<8xi32>
          %scaled2_rounded_rounding_bias = arith.addi %scaled2_rounded_rounding_odd, %half_of_bfloat16 : vector<8xi32>
          %scaled2_rounded_rounding = arith.addi %scaled2_rounded_rounding_bits, %scaled2_rounded_rounding_bias : vector<8xi32>

          %scaled2_rounded_masked = arith.andi %scaled2_rounded_rounding, %upper_half : vector<8xi32>
          %scaled2_rounded = vector.bitcast %scaled2_rounded_masked : vector<8xi32> to vector<8xf32>

          vector.store %scaled2_rounded, %keys[%k, %d2] : memref<64x592xf32>, vector<8xf32>

            %scaled3 = arith.mulf %decoded3, %tile_scale_lanes3 : vector<8xf32>
            %offset3 = arith.constant 24 : index
            %d3 = arith.addi %d, %offset3 : index
          %scaled3_rounded_rounding_bits = vector.bitcast %scaled3 : vector<8xf32> to vector<8xi32>
          %scaled3_rounded_rounding_upper = arith.shrui %scaled3_rounded_rounding_bits, %sixteens : vector<8xi32>
          %scaled3_rounded_rounding_odd = arith.andi %scaled3_rounded_rounding_upper, %ones_i32 : vector<8xi32>
          %scaled3_rounded_rounding_bias = arith.addi %scaled3_rounded_rounding_odd, %half_of_bfloat16 : vector<8xi32>
          %scaled3_rounded_rounding = arith.addi %scaled3_rounded_rounding_bits, %scaled3_rounded_rounding_bias : vector<8xi32>

          %scaled3_rounded_masked = arith.andi %scaled3_rounded_rounding, %upper_half : vector<8xi32>
          %scaled3_rounded = vector.bitcast %scaled3_rounded_masked : vector<8xi32> to vector<8xf32>

          vector.store %scaled3_rounded, %keys[%k, %d3] : memref<64x592xf32>, vector<8xf32>

          }
          scf.for %d = %nope to %width step %lanes {
            %in_rope = arith.subi %d, %nope : index
            %rope_column = arith.addi %rope_at, %in_rope : index
            %stored = vector.load %cache_short[%row, %rope_column] : memref<?x328xi16>, vector<8xi16>
          %stored_f32_lower = arith.extui %stored : vector<8xi16> to vector<8xi32>
          %stored_f32_upper = arith.shli %stored_f32_lower, %sixteens : vector<8xi32>
          %stored_f32 = vector.bitcast %stored_f32_upper : vector<8xi32> to vector<8xf32>

          vector.store %stored_f32, %keys[%k, %d] : memref<64x592xf32>, vector<8xf32>

          }
        } else {
          scf.for %column = %c0 to %columns step %lanes {
            vector.store %no_elements, %keys[%k, %column] : memref<64x592xf32>, vector<8xf32>
          }
        }
      }

        // Scores: 2 keys x 4 heads in registers.
        scf.for %k = %c0 to %key_end step %keys_at_once {
          %place0 = arith.constant 0 : index
          %k0 = arith.addi %k, %place0 : index
          %place1 = arith.constant 1 : index
          %k1 = arith.addi %k, %place1 : index
          %dots:8 = scf.for %d = %c0 to %columns step %lanes
              iter_args(%sum0 = %zeros, %sum1 = %zeros, %sum2 = %zeros, %sum3 = %zeros, %sum4 = %zeros, %sum5 = %zeros, %sum6 = %zeros, %sum7 = %zeros) -> (vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>) {
            %key0 = vector.load %keys[%k0, %d] : memref<64x592xf32>, vector<8xf32>
            %key1 = vector.load %keys[%k1, %d] : memref<64x592xf32>, vector<8xf32>
            %q0 = vector.load %packed[%head0, %d] : memref<4x576xf32>, vector<8xf32>
            %next0 = math.fma %q0, %key0, %sum0 : vector<8xf32>

            %next1 = math.fma %q0, %key1, %sum1 : vector<8xf32>

            %q1 = vector.load %packed[%head1, %d] : memref<4x576xf32>, vector<8xf32>
            %next2 = math.fma %q1, %key0, %sum2 : vector<8xf32>

            %next3 = math.fma %q1, %key1, %sum3 : vector<8xf32>

            %q2 = vector.load %packed[%head2, %d] : memref<4x576xf32>, vector<8xf32>
            %next4 = math.fma %q2, %key0, %sum4 : vector<8xf32>

            %next5 = math.fma %q2, %key1, %sum5 : vector<8xf32>

            %q3 = vector.load %packed[%head3, %d] : memref<4x576xf32>, vector<8xf32>
            %next6 = math.fma %q3, %key0, %sum6 : vector<8xf32>

            %next7 = math.fma %q3, %key1, %sum7 : vector<8xf32>

            scf.yield %next0, %next1, %next2, %next3, %next4, %next5, %next6, %next7 : vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>
          }
          // key_step divides the key block, so that all of these slots are there.
          %place_in_block = arith.addi %pass_start, %k : index
          %slots_here = vector.load %slots[%item, %place_in_block] : memref<?x256xi32>, vector<2xi32>
          %attended = arith.cmpi sge, %slots_here, %some_zeros_i32 : vector<2xi32>
          %dot0_0_0_lower = vector.shuffle %dots#0, %dots#1 [0, 1, 2, 3, 8, 9, 10, 11] : vector<8xf32>, vector<8xf32>
          %dot0_0_0_upper = vector.shuffle %dots#0, %dots#1 [4, 5, 6, 7, 12, 13, 14, 15] : vector<8xf32>, vector<8xf32>
          %dot0_0_0 = arith.addf %dot0_0_0_lower, %dot0_0_0_upper : vector<8xf32>
          %dot0_1_0_lower = vector.shuffle %dot0_0_0, %dot0_0_0 [0, 1, 4, 5] : vector<8xf32>, vector<8xf32>
          %dot0_1_0_upper = vector.shuffle %dot0_0_0, %dot0_0_0 [2, 3, 6, 7] : vector<8xf32>, vector<8xf32>
          %dot0_1_0 = arith.addf %dot0_1_0_lower, %dot0_1_0_upper : vector<4xf32>
          %dot0_2_0_lower = vector.shuffle %dot0_1_0, %dot0_1_0 [0, 2] : vector<4xf32>, vector<4xf32>
          %dot0_2_0_upper = vector.shuffle %dot0_1_0, %dot0_1_0 [1, 3] : vector<4xf32>, vector<4xf32>
          %dot0_2_0 = arith.addf %dot0_2_0_lower, %dot0_2_0_upper : vector<2xf32>
          %dot0 = vector.shuffle %dot0_2_0, %dot0_2_0 [0, 1] : vector<2xf32>, vector<2xf32>
          %scaled0 = arith.mulf %dot0, %some_factors : vector<2xf32>
          %score0 = arith.select %attended, %scaled0, %some_minus_infinities : vector<2xi1>, vector<2xf32>
          vector.store %score0, %scores[%head0, %k] : memref<4x64xf32>, vector<2xf32>
          %dot1_0_0_lower = vector.shuffle %dots#2, %dots#3 [0, 1, 2, 3, 8, 9, 10, 11] : vector<8xf32>, vector<8xf32>
          %dot1_0_0_upper = vector.shuffle %dots#2, %dots#3 [4, 5, 6, 7, 12, 13, 14, 15] : vector<8xf32>, vector<8xf32>
          %dot1_0_0 = arith.addf %dot1_0_0_lower, %dot1_0_0_upper : vector<8xf32>
          %dot1_1_0_lower = vector.shuffle %dot1_0_0, %dot1_0_0 [0, 1, 4, 5] : vector<8xf32>, vector<8xf32>
          %dot1_1_0_upper = vector.shuffle %dot1_0_0, %dot1_0_0 [2, 3, 6, 7] : vector<8xf32>, vector<8xf32>
          %dot1_1_0 = arith.addf %dot1_1_0_lower, %dot1_1_0_upper : vector<4xf32>
          %dot1_2_0_lower = vector.shuffle %dot1_1_0, %dot1_1_0 [0, 2] : vector<4xf32>, vector<4xf32>
          %dot1_2_0_upper = vector.shuffle %dot1_1_0, %dot1_1_0 [1, 3] : vector<4xf32>, vector<4xf32>
          %dot1_2_0 = arith.addf %dot1_2_0_lower, %dot1_2_0_upper : vector<2xf32>
          %dot1 = vector.shuffle %dot1_2_0, %dot1_2_0 [0, 1] : vector<2xf32>, vector<2xf32>
          %scaled1 = arith.mulf %dot1, %some_factors : vector<2xf32>
          %score1 = arith.select %attended, %scaled1, %some_minus_infinities : vector<2xi1>, vector<2xf32>
          vector.store %score1, %scores[%head1, %k] : memref<4x64xf32>, vector<2xf32>
          %dot2_0_0_lower = vector.shuffle %dots#4, %dots#5 [0, 1, 2, 3, 8, 9, 10, 11] : vector<8xf32>, vector<8xf32>
          %dot2_0_0_upper = vector.shuffle %dots#4, %dots#5 [4, 5, 6, 7, 12, 13, 14, 15] : vector<8xf32>, vector<8xf32>
          %dot2_0_0 = arith.addf %dot2_0_0_lower, %dot2_0_0_upper : vector<8xf32>
          %dot2_1_0_lower = vector.shuffle %dot2_0_0, %dot2_0_0 [0, 1, 4, 5] : vector<8xf32>, vector<8xf32>
          %dot2_1_0_upper = vector.shuffle %dot2_0_0, %dot2_0_0 [2, 3, 6, 7] : vector<8xf32>, vector<8xf32>
          %dot2_1_0 = arith.addf %dot2_1_0_lower, %dot2_1_0_upper : vector<4xf32>
          %dot2_2_0_lower = vector.shuffle %dot2_1_0, %dot2_1_0 [0, 2] : vector<4xf32>, vector<4xf32>
          %dot2_2_0_upper = vector.shuffle %dot2_1_0, %dot2_1_0 [1, 3] : vector<4xf32>, vector<4xf32>
          %dot2_2_0 = arith.addf %dot2_2_0_lower, %dot2_2_0_upper : vector<2xf32>
          %dot2 = vector.shuffle %dot2_2_0, %dot2_2_0 [0, 1] : vector<2xf32>, vector<2xf32>
          %scaled2 = arith.mulf %dot2, %some_factors : vector<2xf32>
          %score2 = arith.select %attended, %scaled2, %some_minus_infinities : vector<2xi1>, vector<2xf32>
          vector.store %score2, %scores[%head2, %k] : memref<4x64xf32>, vector<2xf32>
          %dot3_0_0_lower = vector.shuffle %dots#6, %dots#7 [0, 1, 2, 3, 8, 9, 10, 11] : vector<8xf32>, vector<8xf32>
          %dot3_0_0_upper = vector.shuffle %dots#6, %dots#7 [4, 5, 6, 7, 12, 13, 14, 15] : vector<8xf32>, vector<8xf32>
          %dot3_0_0 = arith.addf %dot3_0_0_lower, %dot3_0_0_upper : vector<8xf32>
          %dot3_1_0_lower = vector.shuffle %dot3_0_0, %dot3_0_0 [0, 1, 4, 5] : vector<8xf32>, vector<8xf32>
          %dot3_1_0_upper = vector.shuffle %dot3_0_0, %dot3_0_0 [2, 3, 6, 7] : vector<8xf32>, vector<8xf32>
          %dot3_1_0 = arith.addf %dot3_1_0_lower, %dot3_1_0_upper : vector<4xf32>
          %dot3_2_0_lower = vector.shuffle %dot3_1_0, %dot3_1_0 [0, 2] : vector<4xf32>, vector<4xf32>
          %dot3_2_0_upper = vector.shuffle %dot3_1_0, %dot3_1_0 [1, 3] : vector<4xf32>, vector<4xf32>
          %dot3_2_0 = arith.addf %dot3_2_0_lower, %dot3_2_0_upper : vector<2xf32>
          %dot3 = vector.shuffle %dot3_2_0, %dot3_2_0 [0, 1] : vector<2xf32>, vector<2xf32>
          %scaled3 = arith.mulf %dot3, %some_factors : vector<2xf32>
          %score3 = arith.select %attended, %scaled3, %some_minus_infinities : vector<2xi1>, vector<2xf32>
          vector.store %score3, %scores[%head3, %k] : memref<4x64xf32>, vector<2xf32>
        }

        // Softmax over the pass; the weights are rounded, their sum is of the float32 ones.
        %maximum_lanes0_0 = scf.for %k = %c0 to %key_end step %lanes iter_args(%so_far = %minus_infinities) -> (vector<8xf32>) {
          %score = vector.load %scores[%head0, %k] : memref<4x64xf32>, vector<8xf32>
          %larger = arith.maximumf %so_far, %score : vector<8xf32>
          scf.yield %larger : vector<8xf32>
        }
          %largest0_0_0_lower = vector.shuffle %maximum_lanes0_0, %maximum_lanes0_0 [0, 1, 2, 3] : vector<8xf32>, vector<8xf32>
          %largest0_0_0_upper = vector.shuffle %maximum_lanes0_0, %maximum_lanes0_0 [4, 5, 6, 7] : vector<8xf32>, vector<8xf32>
          %largest0_0_0 = arith.maximumf %largest0_0_0_lower, %largest0_0_0_upper : vector<4xf32>
          %largest0_1_0_lower = vector.shuffle %largest0_0_0, %largest0_0_0 [0, 1] : vector<4xf32>, vector<4xf32>
          %largest0_1_0_upper = vector.shuffle %largest0_0_0, %largest0_0_0 [2, 3] : vector<4xf32>, vector<4xf32>
          %largest0_1_0 = arith.maximumf %largest0_1_0_lower, %largest0_1_0_upper : vector<2xf32>
          %largest0_2_0_lower = vector.shuffle %largest0_1_0, %largest0_1_0 [0] : vector<2xf32>, vector<2xf32>
          %largest0_2_0_upper = vector.shuffle %largest0_1_0, %largest0_1_0 [1] : vector<2xf32>, vector<2xf32>
          %largest0_2_0 = arith.maximumf %largest0_2_0_lower, %largest0_2_0_upper : vector<1xf32>
          %largest0 = vector.shuffle %largest0_2_0, %largest0_2_0 [0] : vector<1xf32>, vector<1xf32>
        %maximum_here0 = vector.extract %largest0[0] : f32 from vector<1xf32>
        %old_maximum0 = memref.load %maxima[%item, %head0] : memref<?x4xf32>
        %maximum0 = arith.maximumf %old_maximum0, %maximum_here0 : f32
        %maximum_everywhere0 = vector.broadcast %maximum0 : f32 to vector<8xf32>
          %reference0_magnitude = math.absf %maximum_everywhere0 : vector<8xf32>
          %reference0_is_infinite = arith.cmpf oeq, %reference0_magnitude, %infinities : vector<8xf32>
          %reference0 = arith.select %reference0_is_infinite, %zeros, %maximum_everywhere0 : vector<8xi1>, vector<8xf32>
        %total_lanes0_0 = scf.for %k = %c0 to %key_end step %lanes iter_args(%so_far = %zeros) -> (vector<8xf32>) {
          %score = vector.load %scores[%head0, %k] : memref<4x64xf32>, vector<8xf32>
          %below = arith.subf %score, %reference0 : vector<8xf32>
          %weight_above = arith.maximumf %below, %least_power : vector<8xf32>
          %weight_inside = arith.minimumf %weight_above, %largest_power : vector<8xf32>
          %weight_shifted = arith.addf %weight_inside, %rounder : vector<8xf32>
          %weight_whole = arith.subf %weight_shifted, %rounder : vector<8xf32>
          %weight_rest = arith.subf %weight_inside, %weight_whole : vector<8xf32>
          %weight_5 = math.fma %exp2_6, %weight_rest, %exp2_5 : vector<8xf32>
          %weight_4 = math.fma %weight_5, %weight_rest, %exp2_4 : vector<8xf32>
          %weight_3 = math.fma %weight_4, %weight_rest, %exp2_3 : vector<8xf32>
          %weight_2 = math.fma %weight_3, %weight_rest, %exp2_2 : vector<8xf32>
          %weight_1 = math.fma %weight_2, %weight_rest, %exp2_1 : vector<8xf32>
          %weight_0 = math.fma %weight_1, %weight_rest, %exp2_0 : vector<8xf32>
          %weight_whole_bits = vector.bitcast %weight_shifted : vector<8xf32> to vector<8xi32>
          %weight_exponent = arith.shli %weight_whole_bits, %mantissa_bits : vector<8xi32>
          %weight_bits = vector.bitcast %weight_0 : vector<8xf32> to vector<8xi32>
          %weight_scaled_bits = arith.addi %weight_bits, %weight_exponent : vector<8xi32>
          %weight_power = vector.bitcast %weight_scaled_bits : vector<8xi32> to vector<8xf32>
          %weight_is_small = arith.cmpf olt, %below, %least_power : vector<8xf32>
          %weight_or_zero = arith.select %weight_is_small, %zeros, %weight_power : vector<8xi1>, vector<8xf32>
          %weight_is_large = arith.cmpf ogt, %below, %largest_power : vector<8xf32>
          %weight_or_infinity = arith.select %weight_is_large, %infinities, %weight_or_zero : vector<8xi1>, vector<8xf32>
          %weight_is_nan = arith.cmpf uno, %below, %below : vector<8xf32>
          %weight = arith.select %weight_is_nan, %below, %weight_or_infinity : vector<8xi1>, vector<8xf32>
          %weight_rounded_rounding_bits = vector.bitcast %weight : vector<8xf32> to vector<8xi32>
          %weight_rounded_rounding_upper = arith.shrui %weight_rounded_rounding_bits, %sixteens : vector<8xi32>
          %weight_rounded_rounding_odd = arith.andi %weight_rounded_rounding_upper, %ones_i32 : vector<8xi32>
          %weight_rounded_rounding_bias = arith.addi %weight_rounded_rounding_odd, %half_of_bfloat16 : vector<8xi32>
          %weight_rounded_rounding_carried = arith.addi %weight_rounded_rounding_bits, %weight_rounded_rounding_bias : vector<8xi32>
          %weight_rounded_rounding_is_nan = arith.cmpf uno, %weight, %weight : vector<8xf32>
          %weight_rounded_rounding = arith.select %weight_rounded_rounding_is_nan, %weight_rounded_rounding_bits, %weight_rounded_rounding_carried : vector<8xi1>, vector<8xi32>

          %weight_rounded_masked = arith.andi %weight_rounded_rounding, %upper_half : vector<8xi32>
          %weight_rounded = vector.bitcast %weight_rounded_masked : vector<8xi32> to vector<8xf32>

          vector.store %weight_rounded, %scores[%head0, %k] : memref<4x64xf32>, vector<8xf32>

          %next = arith.addf %so_far, %weight : vector<8xf32>
          scf.yield %next : vector<8xf32>
        }
          %whole0_0_0_lower = vector.shuffle %total_lanes0_0, %total_lanes0_0 [0, 1, 2, 3] : vector<8xf32>, vector<8xf32>
          %whole0_0_0_upper = vector.shuffle %total_lanes0_0, %total_lanes0_0 [4, 5, 6, 7] : vector<8xf32>, vector<8xf32>
          %whole0_0_0 = arith.addf %whole0_0_0_lower, %whole0_0_0_upper : vector<4xf32>
          %whole0_1_0_lower = vector.shuffle %whole0_0_0, %whole0_0_0 [0, 1] : vector<4xf32>, vector<4xf32>
          %whole0_1_0_upper = vector.shuffle %whole0_0_0, %whole0_0_0 [2, 3] : vector<4xf32>, vector<4xf32>
          %whole0_1_0 = arith.addf %whole0_1_0_lower, %whole0_1_0_upper : vector<2xf32>
          %whole0_2_0_lower = vector.shuffle %whole0_1_0, %whole0_1_0 [0] : vector<2xf32>, vector<2xf32>
          %whole0_2_0_upper = vector.shuffle %whole0_1_0, %whole0_1_0 [1] : vector<2xf32>, vector<2xf32>
          %whole0_2_0 = arith.addf %whole0_2_0_lower, %whole0_2_0_upper : vector<1xf32>
          %whole0 = vector.shuffle %whole0_2_0, %whole0_2_0 [0] : vector<1xf32>, vector<1xf32>
        %total_here0 = vector.extract %whole0[0] : f32 from vector<1xf32>
        %old_maximum_everywhere0 = vector.broadcast %old_maximum0 : f32 to vector<8xf32>
        %old_below0 = arith.subf %old_maximum_everywhere0, %reference0 : vector<8xf32>
          %factor_lanes0_above = arith.maximumf %old_below0, %least_power : vector<8xf32>
          %factor_lanes0_inside = arith.minimumf %factor_lanes0_above, %largest_power : vector<8xf32>
          %factor_lanes0_shifted = arith.addf %factor_lanes0_inside, %rounder : vector<8xf32>
          %factor_lanes0_whole = arith.subf %factor_lanes0_shifted, %rounder : vector<8xf32>
          %factor_lanes0_rest = arith.subf %factor_lanes0_inside, %factor_lanes0_whole : vector<8xf32>
          %factor_lanes0_5 = math.fma %exp2_6, %factor_lanes0_rest, %exp2_5 : vector<8xf32>
          %factor_lanes0_4 = math.fma %factor_lanes0_5, %factor_lanes0_rest, %exp2_4 : vector<8xf32>
          %factor_lanes0_3 = math.fma %factor_lanes0_4, %factor_lanes0_rest, %exp2_3 : vector<8xf32>
          %factor_lanes0_2 = math.fma %factor_lanes0_3, %factor_lanes0_rest, %exp2_2 : vector<8xf32>
          %factor_lanes0_1 = math.fma %factor_lanes0_2, %factor_lanes0_rest, %exp2_1 : vector<8xf32>
          %factor_lanes0_0 = math.fma %factor_lanes0_1, %factor_lanes0_rest, %exp2_0 : vector<8xf32>
          %factor_lanes0_whole_bits = vector.bitcast %factor_lanes0_shifted : vector<8xf32> to vector<8xi32>
          %factor_lanes0_exponent = arith.shli %factor_lanes0_whole_bits, %mantissa_bits : vector<8xi32>
          %factor_lanes0_bits = vector.bitcast %factor_lanes0_0 : vector<8xf32> to vector<8xi32>
          %factor_lanes0_scaled_bits = arith.addi %factor_lanes0_bits, %factor_lanes0_exponent : vector<8xi32>
          %factor_lanes0_power = vector.bitcast %factor_lanes0_scaled_bits : vector<8xi32> to vector<8xf32>
          %factor_lanes0_is_small = arith.cmpf olt, %old_below0, %least_power : vector<8xf32>
          %factor_lanes0_or_zero = arith.select %factor_lanes0_is_small, %zeros, %factor_lanes0_power : vector<8xi1>, vector<8xf32>
          %factor_lanes0_is_large = arith.cmpf ogt, %old_below0, %largest_power : vector<8xf32>
          %factor_lanes0_or_infinity = arith.select %factor_lanes0_is_large, %infinities, %factor_lanes0_or_zero : vector<8xi1>, vector<8xf32>
          %factor_lanes0_is_nan = arith.cmpf uno, %old_below0, %old_below0 : vector<8xf32>
          %factor_lanes0 = arith.select %factor_lanes0_is_nan, %old_below0, %factor_lanes0_or_infinity : vector<8xi1>, vector<8xf32>
        %factor0 = vector.extract %factor_lanes0[0] : f32 from vector<8xf32>
        %old_total0 = memref.load %totals[%item, %head0] : memref<?x4xf32>
        %total0 = math.fma %old_total0, %factor0, %total_here0 : f32
        memref.store %maximum0, %maxima[%item, %head0] : memref<?x4xf32>
        memref.store %total0, %totals[%item, %head0] : memref<?x4xf32>
        %maximum_lanes1_0 = scf.for %k = %c0 to %key_end step %lanes iter_args(%so_far = %minus_infinities) -> (vector<8xf32>) {
          %score = vector.load %scores[%head1, %k] : memref<4x64xf32>, vector<8xf32>
          %larger = arith.maximumf %so_far, %score : vector<8xf32>
          scf.yield %larger : vector<8xf32>
        }
          %largest1_0_0_lower = vector.shuffle %maximum_lanes1_0, %maximum_lanes1_0 [0, 1, 2, 3] : vector<8xf32>, vector<8xf32>
          %largest1_0_0_upper = vector.shuffle %maximum_lanes1_0, %maximum_lanes1_0 [4, 5, 6, 7] : vector<8xf32>, vector<8xf32>
          %largest1_0_0 = arith.maximumf %largest1_0_0_lower, %largest1_0_0_upper : vector<4xf32>
          %largest1_1_0_lower = vector.shuffle %largest1_0_0, %largest1_0_0 [0, 1] : vector<4xf32>, vector<4xf32>
          %largest1_1_0_upper = vector.shuffle %largest1_0_0, %largest1_0_0 [2, 3] : vector<4xf32>, vector<4xf32>
          %largest1_1_0 = arith.maximumf %largest1_1_0_lower, %largest1_1_0_upper : vector<2xf32>
          %largest1_2_0_lower = vector.shuffle %largest1_1_0, %largest1_1_0 [0] : vector<2xf32>, vector<2xf32>
          %largest1_2_0_upper = vector.shuffle %largest1_1_0, %largest1_1_0 [1] : vector<2xf32>, vector<2xf32>
          %largest1_2_0 = arith.maximumf %largest1_2_0_lower, %largest1_2_0_upper : vector<1xf32>
          %largest1 = vector.shuffle %largest1_2_0, %largest1_2_0 [0] : vector<1xf32>, vector<1xf32>
        %maximum_here1 = vector.extract %largest1[0] : f32 from vector<1xf32>
        %old_maximum1 = memref.load %maxima[%item, %head1] : memref<?x4xf32>
        %maximum1 = arith.maximumf %old_maximum1, %maximum_here1 : f32
        %maximum_everywhere1 = vector.broadcast %maximum1 : f32 to vector<8xf32>
          %reference1_magnitude = math.absf %maximum_everywhere1 : vector<8xf32>
          %reference1_is_infinite = arith.cmpf oeq, %reference1_magnitude, %infinities : vector<8xf32>
          %reference1 = arith.select %reference1_is_infinite, %zeros, %maximum_everywhere1 : vector<8xi1>, vector<8xf32>
        %total_lanes1_0 = scf.for %k = %c0 to %key_end step %lanes iter_args(%so_far = %zeros) -> (vector<8xf32>) {
          %score = vector.load %scores[%head1, %k] : memref<4x64xf32>, vector<8xf32>
          %below = arith.subf %score, %reference1 : vector<8xf32>
          %weight_above = arith.maximumf %below, %least_power : vector<8xf32>
          %weight_inside = arith.minimumf %weight_above, %largest_power : vector<8xf32>
          %weight_shifted = arith.addf %weight_inside, %rounder : vector<8xf32>
          %weight_whole = arith.subf %weight_shifted, %rounder : vector<8xf32>
          %weight_rest = arith.subf %weight_inside, %weight_whole : vector<8xf32>
          %weight_5 = math.fma %exp2_6, %weight_rest, %exp2_5 : vector<8xf32>
          %weight_4 = math.fma %weight_5, %weight_rest, %exp2_4 : vector<8xf32>
          %weight_3 = math.fma %weight_4, %weight_rest, %exp2_3 : vector<8xf32>
          %weight_2 = math.fma %weight_3, %weight_rest, %exp2_2 : vector<8xf32>
          %weight_1 = math.fma %weight_2, %weight_rest, %exp2_1 : vector<8xf32>
          %weight_0 = math.fma %weight_1, %weight_rest, %exp2_0 : vector<8xf32>
          %weight_whole_bits = vector.bitcast %weight_shifted : vector<8xf32> to vector<8xi32>
          %weight_exponent = arith.shli %weight_whole_bits, %mantissa_bits : vector<8xi32>
          %weight_bits = vector.bitcast %weight_0 : vector<8xf32> to vector<8xi32>
          %weight_scaled_bits = arith.addi %weight_bits, %weight_exponent : vector<8xi32>
          %weight_power = vector.bitcast %weight_scaled_bits : vector<8xi32> to vector<8xf32>
          %weight_is_small = arith.cmpf olt, %below, %least_power : vector<8xf32>
          %weight_or_zero = arith.select %weight_is_small, %zeros, %weight_power : vector<8xi1>, vector<8xf32>
          %weight_is_large = arith.cmpf ogt, %below, %largest_power : vector<8xf32>
          %weight_or_infinity = arith.select %weight_is_large, %infinities, %weight_or_zero : vector<8xi1>, vector<8xf32>
          %weight_is_nan = arith.cmpf uno, %below, %below : vector<8xf32>
          %weight = arith.select %weight_is_nan, %below, %weight_or_infinity : vector<8xi1>, vector<8xf32>
          %weight_rounded_rounding_bits = vector.bitcast %weight : vector<8xf32> to vector<8xi32>
          %weight_rounded_rounding_upper = arith.shrui %weight_rounded_rounding_bits, %sixteens : vector<8xi32>
          %weight_rounded_rounding_odd = arith.andi %weight_rounded_rounding_upper, %ones_i32 : vector<8xi32>
          %weight_rounded_rounding_bias = arith.addi %weight_rounded_rounding_odd, %half_of_bfloat16 : vector<8xi32>
          %weight_rounded_rounding_carried = arith.addi %weight_rounded_rounding_bits, %weight_rounded_rounding_bias : vector<8xi32>
          %weight_rounded_rounding_is_nan = arith.cmpf uno, %weight, %weight : vector<8xf32>
          %weight_rounded_rounding = arith.select %weight_rounded_rounding_is_nan, %weight_rounded_rounding_bits, %weight_rounded_rounding_carried : vector<8xi1>, vector<8xi32>

          %weight_rounded_masked = arith.andi %weight_rounded_rounding, %upper_half : vector<8xi32>
          %weight_rounded = vector.bitcast %weight_rounded_masked : vector<8xi32> to vector<8xf32>

          vector.store %weight_rounded, %scores[%head1, %k] : memref<4x64xf32>, vector<8xf32>

          %next = arith.addf %so_far, %weight : vector<8xf32>
          scf.yield %next : vector<8xf32>
        }
          %whole1_0_0_lower = vector.shuffle %total_lanes1_0, %total_lanes1_0 [0, 1, 2, 3] : vector<8xf32>, vector<8xf32>
          %whole1_0_0_upper = vector.shuffle %total_lanes1_0, %total_lanes1_0 [4, 5, 6, 7] : vector<8xf32>, vector<8xf32>
          %whole1_0_0 = arith.addf %whole1_0_0_lower, %whole1_0_0_upper : vector<4xf32>
          %whole1_1_0_lower = vector.shuffle %whole1_0_0, %whole1_0_0 [0, 1] : vector<4xf32>, vector<4xf32>
          %whole1_1_0_upper = vector.shuffle %whole1_0_0, %whole1_0_0 [2, 3] : vector<4xf32>, vector<4xf32>
          %whole1_1_0 = arith.addf %whole1_1_0_lower, %whole1_1_0_upper : vector<2xf32>
          %whole1_2_0_lower = vector.shuffle %whole1_1_0, %whole1_1_0 [0] : vector<2xf32>, vector<2xf32>
          %whole1_2_0_upper = vector.shuffle %whole1_1_0, %whole1_1_0 [1] : vector<2xf32>, vector<2xf32>
          %whole1_2_0 = arith.addf %whole1_2_0_lower, %whole1_2_0_upper : vector<1xf32>
          %whole1 = vector.shuffle %whole1_2_0, %whole1_2_0 [0] : vector<1xf32>, vector<1xf32>
        %total_here1 = vector.extract %whole1[0] : f32 from vector<1xf32>
        %old_maximum_everywhere1 = vector.broadcast %old_maximum1 : f32 to vector<8xf32>
        %old_below1 = arith.subf %old_maximum_everywhere1, %reference1 : vector<8xf32>
          %factor_lanes1_above = arith.maximumf %old_below1, %least_power : vector<8xf32>
          %factor_lanes1_inside = arith.minimumf %factor_lanes1_above, %largest_power : vector<8xf32>
          %factor_lanes1_shifted = arith.addf %factor_lanes1_inside, %rounder : vector<8xf32>
          %factor_lanes1_whole = arith.subf %factor_lanes1_shifted, %rounder : vector<8xf32>
          %factor_lanes1_rest = arith.subf %factor_lanes1_inside, %factor_lanes1_whole : vector<8xf32>
          %factor_lanes1_5 = math.fma %exp2_6, %factor_lanes1_rest, %exp2_5 : vector<8xf32>
          %factor_lanes1_4 = math.fma %factor_lanes1_5, %factor_lanes1_rest, %exp2_4 : vector<8xf32>
          %factor_lanes1_3 = math.fma %factor_lanes1_4, %factor_lanes1_rest, %exp2_3 : vector<8xf32>
          %factor_lanes1_2 = math.fma %factor_lanes1_3, %factor_lanes1_rest, %exp2_2 : vector<8xf32>
          %factor_lanes1_1 = math.fma %factor_lanes1_2, %factor_lanes1_rest, %exp2_1 : vector<8xf32>
          %factor_lanes1_0 = math.fma %factor_lanes1_1, %factor_lanes1_rest, %exp2_0 : vector<8xf32>
          %factor_lanes1_whole_bits = vector.bitcast %factor_lanes1_shifted : vector<8xf32> to vector<8xi32>
          %factor_lanes1_exponent = arith.shli %factor_lanes1_whole_bits, %mantissa_bits : vector<8xi32>
          %factor_lanes1_bits = vector.bitcast %factor_lanes1_0 : vector<8xf32> to vector<8xi32>
          %factor_lanes1_scaled_bits = arith.addi %factor_lanes1_bits, %factor_lanes1_exponent : vector<8xi32>
          %factor_lanes1_power = vector.bitcast %factor_lanes1_scaled_bits : vector<8xi32> to vector<8xf32>
          %factor_lanes1_is_small = arith.cmpf olt, %old_below1, %least_power : vector<8xf32>
          %factor_lanes1_or_zero = arith.select %factor_lanes1_is_small, %zeros, %factor_lanes1_power : vector<8xi1>, vector<8xf32>
          %factor_lanes1_is_large = arith.cmpf ogt, %old_below1, %largest_power : vector<8xf32>
          %factor_lanes1_or_infinity = arith.select %factor_lanes1_is_large, %infinities, %factor_lanes1_or_zero : vector<8xi1>, vector<8xf32>
          %factor_lanes1_is_nan = arith.cmpf uno, %old_below1, %old_below1 : vector<8xf32>
          %factor_lanes1 = arith.select %factor_lanes1_is_nan, %old_below1, %factor_lanes1_or_infinity : vector<8xi1>, vector<8xf32>
        %factor1 = vector.extract %factor_lanes1[0] : f32 from vector<8xf32>
        %old_total1 = memref.load %totals[%item, %head1] : memref<?x4xf32>
        %total1 = math.fma %old_total1, %factor1, %total_here1 : f32
        memref.store %maximum1, %maxima[%item, %head1] : memref<?x4xf32>
        memref.store %total1, %totals[%item, %head1] : memref<?x4xf32>
        %maximum_lanes2_0 = scf.for %k = %c0 to %key_end step %lanes iter_args(%so_far = %minus_infinities) -> (vector<8xf32>) {
          %score = vector.load %scores[%head2, %k] : memref<4x64xf32>, vector<8xf32>
          %larger = arith.maximumf %so_far, %score : vector<8xf32>
          scf.yield %larger : vector<8xf32>
        }
          %largest2_0_0_lower = vector.shuffle %maximum_lanes2_0, %maximum_lanes2_0 [0, 1, 2, 3] : vector<8xf32>, vector<8xf32>
          %largest2_0_0_upper = vector.shuffle %maximum_lanes2_0, %maximum_lanes2_0 [4, 5, 6, 7] : vector<8xf32>, vector<8xf32>
          %largest2_0_0 = arith.maximumf %largest2_0_0_lower, %largest2_0_0_upper : vector<4xf32>
          %largest2_1_0_lower = vector.shuffle %largest2_0_0, %largest2_0_0 [0, 1] : vector<4xf32>, vector<4xf32>
          %largest2_1_0_upper = vector.shuffle %largest2_0_0, %largest2_0_0 [2, 3] : vector<4xf32>, vector<4xf32>
          %largest2_1_0 = arith.maximumf %largest2_1_0_lower, %largest2_1_0_upper : vector<2xf32>
          %largest2_2_0_lower = vector.shuffle %largest2_1_0, %largest2_1_0 [0] : vector<2xf32>, vector<2xf32>
          %largest2_2_0_upper = vector.shuffle %largest2_1_0, %largest2_1_0 [1] : vector<2xf32>, vector<2xf32>
          %largest2_2_0 = arith.maximumf %largest2_2_0_lower, %largest2_2_0_upper : vector<1xf32>
          %largest2 = vector.shuffle %largest2_2_0, %largest2_2_0 [0] : vector<1xf32>, vector<1xf32>
        %maximum_here2 = vector.extract %largest2[0] : f32 from vector<1xf32>
        %old_maximum2 = memref.load %maxima[%item, %head2] : memref<?x4xf32>
        %maximum2 = arith.maximumf %old_maximum2, %maximum_here2 : f32
        %maximum_everywhere2 = vector.broadcast %maximum2 : f32 to vector<8xf32>
          %reference2_magnitude = math.absf %maximum_everywhere2 : vector<8xf32>
          %reference2_is_infinite = arith.cmpf oeq, %reference2_magnitude, %infinities : vector<8xf32>
          %reference2 = arith.select %reference2_is_infinite, %zeros, %maximum_everywhere2 : vector<8xi1>, vector<8xf32>
        %total_lanes2_0 = scf.for %k = %c0 to %key_end step %lanes iter_args(%so_far = %zeros) -> (vector<8xf32>) {
          %score = vector.load %scores[%head2, %k] : memref<4x64xf32>, vector<8xf32>
          %below = arith.subf %score, %reference2 : vector<8xf32>
          %weight_above = arith.maximumf %below, %least_power : vector<8xf32>
          %weight_inside = arith.minimumf %weight_above, %largest_power : vector<8xf32>
          %weight_shifted = arith.addf %weight_inside, %rounder : vector<8xf32>
          %weight_whole = arith.subf %weight_shifted, %rounder : vector<8xf32>
          %weight_rest = arith.subf %weight_inside, %weight_whole : vector<8xf32>
          %weight_5 = math.fma %exp2_6, %weight_rest, %exp2_5 : vector<8xf32>
          %weight_4 = math.fma %weight_5, %weight_rest, %exp2_4 : vector<8xf32>
          %weight_3 = math.fma %weight_4, %weight_rest, %exp2_3 : vector<8xf32>
          %weight_2 = math.fma %weight_3, %weight_rest, %exp2_2 : vector<8xf32>
          %weight_1 = math.fma %weight_2, %weight_rest, %exp2_1 : vector<8xf32>
          %weight_0 = math.fma %weight_1, %weight_rest, %exp2_0 : vector<8xf32>
          %weight_whole_bits = vector.bitcast %weight_shifted : vector<8xf32> to vector<8xi32>
          %weight_exponent = arith.shli %weight_whole_bits, %mantissa_bits : vector<8xi32>
          %weight_bits = vector.bitcast %weight_0 : vector<8xf32> to vector<8xi32>
          %weight_scaled_bits = arith.addi %weight_bits, %weight_exponent : vector<8xi32>
          %weight_power = vector.bitcast %weight_scaled_bits : vector<8xi32> to vector<8xf32>
          %weight_is_small = arith.cmpf olt, %below, %least_power : vector<8xf32>
          %weight_or_zero = arith.select %weight_is_small, %zeros, %weight_power : vector<8xi1>, vector<8xf32>
          %weight_is_large = arith.cmpf ogt, %below, %largest_power : vector<8xf32>
          %weight_or_infinity = arith.select %weight_is_large, %infinities, %weight_or_zero : vector<8xi1>, vector<8xf32>
          %weight_is_nan = arith.cmpf uno, %below, %below : vector<8xf32>
          %weight = arith.select %weight_is_nan, %below, %weight_or_infinity : vector<8xi1>, vector<8xf32>
          %weight_rounded_rounding_bits = vector.bitcast %weight : vector<8xf32> to vector<8xi32>
          %weight_rounded_rounding_upper = arith.shrui %weight_rounded_rounding_bits, %sixteens : vector<8xi32>
          %weight_rounded_rounding_odd = arith.andi %weight_rounded_rounding_upper, %ones_i32 : vector<8xi32>
          %weight_rounded_rounding_bias = arith.addi %weight_rounded_rounding_odd, %half_of_bfloat16 : vector<8xi32>
          %weight_rounded_rounding_carried = arith.addi %weight_rounded_rounding_bits, %weight_rounded_rounding_bias : vector<8xi32>
          %weight_rounded_rounding_is_nan = arith.cmpf uno, %weight, %weight : vector<8xf32>
          %weight_rounded_rounding = arith.select %weight_rounded_rounding_is_nan, %weight_rounded_rounding_bits, %weight_rounded_rounding_carried : vector<8xi1>, vector<8xi32>

          %weight_rounded_masked = arith.andi %weight_rounded_rounding, %upper_half : vector<8xi32>
          %weight_rounded = vector.bitcast %weight_rounded_masked : vector<8xi32> to vector<8xf32>

          vector.store %weight_rounded, %scores[%head2, %k] : memref<4x64xf32>, vector<8xf32>

          %next = arith.addf %so_far, %weight : vector<8xf32>
          scf.yield %next : vector<8xf32>
        }
          %whole2_0_0_lower = vector.shuffle %total_lanes2_0, %total_lanes2_0 [0, 1, 2, 3] : vector<8xf32>, vector<8xf32>
          %whole2_0_0_upper = vector.shuffle %total_lanes2_0, %total_lanes2_0 [4, 5, 6, 7] : vector<8xf32>, vector<8xf32>
          %whole2_0_0 = arith.addf %whole2_0_0_lower, %whole2_0_0_upper : vector<4xf32>
          %whole2_1_0_lower = vector.shuffle %whole2_0_0, %whole2_0_0 [0, 1] : vector<4xf32>, vector<4xf32>
          %whole2_1_0_upper = vector.shuffle %whole2_0_0, %whole2_0_0 [2, 3] : vector<4xf32>, vector<4xf32>
          %whole2_1_0 = arith.addf %whole2_1_0_lower, %whole2_1_0_upper : vector<2xf32>
          %whole2_2_0_lower = vector.shuffle %whole2_1_0, %whole2_1_0 [0] : vector<2xf32>, vector<2xf32>
          %whole2_2_0_upper = vector.shuffle %whole2_1_0, %whole2_1_0 [1] : vector<2xf32>, vector<2xf32>
          %whole2_2_0 = arith.addf %whole2_2_0_lower, %whole2_2_0_upper : vector<1xf32>
          %whole2 = vector.shuffle %whole2_2_0, %whole2_2_0 [0] : vector<1xf32>, vector<1xf32>
        %total_here2 = vector.extract %whole2[0] : f32 from vector<1xf32>
        %old_maximum_everywhere2 = vector.broadcast %old_maximum2 : f32 to vector<8xf32>
        %old_below2 = arith.subf %old_maximum_everywhere2, %reference2 : vector<8xf32>
          %factor_lanes2_above = arith.maximumf %old_below2, %least_power : vector<8xf32>
          %factor_lanes2_inside = arith.minimumf %factor_lanes2_above, %largest_power : vector<8xf32>
          %factor_lanes2_shifted = arith.addf %factor_lanes2_inside, %rounder : vector<8xf32>
          %factor_lanes2_whole = arith.subf %factor_lanes2_shifted, %rounder : vector<8xf32>
          %factor_lanes2_rest = arith.subf %factor_lanes2_inside, %factor_lanes2_whole : vector<8xf32>
          %factor_lanes2_5 = math.fma %exp2_6, %factor_lanes2_rest, %exp2_5 : vector<8xf32>
          %factor_lanes2_4 = math.fma %factor_lanes2_5, %factor_lanes2_rest, %exp2_4 : vector<8xf32>
          %factor_lanes2_3 = math.fma %factor_lanes2_4, %factor_lanes2_rest, %exp2_3 : vector<8xf32>
          %factor_lanes2_2 = math.fma %factor_lanes2_3, %factor_lanes2_rest, %exp2_2 : vector<8xf32>
          %factor_lanes2_1 = math.fma %factor_lanes2_2, %factor_lanes2_rest, %exp2_1 : vector<8xf32>
          %factor_lanes2_0 = math.fma %factor_lanes2_1, %factor_lanes2_rest, %exp2_0 : vector<8xf32>
          %factor_lanes2_whole_bits = vector.bitcast %factor_lanes2_shifted : vector<8xf32> to vector<8xi32>
          %factor_lanes2_exponent = arith.shli %factor_lanes2_whole_bits, %mantissa_bits : vector<8xi32>
          %factor_lanes2_bits = vector.bitcast %factor_lanes2_0 : vector<8xf32> to vector<8xi32>
          %factor_lanes2_scaled_bits = arith.addi %factor_lanes2_bits, %factor_lanes2_exponent : vector<8xi32>
          %factor_lanes2_power = vector.bitcast %factor_lanes2_scaled_bits : vector<8xi32> to vector<8xf32>
          %factor_lanes2_is_small = arith.cmpf olt, %old_below2, %least_power : vector<8xf32>
          %factor_lanes2_or_zero = arith.select %factor_lanes2_is_small, %zeros, %factor_lanes2_power : vector<8xi1>, vector<8xf32>
          %factor_lanes2_is_large = arith.cmpf ogt, %old_below2, %largest_power : vector<8xf32>
          %factor_lanes2_or_infinity = arith.select %factor_lanes2_is_large, %infinities, %factor_lanes2_or_zero : vector<8xi1>, vector<8xf32>
          %factor_lanes2_is_nan = arith.cmpf uno, %old_below2, %old_below2 : vector<8xf32>
          %factor_lanes2 = arith.select %factor_lanes2_is_nan, %old_below2, %factor_lanes2_or_infinity : vector<8xi1>, vector<8xf32>
        %factor2 = vector.extract %factor_lanes2[0] : f32 from vector<8xf32>
        %old_total2 = memref.load %totals[%item, %head2] : memref<?x4xf32>
        %total2 = math.fma %old_total2, %factor2, %total_here2 : f32
        memref.store %maximum2, %maxima[%item, %head2] : memref<?x4xf32>
        memref.store %total2, %totals[%item, %head2] : memref<?x4xf32>
        %maximum_lanes3_0 = scf.for %k = %c0 to %key_end step %lanes iter_args(%so_far = %minus_infinities) -> (vector<8xf32>) {
          %score = vector.load %scores[%head3, %k] : memref<4x64xf32>, vector<8xf32>
          %larger = arith.maximumf %so_far, %score : vector<8xf32>
          scf.yield %larger : vector<8xf32>
        }
          %largest3_0_0_lower = vector.shuffle %maximum_lanes3_0, %maximum_lanes3_0 [0, 1, 2, 3] : vector<8xf32>, vector<8xf32>
          %largest3_0_0_upper = vector.shuffle %maximum_lanes3_0, %maximum_lanes3_0 [4, 5, 6, 7] : vector<8xf32>, vector<8xf32>
          %largest3_0_0 = arith.maximumf %largest3_0_0_lower, %largest3_0_0_upper : vector<4xf32>
          %largest3_1_0_lower = vector.shuffle %largest3_0_0, %largest3_0_0 [0, 1] : vector<4xf32>, vector<4xf32>
          %largest3_1_0_upper = vector.shuffle %largest3_0_0, %largest3_0_0 [2, 3] : vector<4xf32>, vector<4xf32>
          %largest3_1_0 = arith.maximumf %largest3_1_0_lower, %largest3_1_0_upper : vector<2xf32>
          %largest3_2_0_lower = vector.shuffle %largest3_1_0, %largest3_1_0 [0] : vector<2xf32>, vector<2xf32>
          %largest3_2_0_upper = vector.shuffle %largest3_1_0, %largest3_1_0 [1] : vector<2xf32>, vector<2xf32>
          %largest3_2_0 = arith.maximumf %largest3_2_0_lower, %largest3_2_0_upper : vector<1xf32>
          %largest3 = vector.shuffle %largest3_2_0, %largest3_2_0 [0] : vector<1xf32>, vector<1xf32>
        %maximum_here3 = vector.extract %largest3[0] : f32 from vector<1xf32>
        %old_maximum3 = memref.load %maxima[%item, %head3] : memref<?x4xf32>
        %maximum3 = arith.maximumf %old_maximum3, %maximum_here3 : f32
        %maximum_everywhere3 = vector.broadcast %maximum3 : f32 to vector<8xf32>
          %reference3_magnitude = math.absf %maximum_everywhere3 : vector<8xf32>
          %reference3_is_infinite = arith.cmpf oeq, %reference3_magnitude, %infinities : vector<8xf32>
          %reference3 = arith.select %reference3_is_infinite, %zeros, %maximum_everywhere3 : vector<8xi1>, vector<8xf32>
        %total_lanes3_0 = scf.for %k = %c0 to %key_end step %lanes iter_args(%so_far = %zeros) -> (vector<8xf32>) {
          %score = vector.load %scores[%head3, %k] : memref<4x64xf32>, vector<8xf32>
          %below = arith.subf %score, %reference3 : vector<8xf32>
          %weight_above = arith.maximumf %below, %least_power : vector<8xf32>
          %weight_inside = arith.minimumf %weight_above, %largest_power : vector<8xf32>
          %weight_shifted = arith.addf %weight_inside, %rounder : vector<8xf32>
          %weight_whole = arith.subf %weight_shifted, %rounder : vector<8xf32>
          %weight_rest = arith.subf %weight_inside, %weight_whole : vector<8xf32>
          %weight_5 = math.fma %exp2_6, %weight_rest, %exp2_5 : vector<8xf32>
          %weight_4 = math.fma %weight_5, %weight_rest, %exp2_4 : vector<8xf32>
          %weight_3 = math.fma %weight_4, %weight_rest, %exp2_3 : vector<8xf32>
          %weight_2 = math.fma %weight_3, %weight_rest, %exp2_2 : vector<8xf32>
          %weight_1 = math.fma %weight_2, %weight_rest, %exp2_1 : vector<8xf32>
          %weight_0 = math.fma %weight_1, %weight_rest, %exp2_0 : vector<8xf32>
          %weight_whole_bits = vector.bitcast %weight_shifted : vector<8xf32> to vector<8xi32>
          %weight_exponent = arith.shli %weight_whole_bits, %mantissa_bits : vector<8xi32>
          %weight_bits = vector.bitcast %weight_0 : vector<8xf32> to vector<8xi32>
          %weight_scaled_bits = arith.addi %weight_bits, %weight_exponent : vector<8xi32>
          %weight_power = vector.bitcast %weight_scaled_bits : vector<8xi32> to vector<8xf32>
          %weight_is_small = arith.cmpf olt, %below, %least_power : vector<8xf32>
          %weight_or_zero = arith.select %weight_is_small, %zeros, %weight_power : vector<8xi1>, vector<8xf32>
          %weight_is_large = arith.cmpf ogt, %below, %largest_power : vector<8xf32>
          %weight_or_infinity = arith.select %weight_is_large, %infinities, %weight_or_zero : vector<8xi1>, vector<8xf32>
          %weight_is_nan = arith.cmpf uno, %below, %below : vector<8xf32>
          %weight = arith.select %weight_is_nan, %below, %weight_or_infinity : vector<8xi1>, vector<8xf32>
          %weight_rounded_rounding_bits = vector.bitcast %weight : vector<8xf32> to vector<8xi32>
          %weight_rounded_rounding_upper = arith.shrui %weight_rounded_rounding_bits, %sixteens : vector<8xi32>
          %weight_rounded_rounding_odd = arith.andi %weight_rounded_rounding_upper, %ones_i32 : vector<8xi32>
          %weight_rounded_rounding_bias = arith.addi %weight_rounded_rounding_odd, %half_of_bfloat16 : vector<8xi32>
          %weight_rounded_rounding_carried = arith.addi %weight_rounded_rounding_bits, %weight_rounded_rounding_bias : vector<8xi32>
          %weight_rounded_rounding_is_nan = arith.cmpf uno, %weight, %weight : vector<8xf32>
          %weight_rounded_rounding = arith.select %weight_rounded_rounding_is_nan, %weight_rounded_rounding_bits, %weight_rounded_rounding_carried : vector<8xi1>, vector<8xi32>

          %weight_rounded_masked = arith.andi %weight_rounded_rounding, %upper_half : vector<8xi32>
          %weight_rounded = vector.bitcast %weight_rounded_masked : vector<8xi32> to vector<8xf32>

          vector.store %weight_rounded, %scores[%head3, %k] : memref<4x64xf32>, vector<8xf32>

          %next = arith.addf %so_far, %weight : vector<8xf32>
          scf.yield %next : vector<8xf32>
        }
          %whole3_0_0_lower = vector.shuffle %total_lanes3_0, %total_lanes3_0 [0, 1, 2, 3] : vector<8xf32>, vector<8xf32>
          %whole3_0_0_upper = vector.shuffle %total_lanes3_0, %total_lanes3_0 [4, 5, 6, 7] : vector<8xf32>, vector<8xf32>
          %whole3_0_0 = arith.addf %whole3_0_0_lower, %whole3_0_0_upper : vector<4xf32>
          %whole3_1_0_lower = vector.shuffle %whole3_0_0, %whole3_0_0 [0, 1] : vector<4xf32>, vector<4xf32>
          %whole3_1_0_upper = vector.shuffle %whole3_0_0, %whole3_0_0 [2, 3] : vector<4xf32>, vector<4xf32>
          %whole3_1_0 = arith.addf %whole3_1_0_lower, %whole3_1_0_upper : vector<2xf32>
          %whole3_2_0_lower = vector.shuffle %whole3_1_0, %whole3_1_0 [0] : vector<2xf32>, vector<2xf32>
          %whole3_2_0_upper = vector.shuffle %whole3_1_0, %whole3_1_0 [1] : vector<2xf32>, vector<2xf32>
          %whole3_2_0 = arith.addf %whole3_2_0_lower, %whole3_2_0_upper : vector<1xf32>
          %whole3 = vector.shuffle %whole3_2_0, %whole3_2_0 [0] : vector<1xf32>, vector<1xf32>
        %total_here3 = vector.extract %whole3[0] : f32 from vector<1xf32>
        %old_maximum_everywhere3 = vector.broadcast %old_maximum3 : f32 to vector<8xf32>
        %old_below3 = arith.subf %old_maximum_everywhere3, %reference3 : vector<8xf32>
          %factor_lanes3_above = arith.maximumf %old_below3, %least_power : vector<8xf32>
          %factor_lanes3_inside = arith.minimumf %factor_lanes3_above, %largest_power : vector<8xf32>
          %factor_lanes3_shifted = arith.addf %factor_lanes3_inside, %rounder : vector<8xf32>
          %factor_lanes3_whole = arith.subf %factor_lanes3_shifted, %rounder : vector<8xf32>
          %factor_lanes3_rest = arith.subf %factor_lanes3_inside, %factor_lanes3_whole : vector<8xf32>
          %factor_lanes3_5 = math.fma %exp2_6, %factor_lanes3_rest, %exp2_5 : vector<8xf32>
          %factor_lanes3_4 = math.fma %factor_lanes3_5, %factor_lanes3_rest, %exp2_4 : vector<8xf32>
          %factor_lanes3_3 = math.fma %factor_lanes3_4, %factor_lanes3_rest, %exp2_3 : vector<8xf32>
          %factor_lanes3_2 = math.fma %factor_lanes3_3, %factor_lanes3_rest, %exp2_2 : vector<8xf32>
          %factor_lanes3_1 = math.fma %factor_lanes3_2, %factor_lanes3_rest, %exp2_1 : vector<8xf32>
          %factor_lanes3_0 = math.fma %factor_lanes3_1, %factor_lanes3_rest, %exp2_0 : vector<8xf32>
          %factor_lanes3_whole_bits = vector.bitcast %factor_lanes3_shifted : vector<8xf32> to vector<8xi32>
          %factor_lanes3_exponent = arith.shli %factor_lanes3_whole_bits, %mantissa_bits : vector<8xi32>
          %factor_lanes3_bits = vector.bitcast %factor_lanes3_0 : vector<8xf32> to vector<8xi32>
          %factor_lanes3_scaled_bits = arith.addi %factor_lanes3_bits, %factor_lanes3_exponent : vector<8xi32>
          %factor_lanes3_power = vector.bitcast %factor_lanes3_scaled_bits : vector<8xi32> to vector<8xf32>
          %factor_lanes3_is_small = arith.cmpf olt, %old_below3, %least_power : vector<8xf32>
          %factor_lanes3_or_zero = arith.select %factor_lanes3_is_small, %zeros, %factor_lanes3_power : vector<8xi1>, vector<8xf32>
          %factor_lanes3_is_large = arith.cmpf ogt, %old_below3, %largest_power : vector<8xf32>
          %factor_lanes3_or_infinity = arith.select %factor_lanes3_is_large, %infinities, %factor_lanes3_or_zero : vector<8xi1>, vector<8xf32>
          %factor_lanes3_is_nan = arith.cmpf uno, %old_below3, %old_below3 : vector<8xf32>
          %factor_lanes3 = arith.select %factor_lanes3_is_nan, %old_below3, %factor_lanes3_or_infinity : vector<8xi1>, vector<8xf32>
        %factor3 = vector.extract %factor_lanes3[0] : f32 from vector<8xf32>
        %old_total3 = memref.load %totals[%item, %head3] : memref<?x4xf32>
        %total3 = math.fma %old_total3, %factor3, %total_here3 : f32
        memref.store %maximum3, %maxima[%item, %head3] : memref<?x4xf32>
        memref.store %total3, %totals[%item, %head3] : memref<?x4xf32>

        // Values: 4 heads x 2 vectors of columns in registers, summed key by key.
        %panel = arith.constant 16 : index
        %terms = arith.divui %key_end, %c1 : index
        scf.for %d = %c0 to %nope step %panel {
          %columns0 = arith.constant 0 : index
          %d0 = arith.addi %d, %columns0 : index
          %columns1 = arith.constant 8 : index
          %d1 = arith.addi %d, %columns1 : index
          %sums:8 = scf.for %k = %c0 to %terms step %c1
              iter_args(%sum0 = %zeros, %sum1 = %zeros, %sum2 = %zeros, %sum3 = %zeros, %sum4 = %zeros, %sum5 = %zeros, %sum6 = %zeros, %sum7 = %zeros) -> (vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>) {
            %value0 = vector.load %keys[%k, %d0] : memref<64x592xf32>, vector<8xf32>
            %value1 = vector.load %keys[%k, %d1] : memref<64x592xf32>, vector<8xf32>
            %weight0 = memref.load %scores[%head0, %k] : memref<4x64xf32>
            %weight_lanes0 = vector.broadcast %weight0 : f32 to vector<8xf32>
            %next0 = math.fma %value0, %weight_lanes0, %sum0 : vector<8xf32>

            %next1 = math.fma %value1, %weight_lanes0, %sum1 : vector<8xf32>

            %weight1 = memref.load %scores[%head1, %k] : memref<4x64xf32>
            %weight_lanes1 = vector.broadcast %weight1 : f32 to vector<8xf32>
            %next2 = math.fma %value0, %weight_lanes1, %sum2 : vector<8xf32>

            %next3 = math.fma %value1, %weight_lanes1, %sum3 : vector<8xf32>

            %weight2 = memref.load %scores[%head2, %k] : memref<4x64xf32>
            %weight_lanes2 = vector.broadcast %weight2 : f32 to vector<8xf32>
            %next4 = math.fma %value0, %weight_lanes2, %sum4 : vector<8xf32>

            %next5 = math.fma %value1, %weight_lanes2, %sum5 : vector<8xf32>

            %weight3 = memref.load %scores[%head3, %k] : memref<4x64xf32>
            %weight_lanes3 = vector.broadcast %weight3 : f32 to vector<8xf32>
            %next6 = math.fma %value0, %weight_lanes3, %sum6 : vector<8xf32>

            %next7 = math.fma %value1, %weight_lanes3, %sum7 : vector<8xf32>

            scf.yield %next0, %next1, %next2, %next3, %next4, %next5, %next6, %next7 : vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>
          }
            %so_far0_0_before = vector.load %values[%item, %head0, %d0] : memref<?x4x512xf32>, vector<8xf32>
            %so_far0_0_kept = arith.select %is_first, %zeros, %so_far0_0_before : vector<8xf32>
            %so_far0_0 = math.fma %so_far0_0_kept, %factor_lanes0, %sums#0 : vector<8xf32>
            vector.store %so_far0_0, %values[%item, %head0, %d0] : memref<?x4x512xf32>, vector<8xf32>
            %so_far0_1_before = vector.load %values[%item, %head0, %d1] : memref<?x4x512xf32>, vector<8xf32>
            %so_far0_1_kept = arith.select %is_first, %zeros, %so_far0_1_before : vector<8xf32>
            %so_far0_1 = math.fma %so_far0_1_kept, %factor_lanes0, %sums#1 : vector<8xf32>
            vector.store %so_far0_1, %values[%item, %head0, %d1] : memref<?x4x512xf32>, vector<8xf32>
            %so_far1_0_before = vector.load %values[%item, %head1, %d0] : memref<?x4x512xf32>, vector<8xf32>
            %so_far1_0_kept = arith.select %is_first, %zeros, %so_far1_0_before : vector<8xf32>
            %so_far1_0 = math.fma %so_far1_0_kept, %factor_lanes1, %sums#2 : vector<8xf32>
            vector.store %so_far1_0, %values[%item, %head1, %d0] : memref<?x4x512xf32>, vector<8xf32>
            %so_far1_1_before = vector.load %values[%item, %head1, %d1] : memref<?x4x512xf32>, vector<8xf32>
            %so_far1_1_kept = arith.select %is_first, %zeros, %so_far1_1_before : vector<8xf32>
            %so_far1_1 = math.fma %so_far1_1_kept, %factor_lanes1, %sums#3 : vector<8xf32>
            vector.store %so_far1_1, %values[%item, %head1, %d1] : memref<?x4x512xf32>, vector<8xf32>
            %so_far2_0_before = vector.load %values[%item, %head2, %d0] : memref<?x4x512xf32>, vector<8xf32>
            %so_far2_0_kept = arith.select %is_first, %zeros, %so_far2_0_before : vector<8xf32>
            %so_far2_0 = math.fma %so_far2_0_kept, %factor_lanes2, %sums#4 : vector<8xf32>
            vector.store %so_far2_0, %values[%item, %head2, %d0] : memref<?x4x512xf32>, vector<8xf32>
            %so_far2_1_before = vector.load %values[%item, %head2, %d1] : memref<?x4x512xf32>, vector<8xf32>
            %so_far2_1_kept = arith.select %is_first, %zeros, %so_far2_1_before : vector<8xf32>
            %so_far2_1 = math.fma %so_far2_1_kept, %factor_lanes2, %sums#5 : vector<8xf32>
            vector.store %so_far2_1, %values[%item, %head2, %d1] : memref<?x4x512xf32>, vector<8xf32>
            %so_far3_0_before = vector.load %values[%item, %head3, %d0] : memref<?x4x512xf32>, vector<8xf32>
            %so_far3_0_kept = arith.select %is_first, %zeros, %so_far3_0_before : vector<8xf32>
            %so_far3_0 = math.fma %so_far3_0_kept, %factor_lanes3, %sums#6 : vector<8xf32>
            vector.store %so_far3_0, %values[%item, %head3, %d0] : memref<?x4x512xf32>, vector<8xf32>
            %so_far3_1_before = vector.load %values[%item, %head3, %d1] : memref<?x4x512xf32>, vector<8xf32>
            %so_far3_1_kept = arith.select %is_first, %zeros, %so_far3_1_before : vector<8xf32>
            %so_far3_1 = math.fma %so_far3_1_kept, %factor_lanes3, %sums#7 : vector<8xf32>
            vector.store %so_far3_1, %values[%item, %head3, %d1] : memref<?x4x512xf32>, vector<8xf32>
        }
      }
      return
    }
  }
}
stream.executable private @fold_avx2 {
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
      %lanes = arith.constant 8 : index
      %columns = arith.constant 576 : index
      %nope = arith.constant 512 : index
      %key_block = arith.constant 256 : index
      %key_step = arith.constant 8 : index
      %zero_i32 = arith.constant 0 : i32
      %masked = arith.constant -1 : i32
      %zero = arith.constant 0.0 : f32
      %minus_infinity = arith.constant 0xFF800000 : f32
      %no_elements = arith.constant dense<0.0> : vector<8xf32>
      %zeros = arith.constant dense<0.0> : vector<8xf32>
      %minus_infinities = arith.constant dense<0xFF800000> : vector<8xf32>
      %infinities = arith.constant dense<0x7F800000> : vector<8xf32>
      %least_power = arith.constant dense<-126.0> : vector<8xf32>
      %largest_power = arith.constant dense<127.0> : vector<8xf32>
      %rounder = arith.constant dense<12582912.0> : vector<8xf32>
      %exp2_0 = arith.constant dense<1.0> : vector<8xf32>
      %exp2_1 = arith.constant dense<0.693147180559945> : vector<8xf32>
      %exp2_2 = arith.constant dense<0.240226506959101> : vector<8xf32>
      %exp2_3 = arith.constant dense<0.0555041086648216> : vector<8xf32>
      %exp2_4 = arith.constant dense<0.00961812910762848> : vector<8xf32>
      %exp2_5 = arith.constant dense<0.00133335581464284> : vector<8xf32>
      %exp2_6 = arith.constant dense<0.000154035303933816> : vector<8xf32>
      %ones_i32 = arith.constant dense<1> : vector<8xi32>
      %sixteens = arith.constant dense<16> : vector<8xi32>
      %mantissa_bits = arith.constant dense<23> : vector<8xi32>
      %half_of_bfloat16 = arith.constant dense<0x7FFF> : vector<8xi32>
      %upper_half = arith.constant dense<0xFFFF0000> : vector<8xi32>
      %heads = arith.constant 4 : index
      %last_group = arith.constant 0 : index
      %blocks_at_once = arith.constant 64 : index
      %panel = arith.constant 64 : index
      %partial = stream.binding.subspan %partial_binding[%c0] : !stream.binding -> memref<?x4x512xf32>{%count}
      %maxima = stream.binding.subspan %maximum_binding[%c0] : !stream.binding -> memref<?x4xf32>{%count}
      %totals = stream.binding.subspan %total_binding[%c0] : !stream.binding -> memref<?x4xf32>{%count}
      %spans = stream.binding.subspan %spans_binding[%c0] : !stream.binding -> memref<?x2xi32>{%rows}
      %row_values = stream.binding.subspan %row_values_binding[%c0] : !stream.binding -> memref<?x4x512xf32>{%rows}
      %row_maxima = stream.binding.subspan %row_maximum_binding[%c0] : !stream.binding -> memref<?x4xf32>{%rows}
      %row_totals = stream.binding.subspan %row_total_binding[%c0] : !stream.binding -> memref<?x4xf32>{%rows}
      %weights = "memref.alloca"() <{alignment = 64 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<64x4xf32>
      %row = stream.dispatch.workgroup.id[0] : index
      %first_i32 = memref.load %spans[%row, %c0] : memref<?x2xi32>
      %first = arith.index_cast %first_i32 : i32 to index
      %blocks_i32 = memref.load %spans[%row, %c1] : memref<?x2xi32>
      %blocks = arith.index_cast %blocks_i32 : i32 to index
      // A row without blocks gets one turn, which makes it zeros.
      %blocks_to_do = arith.maxui %blocks, %c1 : index
      %end = arith.addi %first, %blocks : index

      scf.for %group_start = %c0 to %heads step %c1 {
        %h = arith.addi %group_start, %c0 : index
        %maximum = scf.for %b = %first to %end step %c1 iter_args(%so_far = %minus_infinities) -> (vector<8xf32>) {
          %block_maximum_one = memref.load %maxima[%b, %h] : memref<?x4xf32>
          %block_maximum = vector.broadcast %block_maximum_one : f32 to vector<8xf32>

          %larger = arith.maximumf %so_far, %block_maximum : vector<8xf32>
          scf.yield %larger : vector<8xf32>
        }
          %maximum_one = vector.extract %maximum[0] : f32 from vector<8xf32>
          memref.store %maximum_one, %row_maxima[%row, %h] : memref<?x4xf32>

          %zeros_one = vector.extract %zeros[0] : f32 from vector<8xf32>
          memref.store %zeros_one, %row_totals[%row, %h] : memref<?x4xf32>

      }
      scf.for %chunk = %c0 to %blocks_to_do step %blocks_at_once {
        %left = arith.subi %blocks, %chunk : index
        %count_here_any = arith.minsi %left, %blocks_at_once : index
        %count_here = arith.maxsi %count_here_any, %c0 : index
        %chunk_first = arith.addi %first, %chunk : index
        %is_first = arith.cmpi eq, %chunk, %c0 : index

        // How much each block weighs against the row's maximum.
        scf.for %group_start = %c0 to %heads step %c1 {
          %h = arith.addi %group_start, %c0 : index
          %maximum_one = memref.load %row_maxima[%row, %h] : memref<?x4xf32>
          %maximum = vector.broadcast %maximum_one : f32 to vector<8xf32>

          %reference_magnitude = math.absf %maximum : vector<8xf32>
          %reference_is_infinite = arith.cmpf oeq, %reference_magnitude, %infinities : vector<8xf32>
          %reference = arith.select %reference_is_infinite, %zeros, %maximum : vector<8xi1>, vector<8xf32>
          scf.for %b = %c0 to %count_here step %c1 {
            %place = arith.addi %chunk_first, %b : index
          %block_maximum_one = memref.load %maxima[%place, %h] : memref<?x4xf32>
          %block_maximum = vector.broadcast %block_maximum_one : f32 to vector<8xf32>

            %below = arith.subf %block_maximum, %reference : vector<8xf32>
          %weight_above = arith.maximumf %below, %least_power : vector<8xf32>
          %weight_inside = arith.minimumf %weight_above, %largest_power : vector<8xf32>
          %weight_shifted = arith.addf %weight_inside, %rounder : vector<8xf32>
          %weight_whole = arith.subf %weight_shifted, %rounder : vector<8xf32>
          %weight_rest = arith.subf %weight_inside, %weight_whole : vector<8xf32>
          %weight_5 = math.fma %exp2_6, %weight_rest, %exp2_5 : vector<8xf32>
          %weight_4 = math.fma %weight_5, %weight_rest, %exp2_4 : vector<8xf32>
          %weight_3 = math.fma %weight_4, %weight_rest, %exp2_3 : vector<8xf32>
          %weight_2 = math.fma %weight_3, %weight_rest, %exp2_2 : vector<8xf32>
          %weight_1 = math.fma %weight_2, %weight_rest, %exp2_1 : vector<8xf32>
          %weight_0 = math.fma %weight_1, %weight_rest, %exp2_0 : vector<8xf32>
          %weight_whole_bits = vector.bitcast %weight_shifted : vector<8xf32> to vector<8xi32>
          %weight_exponent = arith.shli %weight_whole_bits, %mantissa_bits : vector<8xi32>
          %weight_bits = vector.bitcast %weight_0 : vector<8xf32> to vector<8xi32>
          %weight_scaled_bits = arith.addi %weight_bits, %weight_exponent : vector<8xi32>
          %weight_power = vector.bitcast %weight_scaled_bits : vector<8xi32> to vector<8xf32>
          %weight_is_small = arith.cmpf olt, %below, %least_power : vector<8xf32>
          %weight_or_zero = arith.select %weight_is_small, %zeros, %weight_power : vector<8xi1>, vector<8xf32>
          %weight_is_large = arith.cmpf ogt, %below, %largest_power : vector<8xf32>
          %weight_or_infinity = arith.select %weight_is_large, %infinities, %weight_or_zero : vector<8xi1>, vector<8xf32>
          %weight_is_nan = arith.cmpf uno, %below, %below : vector<8xf32>
          %weight = arith.select %weight_is_nan, %below, %weight_or_infinity : vector<8xi1>, vector<8xf32>
          %weight_one = vector.extract %weight[0] : f32 from vector<8xf32>
          memref.store %weight_one, %weights[%b, %h] : memref<64x4xf32>

          }
        }
        // The last group of heads may overlap the one before, so totals come after all weights are there, head by head.
        scf.for %h = %c0 to %heads step %c1 {
          %total_so_far = memref.load %row_totals[%row, %h] : memref<?x4xf32>
          %total = scf.for %b = %c0 to %count_here step %c1 iter_args(%so_far = %total_so_far) -> (f32) {
            %place = arith.addi %chunk_first, %b : index
            %block_total = memref.load %totals[%place, %h] : memref<?x4xf32>
            %weight = memref.load %weights[%b, %h] : memref<64x4xf32>
            %share = arith.mulf %block_total, %weight : f32
            %next = arith.addf %so_far, %share : f32
            scf.yield %next : f32
          }
          memref.store %total, %row_totals[%row, %h] : memref<?x4xf32>

          // Values: 8 vectors of columns in registers.
          scf.for %d = %c0 to %nope step %panel {
            %columns0 = arith.constant 0 : index
            %d0 = arith.addi %d, %columns0 : index
            %columns1 = arith.constant 8 : index
            %d1 = arith.addi %d, %columns1 : index
            %columns2 = arith.constant 16 : index
            %d2 = arith.addi %d, %columns2 : index
            %columns3 = arith.constant 24 : index
            %d3 = arith.addi %d, %columns3 : index
            %columns4 = arith.constant 32 : index
            %d4 = arith.addi %d, %columns4 : index
            %columns5 = arith.constant 40 : index
            %d5 = arith.addi %d, %columns5 : index
            %columns6 = arith.constant 48 : index
            %d6 = arith.addi %d, %columns6 : index
            %columns7 = arith.constant 56 : index
            %d7 = arith.addi %d, %columns7 : index
            %begin:8 = scf.if %is_first -> (vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>) {
              scf.yield %zeros, %zeros, %zeros, %zeros, %zeros, %zeros, %zeros, %zeros : vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>
            } else {
              %kept0 = vector.load %row_values[%row, %h, %d0] : memref<?x4x512xf32>, vector<8xf32>
              %kept1 = vector.load %row_values[%row, %h, %d1] : memref<?x4x512xf32>, vector<8xf32>
              %kept2 = vector.load %row_values[%row, %h, %d2] : memref<?x4x512xf32>, vector<8xf32>
              %kept3 = vector.load %row_values[%row, %h, %d3] : memref<?x4x512xf32>, vector<8xf32>
              %kept4 = vector.load %row_values[%row, %h, %d4] : memref<?x4x512xf32>, vector<8xf32>
              %kept5 = vector.load %row_values[%row, %h, %d5] : memref<?x4x512xf32>, vector<8xf32>
              %kept6 = vector.load %row_values[%row, %h, %d6] : memref<?x4x512xf32>, vector<8xf32>
              %kept7 = vector.load %row_values[%row, %h, %d7] : memref<?x4x512xf32>, vector<8xf32>
              scf.yield %kept0, %kept1, %kept2, %kept3, %kept4, %kept5, %kept6, %kept7 : vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>
            }
            %sums:8 = scf.for %b = %c0 to %count_here step %c1
                iter_args(%sum0 = %begin#0, %sum1 = %begin#1, %sum2 = %begin#2, %sum3 = %begin#3, %sum4 = %begin#4, %sum5 = %begin#5, %sum6 = %begin#6, %sum7 = %begin#7) -> (vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>) {
              %place = arith.addi %chunk_first, %b : index
              %weight = memref.load %weights[%b, %h] : memref<64x4xf32>
              %weight_lanes = vector.broadcast %weight : f32 to vector<8xf32>
              %value0 = vector.load %partial[%place, %h, %d0] : memref<?x4x512xf32>, vector<8xf32>
              %next0 = math.fma %weight_lanes, %value0, %sum0 : vector<8xf32>
              %value1 = vector.load %partial[%place, %h, %d1] : memref<?x4x512xf32>, vector<8xf32>
              %next1 = math.fma %weight_lanes, %value1, %sum1 : vector<8xf32>
              %value2 = vector.load %partial[%place, %h, %d2] : memref<?x4x512xf32>, vector<8xf32>
              %next2 = math.fma %weight_lanes, %value2, %sum2 : vector<8xf32>
              %value3 = vector.load %partial[%place, %h, %d3] : memref<?x4x512xf32>, vector<8xf32>
              %next3 = math.fma %weight_lanes, %value3, %sum3 : vector<8xf32>
              %value4 = vector.load %partial[%place, %h, %d4] : memref<?x4x512xf32>, vector<8xf32>
              %next4 = math.fma %weight_lanes, %value4, %sum4 : vector<8xf32>
              %value5 = vector.load %partial[%place, %h, %d5] : memref<?x4x512xf32>, vector<8xf32>
              %next5 = math.fma %weight_lanes, %value5, %sum5 : vector<8xf32>
              %value6 = vector.load %partial[%place, %h, %d6] : memref<?x4x512xf32>, vector<8xf32>
              %next6 = math.fma %weight_lanes, %value6, %sum6 : vector<8xf32>
              %value7 = vector.load %partial[%place, %h, %d7] : memref<?x4x512xf32>, vector<8xf32>
              %next7 = math.fma %weight_lanes, %value7, %sum7 : vector<8xf32>
              scf.yield %next0, %next1, %next2, %next3, %next4, %next5, %next6, %next7 : vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>
            }
            vector.store %sums#0, %row_values[%row, %h, %d0] : memref<?x4x512xf32>, vector<8xf32>
            vector.store %sums#1, %row_values[%row, %h, %d1] : memref<?x4x512xf32>, vector<8xf32>
            vector.store %sums#2, %row_values[%row, %h, %d2] : memref<?x4x512xf32>, vector<8xf32>
            vector.store %sums#3, %row_values[%row, %h, %d3] : memref<?x4x512xf32>, vector<8xf32>
            vector.store %sums#4, %row_values[%row, %h, %d4] : memref<?x4x512xf32>, vector<8xf32>
            vector.store %sums#5, %row_values[%row, %h, %d5] : memref<?x4x512xf32>, vector<8xf32>
            vector.store %sums#6, %row_values[%row, %h, %d6] : memref<?x4x512xf32>, vector<8xf32>
            vector.store %sums#7, %row_values[%row, %h, %d7] : memref<?x4x512xf32>, vector<8xf32>
          }
        }
      }
      return
    }
  }
}

// Partial results: sum of exp2(score - maximum) * value, the maximum (scores carry log2(e)), and the sum of the weights.
func.func @attend(
  %query: !query, %key: !key, %indices: !indices, %block_table: tensor<?x?xi32>, %query_lengths: !lengths, %kv_lengths: !lengths, %scale: f32, %items: !items
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
    %logical_i32 = arith.divui %token, %kv_extent : i32
    %logical = arith.index_cast %logical_i32 : i32 to index
    %physical = tensor.extract %block_table[%batch, %logical] : tensor<?x?xi32>
    %page_start = arith.muli %physical, %kv_extent : i32
    %in_page = arith.remui %token, %kv_extent : i32
    %row = arith.addi %page_start, %in_page : i32


    %slot_row = arith.select %attended, %row, %masked : i32
    linalg.yield %slot_row : i32
  } -> !item_keys
  // Without the barrier IREE fuses this into each of its users and redoes it for every column.
  %slots = iree_tensor_ext.compute_barrier.start %slots_computed : !item_keys{%count} -> !item_keys
  %rows = tensor.dim %query_rows, %c0 : !query_rows
  %scale_log2_e = arith.mulf %scale, %log2_e : f32
  %partial, %maximum, %sum = flow.dispatch @attend_avx2::@items[%count](
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
  %row_values, %row_maximum, %row_total = flow.dispatch @fold_avx2::@rows[%rows](
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
  %query: !query, %key: !key, %indices: !indices, %block_table: tensor<?x?xi32>, %query_lengths: !lengths, %kv_lengths: !lengths, %scale: f32, %items: !items, %storage: !partial {iree.abi.output = 0 : index}
) -> (!partial, !per_head, !per_head) attributes {iree.reflection = {}} {
  %partial, %maximum, %total = call @attend(%query, %key, %indices, %block_table, %query_lengths, %kv_lengths, %scale, %items)
    : (!query, !key, !indices, tensor<?x?xi32>, !lengths, !lengths, f32, !items) -> (!partial, !per_head, !per_head)
  return %partial, %maximum, %total : !partial, !per_head, !per_head
}

// Both passes, for rows whose work items are all there.
func.func @attend_rows(
  %query: !query, %key: !key, %indices: !indices, %block_table: tensor<?x?xi32>, %query_lengths: !lengths, %kv_lengths: !lengths, %scale: f32, %items: !items, %spans: tensor<?x2xi32>, %longest: i32
) -> (!folded, !per_head) attributes {iree.reflection = {}} {
  %partial, %maximum, %total = call @attend(%query, %key, %indices, %block_table, %query_lengths, %kv_lengths, %scale, %items)
    : (!query, !key, !indices, tensor<?x?xi32>, !lengths, !lengths, f32, !items) -> (!partial, !per_head, !per_head)
  %out, %lse = call @fold(%partial, %maximum, %total, %spans, %longest)
    : (!partial, !per_head, !per_head, tensor<?x2xi32>, i32) -> (!folded, !per_head)
  return %out, %lse : !folded, !per_head
}
}
