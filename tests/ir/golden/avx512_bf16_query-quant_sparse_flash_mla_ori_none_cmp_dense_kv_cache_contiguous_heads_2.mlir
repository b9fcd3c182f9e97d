!query_rows = tensor<?x2x512xi8>
!kv = tensor<?x512xi8>
!cache = tensor<?x512xi8>
!indices_rows = tensor<?x?xi32>
!ranges = tensor<?x7xi32> // ori and cmp: cache row of the sequence's token 0, first token seen, end; then ori's key blocks
!descales = tensor<2xf32> // ori, cmp
!item_parts = tensor<?xi32>
!items = tensor<?x3xi32> // query row, batch, key block of the row
!item_keys = tensor<?x256xi32>
!item_query = tensor<?x2x512xbf16>
!item_nope = tensor<?x256x512xbf16>
!item_scores = tensor<?x2x256xf32>
!item_weights = tensor<?x2x256xbf16>
!item_partial = tensor<?x2x512xf32>
!item_per_head = tensor<?x2xf32>
!partial = tensor<?x2x512xf32>
!per_item = tensor<?xf32>
!per_head = tensor<?x2xf32>
!sinks = tensor<2xf32>
!folded = tensor<?x2x512xbf16>

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


module @quant_sparse_flash_mla_ori_none_cmp_dense_kv_cache_contiguous_heads_2 {

stream.executable private @attend_avx512_bf16 {
  stream.executable.export public @items workgroups(%items: index) -> (index, index, index) {
    %c1 = arith.constant 1 : index
    stream.return %items, %c1, %c1 : index, index, index
  }
  builtin.module {
    func.func @items(
      %query_binding: !stream.binding,
      %cmp_cache_binding: !stream.binding,
      %parts_binding: !stream.binding, %descales_binding: !stream.binding,
      %slots_binding: !stream.binding, %items_binding: !stream.binding,
      %rows: index,
      %cmp_cache_size: index,

      %count: index, %scale_log2_e: f32,
      %values_binding: !stream.binding, %maximum_binding: !stream.binding, %total_binding: !stream.binding
    ) attributes {translation_info = #iree_codegen.translation_info<pipeline = #iree_codegen.no_pipeline>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %lanes = arith.constant 16 : index
      %columns = arith.constant 256 : index
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
      %values = stream.binding.subspan %values_binding[%c0] : !stream.binding -> memref<?x2x512xf32>{%count}
      %maxima = stream.binding.subspan %maximum_binding[%c0] : !stream.binding -> memref<?x2xf32>{%count}
      %totals = stream.binding.subspan %total_binding[%c0] : !stream.binding -> memref<?x2xf32>{%count}
      %item = stream.dispatch.workgroup.id[0] : index
      %query_row_i32 = memref.load %items[%item, %c0] : memref<?x3xi32>
      %query_row = arith.index_cast %query_row_i32 : i32 to index
      %query = stream.binding.subspan %query_binding[%c0] : !stream.binding -> memref<?x2x512xi8>{%rows}
      %cmp_cache = stream.binding.subspan %cmp_cache_binding[%c0] : !stream.binding -> memref<?x512xi8>{%cmp_cache_size}
      %item_parts = stream.binding.subspan %parts_binding[%c0] : !stream.binding -> memref<?xi32>{%count}
      %item_descales = stream.binding.subspan %descales_binding[%c0] : !stream.binding -> memref<?xf32>{%count}
      %run = arith.constant 32 : index
      %words0 = arith.constant dense<[0, 13440, 13568, 13696, 13824, 13952, 14080, 14208, 16256, 16272, 16288, 16304, 16320, 16336, 16352, 16368, 16384, 16400, 16416, 16432, 16448, 16464, 16480, 16496, 16128, 16144, 16160, 16176, 16192, 16208, 16224, 16240]> : vector<32xi16>
      %words1 = arith.constant dense<[16512, 16528, 16544, 16560, 16576, 16592, 16608, 16624, 16640, 16656, 16672, 16688, 16704, 16720, 16736, 16752, 16000, 16016, 16032, 16048, 16064, 16080, 16096, 16112, 15872, 15888, 15904, 15920, 15936, 15952, 15968, 15984]> : vector<32xi16>
      %words2 = arith.constant dense<[16768, 16800, 16832, 16864, 16896, 16928, 16960, 16992, 17024, 17056, 17088, 17120, 17152, 17184, 17216, 17248, 15744, 15776, 15808, 15840, 15616, 15648, 15680, 15712, 15488, 15520, 15552, 15584, 15360, 15392, 15424, 15456]> : vector<32xi16>
      %words3 = arith.constant dense<[17280, 17344, 17408, 17472, 17536, 17600, 17664, 17728, 17792, 17856, 17920, 17984, 18048, 18112, 18176, 32640, 15232, 15296, 15104, 15168, 14976, 15040, 14848, 14912, 14720, 14784, 14592, 14656, 14464, 14528, 14336, 14400]> : vector<32xi16>
      %upper_magnitudes = arith.constant dense<0x40> : vector<32xi16>
      %code_sign = arith.constant dense<0x80> : vector<32xi16>
      %code_sign_place = arith.constant dense<8> : vector<32xi16>
      %code_nan = arith.constant dense<0x80> : vector<32xi16>
      %nan_words = arith.constant dense<0x7FC0> : vector<32xi16>
      %no_words = arith.constant dense<0> : vector<32xi16>

      %part = memref.load %item_parts[%item] : memref<?xi32>
      %in_cmp = arith.cmpi ne, %part, %zero_i32 : i32
      %descale = memref.load %item_descales[%item] : memref<?xf32>
      %descale_lanes = vector.broadcast %descale : f32 to vector<16xf32>
      %score_factor = arith.mulf %scale_log2_e, %descale : f32
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

      %keys = "memref.alloca"() <{alignment = 64 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<64x272xi32>
      %ahead = arith.constant 8 : index
      %last_slot = arith.constant 255 : index
      %paired = "memref.alloca"() <{alignment = 64 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<32x528xi32>
      %scores = "memref.alloca"() <{alignment = 64 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<2x64xf32>
      %weights = "memref.alloca"() <{alignment = 64 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<2x32xi32>
      %packed = "memref.alloca"() <{alignment = 64 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<2x256xi32>
      %keys_at_once = arith.constant 8 : index
      %some_factors = vector.broadcast %score_factor : f32 to vector<8xf32>
      %some_minus_infinities = arith.constant dense<0xFF800000> : vector<8xf32>
      %some_zeros_i32 = arith.constant dense<0> : vector<8xi32>
      %head0 = arith.constant 0 : index
          scf.for %d = %c0 to %nope step %run {
              %decoded_codes = vector.load %query[%query_row, %head0, %d] : memref<?x2x512xi8>, vector<32xi8>
              %decoded_index = arith.extui %decoded_codes : vector<32xi8> to vector<32xi16>
              %decoded_lower = llvm.call_intrinsic "llvm.x86.avx512.vpermi2var.hi.512"(%words0, %decoded_index, %words1)
                : (vector<32xi16>, vector<32xi16>, vector<32xi16>) -> vector<32xi16>
              %decoded_upper = llvm.call_intrinsic "llvm.x86.avx512.vpermi2var.hi.512"(%words2, %decoded_index, %words3)
                : (vector<32xi16>, vector<32xi16>, vector<32xi16>) -> vector<32xi16>
              %decoded_upper_bit = arith.andi %decoded_index, %upper_magnitudes : vector<32xi16>
              %decoded_is_upper = arith.cmpi ne, %decoded_upper_bit, %no_words : vector<32xi16>
              %decoded_magnitude = arith.select %decoded_is_upper, %decoded_upper, %decoded_lower : vector<32xi1>, vector<32xi16>
              %decoded_sign = arith.andi %decoded_index, %code_sign : vector<32xi16>
              %decoded_sign_placed = arith.shli %decoded_sign, %code_sign_place : vector<32xi16>
              %decoded_signed = arith.ori %decoded_magnitude, %decoded_sign_placed : vector<32xi16>
              %decoded_is_nan = arith.cmpi eq, %decoded_index, %code_nan : vector<32xi16>
              %decoded_all = arith.select %decoded_is_nan, %nan_words, %decoded_signed : vector<32xi1>, vector<32xi16>
              %decoded_part0 = vector.shuffle %decoded_all, %decoded_all [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15] : vector<32xi16>, vector<32xi16>
              %decoded_wide0 = arith.extui %decoded_part0 : vector<16xi16> to vector<16xi32>
              %decoded_bits0 = arith.shli %decoded_wide0, %sixteens : vector<16xi32>
              %decoded0 = vector.bitcast %decoded_bits0 : vector<16xi32> to vector<16xf32>
              %decoded_part1 = vector.shuffle %decoded_all, %decoded_all [16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31] : vector<32xi16>, vector<32xi16>
              %decoded_wide1 = arith.extui %decoded_part1 : vector<16xi16> to vector<16xi32>
              %decoded_bits1 = arith.shli %decoded_wide1, %sixteens : vector<16xi32>
              %decoded1 = vector.bitcast %decoded_bits1 : vector<16xi32> to vector<16xf32>


            %offset0 = arith.constant 0 : index
            %d0 = arith.addi %d, %offset0 : index
          %decoded0_short_bfloat16 = llvm.call_intrinsic "llvm.x86.avx512bf16.cvtneps2bf16.512"(%decoded0) : (vector<16xf32>) -> vector<16xbf16>
          %decoded0_short = vector.bitcast %decoded0_short_bfloat16 : vector<16xbf16> to vector<16xi16>

          %decoded0_short_pairs = vector.bitcast %decoded0_short : vector<16xi16> to vector<8xi32>
          %decoded0_short_column = arith.divui %d0, %c2 : index
          vector.store %decoded0_short_pairs, %packed[%head0, %decoded0_short_column] : memref<2x256xi32>, vector<8xi32>



            %offset1 = arith.constant 16 : index
            %d1 = arith.addi %d, %offset1 : index
          %decoded1_short_bfloat16 = llvm.call_intrinsic "llvm.x86.avx512bf16.cvtneps2bf16.512"(%decoded1) : (vector<16xf32>) -> vector<16xbf16>
          %decoded1_short = vector.bitcast %decoded1_short_bfloat16 : vector<16xbf16> to vector<16xi16>

          %decoded1_short_pairs = vector.bitcast %decoded1_short : vector<16xi16> to vector<8xi32>
          %decoded1_short_column = arith.divui %d1, %c2 : index
          vector.store %decoded1_short_pairs, %packed[%head0, %decoded1_short_column] : memref<2x256xi32>, vector<8xi32>



          }
      %head1 = arith.constant 1 : index
          scf.for %d = %c0 to %nope step %run {
              %decoded_codes = vector.load %query[%query_row, %head1, %d] : memref<?x2x512xi8>, vector<32xi8>
              %decoded_index = arith.extui %decoded_codes : vector<32xi8> to vector<32xi16>
              %decoded_lower = llvm.call_intrinsic "llvm.x86.avx512.vpermi2var.hi.512"(%words0, %decoded_index, %words1)
                : (vector<32xi16>, vector<32xi16>, vector<32xi16>) -> vector<32xi16>
              %decoded_upper = llvm.call_intrinsic "llvm.x86.avx512.vpermi2var.hi.512"(%words2, %decoded_index, %words3)
                : (vector<32xi16>, vector<32xi16>, vector<32xi16>) -> vector<32xi16>
              %decoded_upper_bit = arith.andi %decoded_index, %upper_magnitudes : vector<32xi16>
              %decoded_is_upper = arith.cmpi ne, %decoded_upper_bit, %no_words : vector<32xi16>
              %decoded_magnitude = arith.select %decoded_is_upper, %decoded_upper, %decoded_lower : vector<32xi1>, vector<32xi16>
              %decoded_sign = arith.andi %decoded_index, %code_sign : vector<32xi16>
              %decoded_sign_placed = arith.shli %decoded_sign, %code_sign_place : vector<32xi16>
              %decoded_signed = arith.ori %decoded_magnitude, %decoded_sign_placed : vector<32xi16>
              %decoded_is_nan = arith.cmpi eq, %decoded_index, %code_nan : vector<32xi16>
              %decoded_all = arith.select %decoded_is_nan, %nan_words, %decoded_signed : vector<32xi1>, vector<32xi16>
              %decoded_part0 = vector.shuffle %decoded_all, %decoded_all [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15] : vector<32xi16>, vector<32xi16>
              %decoded_wide0 = arith.extui %decoded_part0 : vector<16xi16> to vector<16xi32>
              %decoded_bits0 = arith.shli %decoded_wide0, %sixteens : vector<16xi32>
              %decoded0 = vector.bitcast %decoded_bits0 : vector<16xi32> to vector<16xf32>
              %decoded_part1 = vector.shuffle %decoded_all, %decoded_all [16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31] : vector<32xi16>, vector<32xi16>
              %decoded_wide1 = arith.extui %decoded_part1 : vector<16xi16> to vector<16xi32>
              %decoded_bits1 = arith.shli %decoded_wide1, %sixteens : vector<16xi32>
              %decoded1 = vector.bitcast %decoded_bits1 : vector<16xi32> to vector<16xf32>


            %offset0 = arith.constant 0 : index
            %d0 = arith.addi %d, %offset0 : index
          %decoded0_short_bfloat16 = llvm.call_intrinsic "llvm.x86.avx512bf16.cvtneps2bf16.512"(%decoded0) : (vector<16xf32>) -> vector<16xbf16>
          %decoded0_short = vector.bitcast %decoded0_short_bfloat16 : vector<16xbf16> to vector<16xi16>

          %decoded0_short_pairs = vector.bitcast %decoded0_short : vector<16xi16> to vector<8xi32>
          %decoded0_short_column = arith.divui %d0, %c2 : index
          vector.store %decoded0_short_pairs, %packed[%head1, %decoded0_short_column] : memref<2x256xi32>, vector<8xi32>



            %offset1 = arith.constant 16 : index
            %d1 = arith.addi %d, %offset1 : index
          %decoded1_short_bfloat16 = llvm.call_intrinsic "llvm.x86.avx512bf16.cvtneps2bf16.512"(%decoded1) : (vector<16xf32>) -> vector<16xbf16>
          %decoded1_short = vector.bitcast %decoded1_short_bfloat16 : vector<16xbf16> to vector<16xi16>

          %decoded1_short_pairs = vector.bitcast %decoded1_short : vector<16xi16> to vector<8xi32>
          %decoded1_short_column = arith.divui %d1, %c2 : index
          vector.store %decoded1_short_pairs, %packed[%head1, %decoded1_short_column] : memref<2x256xi32>, vector<8xi32>



          }

      // Before the first pass.
      memref.store %minus_infinity, %maxima[%item, %head0] : memref<?x2xf32>
      memref.store %zero, %totals[%item, %head0] : memref<?x2xf32>
      memref.store %minus_infinity, %maxima[%item, %head1] : memref<?x2xf32>
      memref.store %zero, %totals[%item, %head1] : memref<?x2xf32>
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
        memref.prefetch %cmp_cache[%row, %c0], read, locality<3>, data : memref<?x512xi8>

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
          memref.prefetch %cmp_cache[%row_ahead, %line0], read, locality<3>, data : memref<?x512xi8>
          %line1 = arith.constant 64 : index
          memref.prefetch %cmp_cache[%row_ahead, %line1], read, locality<3>, data : memref<?x512xi8>
          %line2 = arith.constant 128 : index
          memref.prefetch %cmp_cache[%row_ahead, %line2], read, locality<3>, data : memref<?x512xi8>

          %quarter_start0 = arith.constant 0 : index
          %quarter_end0 = arith.constant 128 : index
          scf.for %d = %quarter_start0 to %quarter_end0 step %run {
              %decoded_codes = vector.load %cmp_cache[%row, %d] : memref<?x512xi8>, vector<32xi8>
              %decoded_index = arith.extui %decoded_codes : vector<32xi8> to vector<32xi16>
              %decoded_lower = llvm.call_intrinsic "llvm.x86.avx512.vpermi2var.hi.512"(%words0, %decoded_index, %words1)
                : (vector<32xi16>, vector<32xi16>, vector<32xi16>) -> vector<32xi16>
              %decoded_upper = llvm.call_intrinsic "llvm.x86.avx512.vpermi2var.hi.512"(%words2, %decoded_index, %words3)
                : (vector<32xi16>, vector<32xi16>, vector<32xi16>) -> vector<32xi16>
              %decoded_upper_bit = arith.andi %decoded_index, %upper_magnitudes : vector<32xi16>
              %decoded_is_upper = arith.cmpi ne, %decoded_upper_bit, %no_words : vector<32xi16>
              %decoded_magnitude = arith.select %decoded_is_upper, %decoded_upper, %decoded_lower : vector<32xi1>, vector<32xi16>
              %decoded_sign = arith.andi %decoded_index, %code_sign : vector<32xi16>
              %decoded_sign_placed = arith.shli %decoded_sign, %code_sign_place : vector<32xi16>
              %decoded_signed = arith.ori %decoded_magnitude, %decoded_sign_placed : vector<32xi16>
              %decoded_is_nan = arith.cmpi eq, %decoded_index, %code_nan : vector<32xi16>
              %decoded_all = arith.select %decoded_is_nan, %nan_words, %decoded_signed : vector<32xi1>, vector<32xi16>
              %decoded_part0 = vector.shuffle %decoded_all, %decoded_all [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15] : vector<32xi16>, vector<32xi16>
              %decoded_wide0 = arith.extui %decoded_part0 : vector<16xi16> to vector<16xi32>
              %decoded_bits0 = arith.shli %decoded_wide0, %sixteens : vector<16xi32>
              %decoded0 = vector.bitcast %decoded_bits0 : vector<16xi32> to vector<16xf32>
              %decoded_part1 = vector.shuffle %decoded_all, %decoded_all [16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31] : vector<32xi16>, vector<32xi16>
              %decoded_wide1 = arith.extui %decoded_part1 : vector<16xi16> to vector<16xi32>
              %decoded_bits1 = arith.shli %decoded_wide1, %sixteens : vector<16xi32>
              %decoded1 = vector.bitcast %decoded_bits1 : vector<16xi32> to vector<16xf32>


            %offset0 = arith.constant 0 : index
            %d0 = arith.addi %d, %offset0 : index
          %decoded0_short_bfloat16 = llvm.call_intrinsic "llvm.x86.avx512bf16.cvtneps2bf16.512"(%decoded0) : (vector<16xf32>) -> vector<16xbf16>
          %decoded0_short = vector.bitcast %decoded0_short_bfloat16 : vector<16xbf16> to vector<16xi16>

          %decoded0_short_pairs = vector.bitcast %decoded0_short : vector<16xi16> to vector<8xi32>
          %decoded0_short_column = arith.divui %d0, %c2 : index
          vector.store %decoded0_short_pairs, %keys[%k, %decoded0_short_column] : memref<64x272xi32>, vector<8xi32>



            %offset1 = arith.constant 16 : index
            %d1 = arith.addi %d, %offset1 : index
          %decoded1_short_bfloat16 = llvm.call_intrinsic "llvm.x86.avx512bf16.cvtneps2bf16.512"(%decoded1) : (vector<16xf32>) -> vector<16xbf16>
          %decoded1_short = vector.bitcast %decoded1_short_bfloat16 : vector<16xbf16> to vector<16xi16>

          %decoded1_short_pairs = vector.bitcast %decoded1_short : vector<16xi16> to vector<8xi32>
          %decoded1_short_column = arith.divui %d1, %c2 : index
          vector.store %decoded1_short_pairs, %keys[%k, %decoded1_short_column] : memref<64x272xi32>, vector<8xi32>



          }
          %line3 = arith.constant 192 : index
          memref.prefetch %cmp_cache[%row_ahead, %line3], read, locality<3>, data : memref<?x512xi8>
          %line4 = arith.constant 256 : index
          memref.prefetch %cmp_cache[%row_ahead, %line4], read, locality<3>, data : memref<?x512xi8>
          %line5 = arith.constant 320 : index
          memref.prefetch %cmp_cache[%row_ahead, %line5], read, locality<3>, data : memref<?x512xi8>

          %quarter_start1 = arith.constant 128 : index
          %quarter_end1 = arith.constant 256 : index
          scf.for %d = %quarter_start1 to %quarter_end1 step %run {
              %decoded_codes = vector.load %cmp_cache[%row, %d] : memref<?x512xi8>, vector<32xi8>
              %decoded_index = arith.extui %decoded_codes : vector<32xi8> to vector<32xi16>
              %decoded_lower = llvm.call_intrinsic "llvm.x86.avx512.vpermi2var.hi.512"(%words0, %decoded_index, %words1)
                : (vector<32xi16>, vector<32xi16>, vector<32xi16>) -> vector<32xi16>
              %decoded_upper = llvm.call_intrinsic "llvm.x86.avx512.vpermi2var.hi.512"(%words2, %decoded_index, %words3)
                : (vector<32xi16>, vector<32xi16>, vector<32xi16>) -> vector<32xi16>
              %decoded_upper_bit = arith.andi %decoded_index, %upper_magnitudes : vector<32xi16>
              %decoded_is_upper = arith.cmpi ne, %decoded_upper_bit, %no_words : vector<32xi16>
              %decoded_magnitude = arith.select %decoded_is_upper, %decoded_upper, %decoded_lower : vector<32xi1>, vector<32xi16>
              %decoded_sign = arith.andi %decoded_index, %code_sign : vector<32xi16>
              %decoded_sign_placed = arith.shli %decoded_sign, %code_sign_place : vector<32xi16>
              %decoded_signed = arith.ori %decoded_magnitude, %decoded_sign_placed : vector<32xi16>
              %decoded_is_nan = arith.cmpi eq, %decoded_index, %code_nan : vector<32xi16>
              %decoded_all = arith.select %decoded_is_nan, %nan_words, %decoded_signed : vector<32xi1>, vector<32xi16>
              %decoded_part0 = vector.shuffle %decoded_all, %decoded_all [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15] : vector<32xi16>, vector<32xi16>
              %decoded_wide0 = arith.extui %decoded_part0 : vector<16xi16> to vector<16xi32>
              %decoded_bits0 = arith.shli %decoded_wide0, %sixteens : vector<16xi32>
              %decoded0 = vector.bitcast %decoded_bits0 : vector<16xi32> to vector<16xf32>
              %decoded_part1 = vector.shuffle %decoded_all, %decoded_all [16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31] : vector<32xi16>, vector<32xi16>
              %decoded_wide1 = arith.extui %decoded_part1 : vector<16xi16> to vector<16xi32>
              %decoded_bits1 = arith.shli %decoded_wide1, %sixteens : vector<16xi32>
              %decoded1 = vector.bitcast %decoded_bits1 : vector<16xi32> to vector<16xf32>


            %offset0 = arith.constant 0 : index
            %d0 = arith.addi %d, %offset0 : index
          %decoded0_short_bfloat16 = llvm.call_intrinsic "llvm.x86.avx512bf16.cvtneps2bf16.512"(%decoded0) : (vector<16xf32>) -> vector<16xbf16>
          %decoded0_short = vector.bitcast %decoded0_short_bfloat16 : vector<16xbf16> to vector<16xi16>

          %decoded0_short_pairs = vector.bitcast %decoded0_short : vector<16xi16> to vector<8xi32>
          %decoded0_short_column = arith.divui %d0, %c2 : index
          vector.store %decoded0_short_pairs, %keys[%k, %decoded0_short_column] : memref<64x272xi32>, vector<8xi32>



            %offset1 = arith.constant 16 : index
            %d1 = arith.addi %d, %offset1 : index
          %decoded1_short_bfloat16 = llvm.call_intrinsic "llvm.x86.avx512bf16.cvtneps2bf16.512"(%decoded1) : (vector<16xf32>) -> vector<16xbf16>
          %decoded1_short = vector.bitcast %decoded1_short_bfloat16 : vector<16xbf16> to vector<16xi16>

          %decoded1_short_pairs = vector.bitcast %decoded1_short : vector<16xi16> to vector<8xi32>
          %decoded1_short_column = arith.divui %d1, %c2 : index
          vector.store %decoded1_short_pairs, %keys[%k, %decoded1_short_column] : memref<64x272xi32>, vector<8xi32>



          }
          %line6 = arith.constant 384 : index
          memref.prefetch %cmp_cache[%row_ahead, %line6], read, locality<3>, data : memref<?x512xi8>
          %line7 = arith.constant 448 : index
          memref.prefetch %cmp_cache[%row_ahead, %line7], read, locality<3>, data : memref<?x512xi8>
          %line8 = arith.constant 511 : index
          memref.prefetch %cmp_cache[%row_ahead, %line8], read, locality<3>, data : memref<?x512xi8>

          %quarter_start2 = arith.constant 256 : index
          %quarter_end2 = arith.constant 384 : index
          scf.for %d = %quarter_start2 to %quarter_end2 step %run {
              %decoded_codes = vector.load %cmp_cache[%row, %d] : memref<?x512xi8>, vector<32xi8>
              %decoded_index = arith.extui %decoded_codes : vector<32xi8> to vector<32xi16>
              %decoded_lower = llvm.call_intrinsic "llvm.x86.avx512.vpermi2var.hi.512"(%words0, %decoded_index, %words1)
                : (vector<32xi16>, vector<32xi16>, vector<32xi16>) -> vector<32xi16>
              %decoded_upper = llvm.call_intrinsic "llvm.x86.avx512.vpermi2var.hi.512"(%words2, %decoded_index, %words3)
                : (vector<32xi16>, vector<32xi16>, vector<32xi16>) -> vector<32xi16>
              %decoded_upper_bit = arith.andi %decoded_index, %upper_magnitudes : vector<32xi16>
              %decoded_is_upper = arith.cmpi ne, %decoded_upper_bit, %no_words : vector<32xi16>
              %decoded_magnitude = arith.select %decoded_is_upper, %decoded_upper, %decoded_lower : vector<32xi1>, vector<32xi16>
              %decoded_sign = arith.andi %decoded_index, %code_sign : vector<32xi16>
              %decoded_sign_placed = arith.shli %decoded_sign, %code_sign_place : vector<32xi16>
              %decoded_signed = arith.ori %decoded_magnitude, %decoded_sign_placed : vector<32xi16>
              %decoded_is_nan = arith.cmpi eq, %decoded_index, %code_nan : vector<32xi16>
              %decoded_all = arith.select %decoded_is_nan, %nan_words, %decoded_signed : vector<32xi1>, vector<32xi16>
              %decoded_part0 = vector.shuffle %decoded_all, %decoded_all [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15] : vector<32xi16>, vector<32xi16>
              %decoded_wide0 = arith.extui %decoded_part0 : vector<16xi16> to vector<16xi32>
              %decoded_bits0 = arith.shli %decoded_wide0, %sixteens : vector<16xi32>
              %decoded0 = vector.bitcast %decoded_bits0 : vector<16xi32> to vector<16xf32>
              %decoded_part1 = vector.shuffle %decoded_all, %decoded_all [16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31] : vector<32xi16>, vector<32xi16>
              %decoded_wide1 = arith.extui %decoded_part1 : vector<16xi16> to vector<16xi32>
              %decoded_bits1 = arith.shli %decoded_wide1, %sixteens : vector<16xi32>
              %decoded1 = vector.bitcast %decoded_bits1 : vector<16xi32> to vector<16xf32>


            %offset0 = arith.constant 0 : index
            %d0 = arith.addi %d, %offset0 : index
          %decoded0_short_bfloat16 = llvm.call_intrinsic "llvm.x86.avx512bf16.cvtneps2bf16.512"(%decoded0) : (vector<16xf32>) -> vector<16xbf16>
          %decoded0_short = vector.bitcast %decoded0_short_bfloat16 : vector<16xbf16> to vector<16xi16>

          %decoded0_short_pairs = vector.bitcast %decoded0_short : vector<16xi16> to vector<8xi32>
          %decoded0_short_column = arith.divui %d0, %c2 : index
          vector.store %decoded0_short_pairs, %keys[%k, %decoded0_short_column] : memref<64x272xi32>, vector<8xi32>



            %offset1 = arith.constant 16 : index
            %d1 = arith.addi %d, %offset1 : index
          %decoded1_short_bfloat16 = llvm.call_intrinsic "llvm.x86.avx512bf16.cvtneps2bf16.512"(%decoded1) : (vector<16xf32>) -> vector<16xbf16>
          %decoded1_short = vector.bitcast %decoded1_short_bfloat16 : vector<16xbf16> to vector<16xi16>

          %decoded1_short_pairs = vector.bitcast %decoded1_short : vector<16xi16> to vector<8xi32>
          %decoded1_short_column = arith.divui %d1, %c2 : index
          vector.store %decoded1_short_pairs, %keys[%k, %decoded1_short_column] : memref<64x272xi32>, vector<8xi32>



          }

          %quarter_start3 = arith.constant 384 : index
          %quarter_end3 = arith.constant 512 : index
          scf.for %d = %quarter_start3 to %quarter_end3 step %run {
              %decoded_codes = vector.load %cmp_cache[%row, %d] : memref<?x512xi8>, vector<32xi8>
              %decoded_index = arith.extui %decoded_codes : vector<32xi8> to vector<32xi16>
              %decoded_lower = llvm.call_intrinsic "llvm.x86.avx512.vpermi2var.hi.512"(%words0, %decoded_index, %words1)
                : (vector<32xi16>, vector<32xi16>, vector<32xi16>) -> vector<32xi16>
              %decoded_upper = llvm.call_intrinsic "llvm.x86.avx512.vpermi2var.hi.512"(%words2, %decoded_index, %words3)
                : (vector<32xi16>, vector<32xi16>, vector<32xi16>) -> vector<32xi16>
              %decoded_upper_bit = arith.andi %decoded_index, %upper_magnitudes : vector<32xi16>
              %decoded_is_upper = arith.cmpi ne, %decoded_upper_bit, %no_words : vector<32xi16>
              %decoded_magnitude = arith.select %decoded_is_upper, %decoded_upper, %decoded_lower : vector<32xi1>, vector<32xi16>
              %decoded_sign = arith.andi %decoded_index, %code_sign : vector<32xi16>
              %decoded_sign_placed = arith.shli %decoded_sign, %code_sign_place : vector<32xi16>
              %decoded_signed = arith.ori %decoded_magnitude, %decoded_sign_placed : vector<32xi16>
              %decoded_is_nan = arith.cmpi eq, %decoded_index, %code_nan : vector<32xi16>
              %decoded_all = arith.select %decoded_is_nan, %nan_words, %decoded_signed : vector<32xi1>, vector<32xi16>
              %decoded_part0 = vector.shuffle %decoded_all, %decoded_all [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15] : vector<32xi16>, vector<32xi16>
              %decoded_wide0 = arith.extui %decoded_part0 : vector<16xi16> to vector<16xi32>
              %decoded_bits0 = arith.shli %decoded_wide0, %sixteens : vector<16xi32>
              %decoded0 = vector.bitcast %decoded_bits0 : vector<16xi32> to vector<16xf32>
              %decoded_part1 = vector.shuffle %decoded_all, %decoded_all [16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31] : vector<32xi16>, vector<32xi16>
              %decoded_wide1 = arith.extui %decoded_part1 : vector<16xi16> to vector<16xi32>
              %decoded_bits1 = arith.shli %decoded_wide1, %sixteens : vector<16xi32>
              %decoded1 = vector.bitcast %decoded_bits1 : vector<16xi32> to vector<16xf32>


            %offset0 = arith.constant 0 : index
            %d0 = arith.addi %d, %offset0 : index
          %decoded0_short_bfloat16 = llvm.call_intrinsic "llvm.x86.avx512bf16.cvtneps2bf16.512"(%decoded0) : (vector<16xf32>) -> vector<16xbf16>
          %decoded0_short = vector.bitcast %decoded0_short_bfloat16 : vector<16xbf16> to vector<16xi16>

          %decoded0_short_pairs = vector.bitcast %decoded0_short : vector<16xi16> to vector<8xi32>
          %decoded0_short_column = arith.divui %d0, %c2 : index
          vector.store %decoded0_short_pairs, %keys[%k, %decoded0_short_column] : memref<64x272xi32>, vector<8xi32>



            %offset1 = arith.constant 16 : index
            %d1 = arith.addi %d, %offset1 : index
          %decoded1_short_bfloat16 = llvm.call_intrinsic "llvm.x86.avx512bf16.cvtneps2bf16.512"(%decoded1) : (vector<16xf32>) -> vector<16xbf16>
          %decoded1_short = vector.bitcast %decoded1_short_bfloat16 : vector<16xbf16> to vector<16xi16>

          %decoded1_short_pairs = vector.bitcast %decoded1_short : vector<16xi16> to vector<8xi32>
          %decoded1_short_column = arith.divui %d1, %c2 : index
          vector.store %decoded1_short_pairs, %keys[%k, %decoded1_short_column] : memref<64x272xi32>, vector<8xi32>



          }


        } else {
          scf.for %column = %c0 to %columns step %lanes {
            vector.store %no_elements, %keys[%k, %column] : memref<64x272xi32>, vector<16xi32>
          }
        }
      }

      // Key after key is what Q.K reads; P.V reads the same column of two keys at a time.
      scf.for %k = %c0 to %key_end step %c2 {
        %k_next = arith.addi %k, %c1 : index
        %pair = arith.divui %k, %c2 : index
        scf.for %d = %c0 to %nope step %lanes {
          %column = arith.divui %d, %c2 : index
          %even = vector.load %keys[%k, %column] : memref<64x272xi32>, vector<8xi32>
          %odd = vector.load %keys[%k_next, %column] : memref<64x272xi32>, vector<8xi32>
          %both_even_short = vector.bitcast %even : vector<8xi32> to vector<16xi16>
          %both_odd_short = vector.bitcast %odd : vector<8xi32> to vector<16xi16>
          %both_even = arith.extui %both_even_short : vector<16xi16> to vector<16xi32>
          %both_odd = arith.extui %both_odd_short : vector<16xi16> to vector<16xi32>
          %both_odd_upper = arith.shli %both_odd, %sixteens : vector<16xi32>
          %both = arith.ori %both_even, %both_odd_upper : vector<16xi32>
          vector.store %both, %paired[%pair, %d] : memref<32x528xi32>, vector<16xi32>
        }
      }

        // Scores: 8 keys x 2 heads in registers.
        scf.for %k = %c0 to %key_end step %keys_at_once {
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
          %dots:16 = scf.for %d = %c0 to %columns step %lanes
              iter_args(%sum0 = %zeros, %sum1 = %zeros, %sum2 = %zeros, %sum3 = %zeros, %sum4 = %zeros, %sum5 = %zeros, %sum6 = %zeros, %sum7 = %zeros, %sum8 = %zeros, %sum9 = %zeros, %sum10 = %zeros, %sum11 = %zeros, %sum12 = %zeros, %sum13 = %zeros, %sum14 = %zeros, %sum15 = %zeros) -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>) {
            %key0 = vector.load %keys[%k0, %d] : memref<64x272xi32>, vector<16xi32>
            %key1 = vector.load %keys[%k1, %d] : memref<64x272xi32>, vector<16xi32>
            %key2 = vector.load %keys[%k2, %d] : memref<64x272xi32>, vector<16xi32>
            %key3 = vector.load %keys[%k3, %d] : memref<64x272xi32>, vector<16xi32>
            %key4 = vector.load %keys[%k4, %d] : memref<64x272xi32>, vector<16xi32>
            %key5 = vector.load %keys[%k5, %d] : memref<64x272xi32>, vector<16xi32>
            %key6 = vector.load %keys[%k6, %d] : memref<64x272xi32>, vector<16xi32>
            %key7 = vector.load %keys[%k7, %d] : memref<64x272xi32>, vector<16xi32>
            %q0 = vector.load %packed[%head0, %d] : memref<2x256xi32>, vector<16xi32>
            %next0_a = vector.bitcast %q0 : vector<16xi32> to vector<32xbf16>
            %next0_b = vector.bitcast %key0 : vector<16xi32> to vector<32xbf16>
            %next0 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum0, %next0_a, %next0_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

            %next1_a = vector.bitcast %q0 : vector<16xi32> to vector<32xbf16>
            %next1_b = vector.bitcast %key1 : vector<16xi32> to vector<32xbf16>
            %next1 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum1, %next1_a, %next1_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

            %next2_a = vector.bitcast %q0 : vector<16xi32> to vector<32xbf16>
            %next2_b = vector.bitcast %key2 : vector<16xi32> to vector<32xbf16>
            %next2 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum2, %next2_a, %next2_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

            %next3_a = vector.bitcast %q0 : vector<16xi32> to vector<32xbf16>
            %next3_b = vector.bitcast %key3 : vector<16xi32> to vector<32xbf16>
            %next3 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum3, %next3_a, %next3_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

            %next4_a = vector.bitcast %q0 : vector<16xi32> to vector<32xbf16>
            %next4_b = vector.bitcast %key4 : vector<16xi32> to vector<32xbf16>
            %next4 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum4, %next4_a, %next4_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

            %next5_a = vector.bitcast %q0 : vector<16xi32> to vector<32xbf16>
            %next5_b = vector.bitcast %key5 : vector<16xi32> to vector<32xbf16>
            %next5 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum5, %next5_a, %next5_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

            %next6_a = vector.bitcast %q0 : vector<16xi32> to vector<32xbf16>
            %next6_b = vector.bitcast %key6 : vector<16xi32> to vector<32xbf16>
            %next6 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum6, %next6_a, %next6_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

            %next7_a = vector.bitcast %q0 : vector<16xi32> to vector<32xbf16>
            %next7_b = vector.bitcast %key7 : vector<16xi32> to vector<32xbf16>
            %next7 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum7, %next7_a, %next7_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

            %q1 = vector.load %packed[%head1, %d] : memref<2x256xi32>, vector<16xi32>
            %next8_a = vector.bitcast %q1 : vector<16xi32> to vector<32xbf16>
            %next8_b = vector.bitcast %key0 : vector<16xi32> to vector<32xbf16>
            %next8 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum8, %next8_a, %next8_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

            %next9_a = vector.bitcast %q1 : vector<16xi32> to vector<32xbf16>
            %next9_b = vector.bitcast %key1 : vector<16xi32> to vector<32xbf16>
            %next9 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum9, %next9_a, %next9_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

            %next10_a = vector.bitcast %q1 : vector<16xi32> to vector<32xbf16>
            %next10_b = vector.bitcast %key2 : vector<16xi32> to vector<32xbf16>
            %next10 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum10, %next10_a, %next10_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

            %next11_a = vector.bitcast %q1 : vector<16xi32> to vector<32xbf16>
            %next11_b = vector.bitcast %key3 : vector<16xi32> to vector<32xbf16>
            %next11 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum11, %next11_a, %next11_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

            %next12_a = vector.bitcast %q1 : vector<16xi32> to vector<32xbf16>
            %next12_b = vector.bitcast %key4 : vector<16xi32> to vector<32xbf16>
            %next12 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum12, %next12_a, %next12_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

            %next13_a = vector.bitcast %q1 : vector<16xi32> to vector<32xbf16>
            %next13_b = vector.bitcast %key5 : vector<16xi32> to vector<32xbf16>
            %next13 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum13, %next13_a, %next13_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

            %next14_a = vector.bitcast %q1 : vector<16xi32> to vector<32xbf16>
            %next14_b = vector.bitcast %key6 : vector<16xi32> to vector<32xbf16>
            %next14 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum14, %next14_a, %next14_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

            %next15_a = vector.bitcast %q1 : vector<16xi32> to vector<32xbf16>
            %next15_b = vector.bitcast %key7 : vector<16xi32> to vector<32xbf16>
            %next15 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum15, %next15_a, %next15_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

            scf.yield %next0, %next1, %next2, %next3, %next4, %next5, %next6, %next7, %next8, %next9, %next10, %next11, %next12, %next13, %next14, %next15 : vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>
          }
          // key_step divides the key block, so that all of these slots are there.
          %place_in_block = arith.addi %pass_start, %k : index
          %slots_here = vector.load %slots[%item, %place_in_block] : memref<?x256xi32>, vector<8xi32>
          %attended = arith.cmpi sge, %slots_here, %some_zeros_i32 : vector<8xi32>
          %dot0_0_0_lower = vector.shuffle %dots#0, %dots#1 [0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23] : vector<16xf32>, vector<16xf32>
          %dot0_0_0_upper = vector.shuffle %dots#0, %dots#1 [8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31] : vector<16xf32>, vector<16xf32>
          %dot0_0_0 = arith.addf %dot0_0_0_lower, %dot0_0_0_upper : vector<16xf32>
          %dot0_0_1_lower = vector.shuffle %dots#2, %dots#3 [0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23] : vector<16xf32>, vector<16xf32>
          %dot0_0_1_upper = vector.shuffle %dots#2, %dots#3 [8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31] : vector<16xf32>, vector<16xf32>
          %dot0_0_1 = arith.addf %dot0_0_1_lower, %dot0_0_1_upper : vector<16xf32>
          %dot0_0_2_lower = vector.shuffle %dots#4, %dots#5 [0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23] : vector<16xf32>, vector<16xf32>
          %dot0_0_2_upper = vector.shuffle %dots#4, %dots#5 [8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31] : vector<16xf32>, vector<16xf32>
          %dot0_0_2 = arith.addf %dot0_0_2_lower, %dot0_0_2_upper : vector<16xf32>
          %dot0_0_3_lower = vector.shuffle %dots#6, %dots#7 [0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23] : vector<16xf32>, vector<16xf32>
          %dot0_0_3_upper = vector.shuffle %dots#6, %dots#7 [8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31] : vector<16xf32>, vector<16xf32>
          %dot0_0_3 = arith.addf %dot0_0_3_lower, %dot0_0_3_upper : vector<16xf32>
          %dot0_1_0_lower = vector.shuffle %dot0_0_0, %dot0_0_1 [0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27] : vector<16xf32>, vector<16xf32>
          %dot0_1_0_upper = vector.shuffle %dot0_0_0, %dot0_0_1 [4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31] : vector<16xf32>, vector<16xf32>
          %dot0_1_0 = arith.addf %dot0_1_0_lower, %dot0_1_0_upper : vector<16xf32>
          %dot0_1_1_lower = vector.shuffle %dot0_0_2, %dot0_0_3 [0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27] : vector<16xf32>, vector<16xf32>
          %dot0_1_1_upper = vector.shuffle %dot0_0_2, %dot0_0_3 [4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31] : vector<16xf32>, vector<16xf32>
          %dot0_1_1 = arith.addf %dot0_1_1_lower, %dot0_1_1_upper : vector<16xf32>
          %dot0_2_0_lower = vector.shuffle %dot0_1_0, %dot0_1_1 [0, 1, 4, 5, 8, 9, 12, 13, 16, 17, 20, 21, 24, 25, 28, 29] : vector<16xf32>, vector<16xf32>
          %dot0_2_0_upper = vector.shuffle %dot0_1_0, %dot0_1_1 [2, 3, 6, 7, 10, 11, 14, 15, 18, 19, 22, 23, 26, 27, 30, 31] : vector<16xf32>, vector<16xf32>
          %dot0_2_0 = arith.addf %dot0_2_0_lower, %dot0_2_0_upper : vector<16xf32>
          %dot0_3_0_lower = vector.shuffle %dot0_2_0, %dot0_2_0 [0, 2, 4, 6, 8, 10, 12, 14] : vector<16xf32>, vector<16xf32>
          %dot0_3_0_upper = vector.shuffle %dot0_2_0, %dot0_2_0 [1, 3, 5, 7, 9, 11, 13, 15] : vector<16xf32>, vector<16xf32>
          %dot0_3_0 = arith.addf %dot0_3_0_lower, %dot0_3_0_upper : vector<8xf32>
          %dot0 = vector.shuffle %dot0_3_0, %dot0_3_0 [0, 1, 2, 3, 4, 5, 6, 7] : vector<8xf32>, vector<8xf32>
          %scaled0 = arith.mulf %dot0, %some_factors : vector<8xf32>
          %score0 = arith.select %attended, %scaled0, %some_minus_infinities : vector<8xi1>, vector<8xf32>
          vector.store %score0, %scores[%head0, %k] : memref<2x64xf32>, vector<8xf32>
          %dot1_0_0_lower = vector.shuffle %dots#8, %dots#9 [0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23] : vector<16xf32>, vector<16xf32>
          %dot1_0_0_upper = vector.shuffle %dots#8, %dots#9 [8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31] : vector<16xf32>, vector<16xf32>
          %dot1_0_0 = arith.addf %dot1_0_0_lower, %dot1_0_0_upper : vector<16xf32>
          %dot1_0_1_lower = vector.shuffle %dots#10, %dots#11 [0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23] : vector<16xf32>, vector<16xf32>
          %dot1_0_1_upper = vector.shuffle %dots#10, %dots#11 [8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31] : vector<16xf32>, vector<16xf32>
          %dot1_0_1 = arith.addf %dot1_0_1_lower, %dot1_0_1_upper : vector<16xf32>
          %dot1_0_2_lower = vector.shuffle %dots#12, %dots#13 [0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23] : vector<16xf32>, vector<16xf32>
          %dot1_0_2_upper = vector.shuffle %dots#12, %dots#13 [8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31] : vector<16xf32>, vector<16xf32>
          %dot1_0_2 = arith.addf %dot1_0_2_lower, %dot1_0_2_upper : vector<16xf32>
          %dot1_0_3_lower = vector.shuffle %dots#14, %dots#15 [0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23] : vector<16xf32>, vector<16xf32>
          %dot1_0_3_upper = vector.shuffle %dots#14, %dots#15 [8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31] : vector<16xf32>, vector<16xf32>
          %dot1_0_3 = arith.addf %dot1_0_3_lower, %dot1_0_3_upper : vector<16xf32>
          %dot1_1_0_lower = vector.shuffle %dot1_0_0, %dot1_0_1 [0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27] : vector<16xf32>, vector<16xf32>
          %dot1_1_0_upper = vector.shuffle %dot1_0_0, %dot1_0_1 [4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31] : vector<16xf32>, vector<16xf32>
          %dot1_1_0 = arith.addf %dot1_1_0_lower, %dot1_1_0_upper : vector<16xf32>
          %dot1_1_1_lower = vector.shuffle %dot1_0_2, %dot1_0_3 [0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27] : vector<16xf32>, vector<16xf32>
          %dot1_1_1_upper = vector.shuffle %dot1_0_2, %dot1_0_3 [4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31] : vector<16xf32>, vector<16xf32>
          %dot1_1_1 = arith.addf %dot1_1_1_lower, %dot1_1_1_upper : vector<16xf32>
          %dot1_2_0_lower = vector.shuffle %dot1_1_0, %dot1_1_1 [0, 1, 4, 5, 8, 9, 12, 13, 16, 17, 20, 21, 24, 25, 28, 29] : vector<16xf32>, vector<16xf32>
          %dot1_2_0_upper = vector.shuffle %dot1_1_0, %dot1_1_1 [2, 3, 6, 7, 10, 11, 14, 15, 18, 19, 22, 23, 26, 27, 30, 31] : vector<16xf32>, vector<16xf32>
          %dot1_2_0 = arith.addf %dot1_2_0_lower, %dot1_2_0_upper : vector<16xf32>
          %dot1_3_0_lower = vector.shuffle %dot1_2_0, %dot1_2_0 [0, 2, 4, 6, 8, 10, 12, 14] : vector<16xf32>, vector<16xf32>
          %dot1_3_0_upper = vector.shuffle %dot1_2_0, %dot1_2_0 [1, 3, 5, 7, 9, 11, 13, 15] : vector<16xf32>, vector<16xf32>
          %dot1_3_0 = arith.addf %dot1_3_0_lower, %dot1_3_0_upper : vector<8xf32>
          %dot1 = vector.shuffle %dot1_3_0, %dot1_3_0 [0, 1, 2, 3, 4, 5, 6, 7] : vector<8xf32>, vector<8xf32>
          %scaled1 = arith.mulf %dot1, %some_factors : vector<8xf32>
          %score1 = arith.select %attended, %scaled1, %some_minus_infinities : vector<8xi1>, vector<8xf32>
          vector.store %score1, %scores[%head1, %k] : memref<2x64xf32>, vector<8xf32>
        }

        // Softmax over the pass; the weights are rounded, their sum is of the float32 ones.
        %maximum_lanes0_0 = scf.for %k = %c0 to %key_end step %lanes iter_args(%so_far = %minus_infinities) -> (vector<16xf32>) {
          %score = vector.load %scores[%head0, %k] : memref<2x64xf32>, vector<16xf32>
          %larger = arith.maximumf %so_far, %score : vector<16xf32>
          scf.yield %larger : vector<16xf32>
        }
          %largest0_0_0_lower = vector.shuffle %maximum_lanes0_0, %maximum_lanes0_0 [0, 1, 2, 3, 4, 5, 6, 7] : vector<16xf32>, vector<16xf32>
          %largest0_0_0_upper = vector.shuffle %maximum_lanes0_0, %maximum_lanes0_0 [8, 9, 10, 11, 12, 13, 14, 15] : vector<16xf32>, vector<16xf32>
          %largest0_0_0 = arith.maximumf %largest0_0_0_lower, %largest0_0_0_upper : vector<8xf32>
          %largest0_1_0_lower = vector.shuffle %largest0_0_0, %largest0_0_0 [0, 1, 2, 3] : vector<8xf32>, vector<8xf32>
          %largest0_1_0_upper = vector.shuffle %largest0_0_0, %largest0_0_0 [4, 5, 6, 7] : vector<8xf32>, vector<8xf32>
          %largest0_1_0 = arith.maximumf %largest0_1_0_lower, %largest0_1_0_upper : vector<4xf32>
          %largest0_2_0_lower = vector.shuffle %largest0_1_0, %largest0_1_0 [0, 1] : vector<4xf32>, vector<4xf32>
          %largest0_2_0_upper = vector.shuffle %largest0_1_0, %largest0_1_0 [2, 3] : vector<4xf32>, vector<4xf32>
          %largest0_2_0 = arith.maximumf %largest0_2_0_lower, %largest0_2_0_upper : vector<2xf32>
          %largest0_3_0_lower = vector.shuffle %largest0_2_0, %largest0_2_0 [0] : vector<2xf32>, vector<2xf32>
          %largest0_3_0_upper = vector.shuffle %largest0_2_0, %largest0_2_0 [1] : vector<2xf32>, vector<2xf32>
          %largest0_3_0 = arith.maximumf %largest0_3_0_lower, %largest0_3_0_upper : vector<1xf32>
          %largest0 = vector.shuffle %largest0_3_0, %largest0_3_0 [0] : vector<1xf32>, vector<1xf32>
        %maximum_here0 = vector.extract %largest0[0] : f32 from vector<1xf32>
        %old_maximum0 = memref.load %maxima[%item, %head0] : memref<?x2xf32>
        %maximum0 = arith.maximumf %old_maximum0, %maximum_here0 : f32
        %maximum_everywhere0 = vector.broadcast %maximum0 : f32 to vector<16xf32>
          %reference0_magnitude = math.absf %maximum_everywhere0 : vector<16xf32>
          %reference0_is_infinite = arith.cmpf oeq, %reference0_magnitude, %infinities : vector<16xf32>
          %reference0 = arith.select %reference0_is_infinite, %zeros, %maximum_everywhere0 : vector<16xi1>, vector<16xf32>
        %total_lanes0_0 = scf.for %k = %c0 to %key_end step %lanes iter_args(%so_far = %zeros) -> (vector<16xf32>) {
          %score = vector.load %scores[%head0, %k] : memref<2x64xf32>, vector<16xf32>
          %below = arith.subf %score, %reference0 : vector<16xf32>
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
          %weight_short_bfloat16 = llvm.call_intrinsic "llvm.x86.avx512bf16.cvtneps2bf16.512"(%weight) : (vector<16xf32>) -> vector<16xbf16>
          %weight_short = vector.bitcast %weight_short_bfloat16 : vector<16xbf16> to vector<16xi16>

          %weight_short_pairs = vector.bitcast %weight_short : vector<16xi16> to vector<8xi32>
          %weight_short_column = arith.divui %k, %c2 : index
          vector.store %weight_short_pairs, %weights[%head0, %weight_short_column] : memref<2x32xi32>, vector<8xi32>


          %next = arith.addf %so_far, %weight : vector<16xf32>
          scf.yield %next : vector<16xf32>
        }
          %whole0_0_0_lower = vector.shuffle %total_lanes0_0, %total_lanes0_0 [0, 1, 2, 3, 4, 5, 6, 7] : vector<16xf32>, vector<16xf32>
          %whole0_0_0_upper = vector.shuffle %total_lanes0_0, %total_lanes0_0 [8, 9, 10, 11, 12, 13, 14, 15] : vector<16xf32>, vector<16xf32>
          %whole0_0_0 = arith.addf %whole0_0_0_lower, %whole0_0_0_upper : vector<8xf32>
          %whole0_1_0_lower = vector.shuffle %whole0_0_0, %whole0_0_0 [0, 1, 2, 3] : vector<8xf32>, vector<8xf32>
          %whole0_1_0_upper = vector.shuffle %whole0_0_0, %whole0_0_0 [4, 5, 6, 7] : vector<8xf32>, vector<8xf32>
          %whole0_1_0 = arith.addf %whole0_1_0_lower, %whole0_1_0_upper : vector<4xf32>
          %whole0_2_0_lower = vector.shuffle %whole0_1_0, %whole0_1_0 [0, 1] : vector<4xf32>, vector<4xf32>
          %whole0_2_0_upper = vector.shuffle %whole0_1_0, %whole0_1_0 [2, 3] : vector<4xf32>, vector<4xf32>
          %whole0_2_0 = arith.addf %whole0_2_0_lower, %whole0_2_0_upper : vector<2xf32>
          %whole0_3_0_lower = vector.shuffle %whole0_2_0, %whole0_2_0 [0] : vector<2xf32>, vector<2xf32>
          %whole0_3_0_upper = vector.shuffle %whole0_2_0, %whole0_2_0 [1] : vector<2xf32>, vector<2xf32>
          %whole0_3_0 = arith.addf %whole0_3_0_lower, %whole0_3_0_upper : vector<1xf32>
          %whole0 = vector.shuffle %whole0_3_0, %whole0_3_0 [0] : vector<1xf32>, vector<1xf32>
        %total_here0 = vector.extract %whole0[0] : f32 from vector<1xf32>
        %old_maximum_everywhere0 = vector.broadcast %old_maximum0 : f32 to vector<16xf32>
        %old_below0 = arith.subf %old_maximum_everywhere0, %reference0 : vector<16xf32>
          %factor_lanes0_above = arith.maximumf %old_below0, %least_power : vector<16xf32>
          %factor_lanes0_inside = arith.minimumf %factor_lanes0_above, %largest_power : vector<16xf32>
          %factor_lanes0_shifted = arith.addf %factor_lanes0_inside, %rounder : vector<16xf32>
          %factor_lanes0_whole = arith.subf %factor_lanes0_shifted, %rounder : vector<16xf32>
          %factor_lanes0_rest = arith.subf %factor_lanes0_inside, %factor_lanes0_whole : vector<16xf32>
          %factor_lanes0_5 = math.fma %exp2_6, %factor_lanes0_rest, %exp2_5 : vector<16xf32>
          %factor_lanes0_4 = math.fma %factor_lanes0_5, %factor_lanes0_rest, %exp2_4 : vector<16xf32>
          %factor_lanes0_3 = math.fma %factor_lanes0_4, %factor_lanes0_rest, %exp2_3 : vector<16xf32>
          %factor_lanes0_2 = math.fma %factor_lanes0_3, %factor_lanes0_rest, %exp2_2 : vector<16xf32>
          %factor_lanes0_1 = math.fma %factor_lanes0_2, %factor_lanes0_rest, %exp2_1 : vector<16xf32>
          %factor_lanes0_0 = math.fma %factor_lanes0_1, %factor_lanes0_rest, %exp2_0 : vector<16xf32>
          %factor_lanes0_whole_bits = vector.bitcast %factor_lanes0_shifted : vector<16xf32> to vector<16xi32>
          %factor_lanes0_exponent = arith.shli %factor_lanes0_whole_bits, %mantissa_bits : vector<16xi32>
          %factor_lanes0_bits = vector.bitcast %factor_lanes0_0 : vector<16xf32> to vector<16xi32>
          %factor_lanes0_scaled_bits = arith.addi %factor_lanes0_bits, %factor_lanes0_exponent : vector<16xi32>
          %factor_lanes0_power = vector.bitcast %factor_lanes0_scaled_bits : vector<16xi32> to vector<16xf32>
          %factor_lanes0_is_small = arith.cmpf olt, %old_below0, %least_power : vector<16xf32>
          %factor_lanes0_or_zero = arith.select %factor_lanes0_is_small, %zeros, %factor_lanes0_power : vector<16xi1>, vector<16xf32>
          %factor_lanes0_is_large = arith.cmpf ogt, %old_below0, %largest_power : vector<16xf32>
          %factor_lanes0_or_infinity = arith.select %factor_lanes0_is_large, %infinities, %factor_lanes0_or_zero : vector<16xi1>, vector<16xf32>
          %factor_lanes0_is_nan = arith.cmpf uno, %old_below0, %old_below0 : vector<16xf32>
          %factor_lanes0 = arith.select %factor_lanes0_is_nan, %old_below0, %factor_lanes0_or_infinity : vector<16xi1>, vector<16xf32>
        %factor0 = vector.extract %factor_lanes0[0] : f32 from vector<16xf32>
        %old_total0 = memref.load %totals[%item, %head0] : memref<?x2xf32>
        %total0 = math.fma %old_total0, %factor0, %total_here0 : f32
        memref.store %maximum0, %maxima[%item, %head0] : memref<?x2xf32>
        memref.store %total0, %totals[%item, %head0] : memref<?x2xf32>
        %maximum_lanes1_0 = scf.for %k = %c0 to %key_end step %lanes iter_args(%so_far = %minus_infinities) -> (vector<16xf32>) {
          %score = vector.load %scores[%head1, %k] : memref<2x64xf32>, vector<16xf32>
          %larger = arith.maximumf %so_far, %score : vector<16xf32>
          scf.yield %larger : vector<16xf32>
        }
          %largest1_0_0_lower = vector.shuffle %maximum_lanes1_0, %maximum_lanes1_0 [0, 1, 2, 3, 4, 5, 6, 7] : vector<16xf32>, vector<16xf32>
          %largest1_0_0_upper = vector.shuffle %maximum_lanes1_0, %maximum_lanes1_0 [8, 9, 10, 11, 12, 13, 14, 15] : vector<16xf32>, vector<16xf32>
          %largest1_0_0 = arith.maximumf %largest1_0_0_lower, %largest1_0_0_upper : vector<8xf32>
          %largest1_1_0_lower = vector.shuffle %largest1_0_0, %largest1_0_0 [0, 1, 2, 3] : vector<8xf32>, vector<8xf32>
          %largest1_1_0_upper = vector.shuffle %largest1_0_0, %largest1_0_0 [4, 5, 6, 7] : vector<8xf32>, vector<8xf32>
          %largest1_1_0 = arith.maximumf %largest1_1_0_lower, %largest1_1_0_upper : vector<4xf32>
          %largest1_2_0_lower = vector.shuffle %largest1_1_0, %largest1_1_0 [0, 1] : vector<4xf32>, vector<4xf32>
          %largest1_2_0_upper = vector.shuffle %largest1_1_0, %largest1_1_0 [2, 3] : vector<4xf32>, vector<4xf32>
          %largest1_2_0 = arith.maximumf %largest1_2_0_lower, %largest1_2_0_upper : vector<2xf32>
          %largest1_3_0_lower = vector.shuffle %largest1_2_0, %largest1_2_0 [0] : vector<2xf32>, vector<2xf32>
          %largest1_3_0_upper = vector.shuffle %largest1_2_0, %largest1_2_0 [1] : vector<2xf32>, vector<2xf32>
          %largest1_3_0 = arith.maximumf %largest1_3_0_lower, %largest1_3_0_upper : vector<1xf32>
          %largest1 = vector.shuffle %largest1_3_0, %largest1_3_0 [0] : vector<1xf32>, vector<1xf32>
        %maximum_here1 = vector.extract %largest1[0] : f32 from vector<1xf32>
        %old_maximum1 = memref.load %maxima[%item, %head1] : memref<?x2xf32>
        %maximum1 = arith.maximumf %old_maximum1, %maximum_here1 : f32
        %maximum_everywhere1 = vector.broadcast %maximum1 : f32 to vector<16xf32>
          %reference1_magnitude = math.absf %maximum_everywhere1 : vector<16xf32>
          %reference1_is_infinite = arith.cmpf oeq, %reference1_magnitude, %infinities : vector<16xf32>
          %reference1 = arith.select %reference1_is_infinite, %zeros, %maximum_everywhere1 : vector<16xi1>, vector<16xf32>
        %total_lanes1_0 = scf.for %k = %c0 to %key_end step %lanes iter_args(%so_far = %zeros) -> (vector<16xf32>) {
          %score = vector.load %scores[%head1, %k] : memref<2x64xf32>, vector<16xf32>
          %below = arith.subf %score, %reference1 : vector<16xf32>
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
          %weight_short_bfloat16 = llvm.call_intrinsic "llvm.x86.avx512bf16.cvtneps2bf16.512"(%weight) : (vector<16xf32>) -> vector<16xbf16>
          %weight_short = vector.bitcast %weight_short_bfloat16 : vector<16xbf16> to vector<16xi16>

          %weight_short_pairs = vector.bitcast %weight_short : vector<16xi16> to vector<8xi32>
          %weight_short_column = arith.divui %k, %c2 : index
          vector.store %weight_short_pairs, %weights[%head1, %weight_short_column] : memref<2x32xi32>, vector<8xi32>


          %next = arith.addf %so_far, %weight : vector<16xf32>
          scf.yield %next : vector<16xf32>
        }
          %whole1_0_0_lower = vector.shuffle %total_lanes1_0, %total_lanes1_0 [0, 1, 2, 3, 4, 5, 6, 7] : vector<16xf32>, vector<16xf32>
          %whole1_0_0_upper = vector.shuffle %total_lanes1_0, %total_lanes1_0 [8, 9, 10, 11, 12, 13, 14, 15] : vector<16xf32>, vector<16xf32>
          %whole1_0_0 = arith.addf %whole1_0_0_lower, %whole1_0_0_upper : vector<8xf32>
          %whole1_1_0_lower = vector.shuffle %whole1_0_0, %whole1_0_0 [0, 1, 2, 3] : vector<8xf32>, vector<8xf32>
          %whole1_1_0_upper = vector.shuffle %whole1_0_0, %whole1_0_0 [4, 5, 6, 7] : vector<8xf32>, vector<8xf32>
          %whole1_1_0 = arith.addf %whole1_1_0_lower, %whole1_1_0_upper : vector<4xf32>
          %whole1_2_0_lower = vector.shuffle %whole1_1_0, %whole1_1_0 [0, 1] : vector<4xf32>, vector<4xf32>
          %whole1_2_0_upper = vector.shuffle %whole1_1_0, %whole1_1_0 [2, 3] : vector<4xf32>, vector<4xf32>
          %whole1_2_0 = arith.addf %whole1_2_0_lower, %whole1_2_0_upper : vector<2xf32>
          %whole1_3_0_lower = vector.shuffle %whole1_2_0, %whole1_2_0 [0] : vector<2xf32>, vector<2xf32>
          %whole1_3_0_upper = vector.shuffle %whole1_2_0, %whole1_2_0 [1] : vector<2xf32>, vector<2xf32>
          %whole1_3_0 = arith.addf %whole1_3_0_lower, %whole1_3_0_upper : vector<1xf32>
          %whole1 = vector.shuffle %whole1_3_0, %whole1_3_0 [0] : vector<1xf32>, vector<1xf32>
        %total_here1 = vector.extract %whole1[0] : f32 from vector<1xf32>
        %old_maximum_everywhere1 = vector.broadcast %old_maximum1 : f32 to vector<16xf32>
        %old_below1 = arith.subf %old_maximum_everywhere1, %reference1 : vector<16xf32>
          %factor_lanes1_above = arith.maximumf %old_below1, %least_power : vector<16xf32>
          %factor_lanes1_inside = arith.minimumf %factor_lanes1_above, %largest_power : vector<16xf32>
          %factor_lanes1_shifted = arith.addf %factor_lanes1_inside, %rounder : vector<16xf32>
          %factor_lanes1_whole = arith.subf %factor_lanes1_shifted, %rounder : vector<16xf32>
          %factor_lanes1_rest = arith.subf %factor_lanes1_inside, %factor_lanes1_whole : vector<16xf32>
          %factor_lanes1_5 = math.fma %exp2_6, %factor_lanes1_rest, %exp2_5 : vector<16xf32>
          %factor_lanes1_4 = math.fma %factor_lanes1_5, %factor_lanes1_rest, %exp2_4 : vector<16xf32>
          %factor_lanes1_3 = math.fma %factor_lanes1_4, %factor_lanes1_rest, %exp2_3 : vector<16xf32>
          %factor_lanes1_2 = math.fma %factor_lanes1_3, %factor_lanes1_rest, %exp2_2 : vector<16xf32>
          %factor_lanes1_1 = math.fma %factor_lanes1_2, %factor_lanes1_rest, %exp2_1 : vector<16xf32>
          %factor_lanes1_0 = math.fma %factor_lanes1_1, %factor_lanes1_rest, %exp2_0 : vector<16xf32>
          %factor_lanes1_whole_bits = vector.bitcast %factor_lanes1_shifted : vector<16xf32> to vector<16xi32>
          %factor_lanes1_exponent = arith.shli %factor_lanes1_whole_bits, %mantissa_bits : vector<16xi32>
          %factor_lanes1_bits = vector.bitcast %factor_lanes1_0 : vector<16xf32> to vector<16xi32>
          %factor_lanes1_scaled_bits = arith.addi %factor_lanes1_bits, %factor_lanes1_exponent : vector<16xi32>
          %factor_lanes1_power = vector.bitcast %factor_lanes1_scaled_bits : vector<16xi32> to vector<16xf32>
          %factor_lanes1_is_small = arith.cmpf olt, %old_below1, %least_power : vector<16xf32>
          %factor_lanes1_or_zero = arith.select %factor_lanes1_is_small, %zeros, %factor_lanes1_power : vector<16xi1>, vector<16xf32>
          %factor_lanes1_is_large = arith.cmpf ogt, %old_below1, %largest_power : vector<16xf32>
          %factor_lanes1_or_infinity = arith.select %factor_lanes1_is_large, %infinities, %factor_lanes1_or_zero : vector<16xi1>, vector<16xf32>
          %factor_lanes1_is_nan = arith.cmpf uno, %old_below1, %old_below1 : vector<16xf32>
          %factor_lanes1 = arith.select %factor_lanes1_is_nan, %old_below1, %factor_lanes1_or_infinity : vector<16xi1>, vector<16xf32>
        %factor1 = vector.extract %factor_lanes1[0] : f32 from vector<16xf32>
        %old_total1 = memref.load %totals[%item, %head1] : memref<?x2xf32>
        %total1 = math.fma %old_total1, %factor1, %total_here1 : f32
        memref.store %maximum1, %maxima[%item, %head1] : memref<?x2xf32>
        memref.store %total1, %totals[%item, %head1] : memref<?x2xf32>

        // Values: 2 heads x 8 vectors of columns in registers, summed key by key.
        %panel = arith.constant 128 : index
        %terms = arith.divui %key_end, %c2 : index
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
          %sums:16 = scf.for %k = %c0 to %terms step %c1
              iter_args(%sum0 = %zeros, %sum1 = %zeros, %sum2 = %zeros, %sum3 = %zeros, %sum4 = %zeros, %sum5 = %zeros, %sum6 = %zeros, %sum7 = %zeros, %sum8 = %zeros, %sum9 = %zeros, %sum10 = %zeros, %sum11 = %zeros, %sum12 = %zeros, %sum13 = %zeros, %sum14 = %zeros, %sum15 = %zeros) -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>) {
            %value0 = vector.load %paired[%k, %d0] : memref<32x528xi32>, vector<16xi32>
            %value1 = vector.load %paired[%k, %d1] : memref<32x528xi32>, vector<16xi32>
            %value2 = vector.load %paired[%k, %d2] : memref<32x528xi32>, vector<16xi32>
            %value3 = vector.load %paired[%k, %d3] : memref<32x528xi32>, vector<16xi32>
            %value4 = vector.load %paired[%k, %d4] : memref<32x528xi32>, vector<16xi32>
            %value5 = vector.load %paired[%k, %d5] : memref<32x528xi32>, vector<16xi32>
            %value6 = vector.load %paired[%k, %d6] : memref<32x528xi32>, vector<16xi32>
            %value7 = vector.load %paired[%k, %d7] : memref<32x528xi32>, vector<16xi32>
            %weight0 = memref.load %weights[%head0, %k] : memref<2x32xi32>
            %weight_lanes0 = vector.broadcast %weight0 : i32 to vector<16xi32>
            %next0_a = vector.bitcast %value0 : vector<16xi32> to vector<32xbf16>
            %next0_b = vector.bitcast %weight_lanes0 : vector<16xi32> to vector<32xbf16>
            %next0 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum0, %next0_a, %next0_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

            %next1_a = vector.bitcast %value1 : vector<16xi32> to vector<32xbf16>
            %next1_b = vector.bitcast %weight_lanes0 : vector<16xi32> to vector<32xbf16>
            %next1 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum1, %next1_a, %next1_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

            %next2_a = vector.bitcast %value2 : vector<16xi32> to vector<32xbf16>
            %next2_b = vector.bitcast %weight_lanes0 : vector<16xi32> to vector<32xbf16>
            %next2 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum2, %next2_a, %next2_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

            %next3_a = vector.bitcast %value3 : vector<16xi32> to vector<32xbf16>
            %next3_b = vector.bitcast %weight_lanes0 : vector<16xi32> to vector<32xbf16>
            %next3 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum3, %next3_a, %next3_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

            %next4_a = vector.bitcast %value4 : vector<16xi32> to vector<32xbf16>
            %next4_b = vector.bitcast %weight_lanes0 : vector<16xi32> to vector<32xbf16>
            %next4 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum4, %next4_a, %next4_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

            %next5_a = vector.bitcast %value5 : vector<16xi32> to vector<32xbf16>
            %next5_b = vector.bitcast %weight_lanes0 : vector<16xi32> to vector<32xbf16>
            %next5 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum5, %next5_a, %next5_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

            %next6_a = vector.bitcast %value6 : vector<16xi32> to vector<32xbf16>
            %next6_b = vector.bitcast %weight_lanes0 : vector<16xi32> to vector<32xbf16>
            %next6 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum6, %next6_a, %next6_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

            %next7_a = vector.bitcast %value7 : vector<16xi32> to vector<32xbf16>
            %next7_b = vector.bitcast %weight_lanes0 : vector<16xi32> to vector<32xbf16>
            %next7 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum7, %next7_a, %next7_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

            %weight1 = memref.load %weights[%head1, %k] : memref<2x32xi32>
            %weight_lanes1 = vector.broadcast %weight1 : i32 to vector<16xi32>
            %next8_a = vector.bitcast %value0 : vector<16xi32> to vector<32xbf16>
            %next8_b = vector.bitcast %weight_lanes1 : vector<16xi32> to vector<32xbf16>
            %next8 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum8, %next8_a, %next8_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

            %next9_a = vector.bitcast %value1 : vector<16xi32> to vector<32xbf16>
            %next9_b = vector.bitcast %weight_lanes1 : vector<16xi32> to vector<32xbf16>
            %next9 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum9, %next9_a, %next9_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

            %next10_a = vector.bitcast %value2 : vector<16xi32> to vector<32xbf16>
            %next10_b = vector.bitcast %weight_lanes1 : vector<16xi32> to vector<32xbf16>
            %next10 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum10, %next10_a, %next10_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

            %next11_a = vector.bitcast %value3 : vector<16xi32> to vector<32xbf16>
            %next11_b = vector.bitcast %weight_lanes1 : vector<16xi32> to vector<32xbf16>
            %next11 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum11, %next11_a, %next11_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

            %next12_a = vector.bitcast %value4 : vector<16xi32> to vector<32xbf16>
            %next12_b = vector.bitcast %weight_lanes1 : vector<16xi32> to vector<32xbf16>
            %next12 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum12, %next12_a, %next12_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

            %next13_a = vector.bitcast %value5 : vector<16xi32> to vector<32xbf16>
            %next13_b = vector.bitcast %weight_lanes1 : vector<16xi32> to vector<32xbf16>
            %next13 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum13, %next13_a, %next13_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

            %next14_a = vector.bitcast %value6 : vector<16xi32> to vector<32xbf16>
            %next14_b = vector.bitcast %weight_lanes1 : vector<16xi32> to vector<32xbf16>
            %next14 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum14, %next14_a, %next14_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

            %next15_a = vector.bitcast %value7 : vector<16xi32> to vector<32xbf16>
            %next15_b = vector.bitcast %weight_lanes1 : vector<16xi32> to vector<32xbf16>
            %next15 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sum15, %next15_a, %next15_b)
              : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

            scf.yield %next0, %next1, %next2, %next3, %next4, %next5, %next6, %next7, %next8, %next9, %next10, %next11, %next12, %next13, %next14, %next15 : vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>
          }
            %so_far0_0_scaled = arith.mulf %sums#0, %descale_lanes : vector<16xf32>
            %so_far0_0_before = vector.load %values[%item, %head0, %d0] : memref<?x2x512xf32>, vector<16xf32>
            %so_far0_0_kept = arith.select %is_first, %zeros, %so_far0_0_before : vector<16xf32>
            %so_far0_0 = math.fma %so_far0_0_kept, %factor_lanes0, %so_far0_0_scaled : vector<16xf32>
            vector.store %so_far0_0, %values[%item, %head0, %d0] : memref<?x2x512xf32>, vector<16xf32>
            %so_far0_1_scaled = arith.mulf %sums#1, %descale_lanes : vector<16xf32>
            %so_far0_1_before = vector.load %values[%item, %head0, %d1] : memref<?x2x512xf32>, vector<16xf32>
            %so_far0_1_kept = arith.select %is_first, %zeros, %so_far0_1_before : vector<16xf32>
            %so_far0_1 = math.fma %so_far0_1_kept, %factor_lanes0, %so_far0_1_scaled : vector<16xf32>
            vector.store %so_far0_1, %values[%item, %head0, %d1] : memref<?x2x512xf32>, vector<16xf32>
            %so_far0_2_scaled = arith.mulf %sums#2, %descale_lanes : vector<16xf32>
            %so_far0_2_before = vector.load %values[%item, %head0, %d2] : memref<?x2x512xf32>, vector<16xf32>
            %so_far0_2_kept = arith.select %is_first, %zeros, %so_far0_2_before : vector<16xf32>
            %so_far0_2 = math.fma %so_far0_2_kept, %factor_lanes0, %so_far0_2_scaled : vector<16xf32>
            vector.store %so_far0_2, %values[%item, %head0, %d2] : memref<?x2x512xf32>, vector<16xf32>
            %so_far0_3_scaled = arith.mulf %sums#3, %descale_lanes : vector<16xf32>
            %so_far0_3_before = vector.load %values[%item, %head0, %d3] : memref<?x2x512xf32>, vector<16xf32>
            %so_far0_3_kept = arith.select %is_first, %zeros, %so_far0_3_before : vector<16xf32>
            %so_far0_3 = math.fma %so_far0_3_kept, %factor_lanes0, %so_far0_3_scaled : vector<16xf32>
            vector.store %so_far0_3, %values[%item, %head0, %d3] : memref<?x2x512xf32>, vector<16xf32>
            %so_far0_4_scaled = arith.mulf %sums#4, %descale_lanes : vector<16xf32>
            %so_far0_4_before = vector.load %values[%item, %head0, %d4] : memref<?x2x512xf32>, vector<16xf32>
            %so_far0_4_kept = arith.select %is_first, %zeros, %so_far0_4_before : vector<16xf32>
            %so_far0_4 = math.fma %so_far0_4_kept, %factor_lanes0, %so_far0_4_scaled : vector<16xf32>
            vector.store %so_far0_4, %values[%item, %head0, %d4] : memref<?x2x512xf32>, vector<16xf32>
            %so_far0_5_scaled = arith.mulf %sums#5, %descale_lanes : vector<16xf32>
            %so_far0_5_before = vector.load %values[%item, %head0, %d5] : memref<?x2x512xf32>, vector<16xf32>
            %so_far0_5_kept = arith.select %is_first, %zeros, %so_far0_5_before : vector<16xf32>
            %so_far0_5 = math.fma %so_far0_5_kept, %factor_lanes0, %so_far0_5_scaled : vector<16xf32>
            vector.store %so_far0_5, %values[%item, %head0, %d5] : memref<?x2x512xf32>, vector<16xf32>
            %so_far0_6_scaled = arith.mulf %sums#6, %descale_lanes : vector<16xf32>
            %so_far0_6_before = vector.load %values[%item, %head0, %d6] : memref<?x2x512xf32>, vector<16xf32>
            %so_far0_6_kept = arith.select %is_first, %zeros, %so_far0_6_before : vector<16xf32>
            %so_far0_6 = math.fma %so_far0_6_kept, %factor_lanes0, %so_far0_6_scaled : vector<16xf32>
            vector.store %so_far0_6, %values[%item, %head0, %d6] : memref<?x2x512xf32>, vector<16xf32>
            %so_far0_7_scaled = arith.mulf %sums#7, %descale_lanes : vector<16xf32>
            %so_far0_7_before = vector.load %values[%item, %head0, %d7] : memref<?x2x512xf32>, vector<16xf32>
            %so_far0_7_kept = arith.select %is_first, %zeros, %so_far0_7_before : vector<16xf32>
            %so_far0_7 = math.fma %so_far0_7_kept, %factor_lanes0, %so_far0_7_scaled : vector<16xf32>
            vector.store %so_far0_7, %values[%item, %head0, %d7] : memref<?x2x512xf32>, vector<16xf32>
            %so_far1_0_scaled = arith.mulf %sums#8, %descale_lanes : vector<16xf32>
            %so_far1_0_before = vector.load %values[%item, %head1, %d0] : memref<?x2x512xf32>, vector<16xf32>
            %so_far1_0_kept = arith.select %is_first, %zeros, %so_far1_0_before : vector<16xf32>
            %so_far1_0 = math.fma %so_far1_0_kept, %factor_lanes1, %so_far1_0_scaled : vector<16xf32>
            vector.store %so_far1_0, %values[%item, %head1, %d0] : memref<?x2x512xf32>, vector<16xf32>
            %so_far1_1_scaled = arith.mulf %sums#9, %descale_lanes : vector<16xf32>
            %so_far1_1_before = vector.load %values[%item, %head1, %d1] : memref<?x2x512xf32>, vector<16xf32>
            %so_far1_1_kept = arith.select %is_first, %zeros, %so_far1_1_before : vector<16xf32>
            %so_far1_1 = math.fma %so_far1_1_kept, %factor_lanes1, %so_far1_1_scaled : vector<16xf32>
            vector.store %so_far1_1, %values[%item, %head1, %d1] : memref<?x2x512xf32>, vector<16xf32>
            %so_far1_2_scaled = arith.mulf %sums#10, %descale_lanes : vector<16xf32>
            %so_far1_2_before = vector.load %values[%item, %head1, %d2] : memref<?x2x512xf32>, vector<16xf32>
            %so_far1_2_kept = arith.select %is_first, %zeros, %so_far1_2_before : vector<16xf32>
            %so_far1_2 = math.fma %so_far1_2_kept, %factor_lanes1, %so_far1_2_scaled : vector<16xf32>
            vector.store %so_far1_2, %values[%item, %head1, %d2] : memref<?x2x512xf32>, vector<16xf32>
            %so_far1_3_scaled = arith.mulf %sums#11, %descale_lanes : vector<16xf32>
            %so_far1_3_before = vector.load %values[%item, %head1, %d3] : memref<?x2x512xf32>, vector<16xf32>
            %so_far1_3_kept = arith.select %is_first, %zeros, %so_far1_3_before : vector<16xf32>
            %so_far1_3 = math.fma %so_far1_3_kept, %factor_lanes1, %so_far1_3_scaled : vector<16xf32>
            vector.store %so_far1_3, %values[%item, %head1, %d3] : memref<?x2x512xf32>, vector<16xf32>
            %so_far1_4_scaled = arith.mulf %sums#12, %descale_lanes : vector<16xf32>
            %so_far1_4_before = vector.load %values[%item, %head1, %d4] : memref<?x2x512xf32>, vector<16xf32>
            %so_far1_4_kept = arith.select %is_first, %zeros, %so_far1_4_before : vector<16xf32>
            %so_far1_4 = math.fma %so_far1_4_kept, %factor_lanes1, %so_far1_4_scaled : vector<16xf32>
            vector.store %so_far1_4, %values[%item, %head1, %d4] : memref<?x2x512xf32>, vector<16xf32>
            %so_far1_5_scaled = arith.mulf %sums#13, %descale_lanes : vector<16xf32>
            %so_far1_5_before = vector.load %values[%item, %head1, %d5] : memref<?x2x512xf32>, vector<16xf32>
            %so_far1_5_kept = arith.select %is_first, %zeros, %so_far1_5_before : vector<16xf32>
            %so_far1_5 = math.fma %so_far1_5_kept, %factor_lanes1, %so_far1_5_scaled : vector<16xf32>
            vector.store %so_far1_5, %values[%item, %head1, %d5] : memref<?x2x512xf32>, vector<16xf32>
            %so_far1_6_scaled = arith.mulf %sums#14, %descale_lanes : vector<16xf32>
            %so_far1_6_before = vector.load %values[%item, %head1, %d6] : memref<?x2x512xf32>, vector<16xf32>
            %so_far1_6_kept = arith.select %is_first, %zeros, %so_far1_6_before : vector<16xf32>
            %so_far1_6 = math.fma %so_far1_6_kept, %factor_lanes1, %so_far1_6_scaled : vector<16xf32>
            vector.store %so_far1_6, %values[%item, %head1, %d6] : memref<?x2x512xf32>, vector<16xf32>
            %so_far1_7_scaled = arith.mulf %sums#15, %descale_lanes : vector<16xf32>
            %so_far1_7_before = vector.load %values[%item, %head1, %d7] : memref<?x2x512xf32>, vector<16xf32>
            %so_far1_7_kept = arith.select %is_first, %zeros, %so_far1_7_before : vector<16xf32>
            %so_far1_7 = math.fma %so_far1_7_kept, %factor_lanes1, %so_far1_7_scaled : vector<16xf32>
            vector.store %so_far1_7, %values[%item, %head1, %d7] : memref<?x2x512xf32>, vector<16xf32>
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
      %columns = arith.constant 256 : index
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
      %heads = arith.constant 2 : index
      %last_group = arith.constant 0 : index
      %blocks_at_once = arith.constant 64 : index
      %panel = arith.constant 128 : index
      %partial = stream.binding.subspan %partial_binding[%c0] : !stream.binding -> memref<?x2x512xf32>{%count}
      %maxima = stream.binding.subspan %maximum_binding[%c0] : !stream.binding -> memref<?x2xf32>{%count}
      %totals = stream.binding.subspan %total_binding[%c0] : !stream.binding -> memref<?x2xf32>{%count}
      %spans = stream.binding.subspan %spans_binding[%c0] : !stream.binding -> memref<?x2xi32>{%rows}
      %row_values = stream.binding.subspan %row_values_binding[%c0] : !stream.binding -> memref<?x2x512xf32>{%rows}
      %row_maxima = stream.binding.subspan %row_maximum_binding[%c0] : !stream.binding -> memref<?x2xf32>{%rows}
      %row_totals = stream.binding.subspan %row_total_binding[%c0] : !stream.binding -> memref<?x2xf32>{%rows}
      %weights = "memref.alloca"() <{alignment = 64 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<64x2xf32>
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
        %maximum = scf.for %b = %first to %end step %c1 iter_args(%so_far = %minus_infinities) -> (vector<16xf32>) {
          %block_maximum_one = memref.load %maxima[%b, %h] : memref<?x2xf32>
          %block_maximum = vector.broadcast %block_maximum_one : f32 to vector<16xf32>

          %larger = arith.maximumf %so_far, %block_maximum : vector<16xf32>
          scf.yield %larger : vector<16xf32>
        }
          %maximum_one = vector.extract %maximum[0] : f32 from vector<16xf32>
          memref.store %maximum_one, %row_maxima[%row, %h] : memref<?x2xf32>

          %zeros_one = vector.extract %zeros[0] : f32 from vector<16xf32>
          memref.store %zeros_one, %row_totals[%row, %h] : memref<?x2xf32>

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
          %maximum_one = memref.load %row_maxima[%row, %h] : memref<?x2xf32>
          %maximum = vector.broadcast %maximum_one : f32 to vector<16xf32>

          %reference_magnitude = math.absf %maximum : vector<16xf32>
          %reference_is_infinite = arith.cmpf oeq, %reference_magnitude, %infinities : vector<16xf32>
          %reference = arith.select %reference_is_infinite, %zeros, %maximum : vector<16xi1>, vector<16xf32>
          scf.for %b = %c0 to %count_here step %c1 {
            %place = arith.addi %chunk_first, %b : index
          %block_maximum_one = memref.load %maxima[%place, %h] : memref<?x2xf32>
          %block_maximum = vector.broadcast %block_maximum_one : f32 to vector<16xf32>

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
          %weight_one = vector.extract %weight[0] : f32 from vector<16xf32>
          memref.store %weight_one, %weights[%b, %h] : memref<64x2xf32>

          }
        }
        // The last group of heads may overlap the one before, so totals come after all weights are there, head by head.
        scf.for %h = %c0 to %heads step %c1 {
          %total_so_far = memref.load %row_totals[%row, %h] : memref<?x2xf32>
          %total = scf.for %b = %c0 to %count_here step %c1 iter_args(%so_far = %total_so_far) -> (f32) {
            %place = arith.addi %chunk_first, %b : index
            %block_total = memref.load %totals[%place, %h] : memref<?x2xf32>
            %weight = memref.load %weights[%b, %h] : memref<64x2xf32>
            %share = arith.mulf %block_total, %weight : f32
            %next = arith.addf %so_far, %share : f32
            scf.yield %next : f32
          }
          memref.store %total, %row_totals[%row, %h] : memref<?x2xf32>

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
              %kept0 = vector.load %row_values[%row, %h, %d0] : memref<?x2x512xf32>, vector<16xf32>
              %kept1 = vector.load %row_values[%row, %h, %d1] : memref<?x2x512xf32>, vector<16xf32>
              %kept2 = vector.load %row_values[%row, %h, %d2] : memref<?x2x512xf32>, vector<16xf32>
              %kept3 = vector.load %row_values[%row, %h, %d3] : memref<?x2x512xf32>, vector<16xf32>
              %kept4 = vector.load %row_values[%row, %h, %d4] : memref<?x2x512xf32>, vector<16xf32>
              %kept5 = vector.load %row_values[%row, %h, %d5] : memref<?x2x512xf32>, vector<16xf32>
              %kept6 = vector.load %row_values[%row, %h, %d6] : memref<?x2x512xf32>, vector<16xf32>
              %kept7 = vector.load %row_values[%row, %h, %d7] : memref<?x2x512xf32>, vector<16xf32>
              scf.yield %kept0, %kept1, %kept2, %kept3, %kept4, %kept5, %kept6, %kept7 : vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>
            }
            %sums:8 = scf.for %b = %c0 to %count_here step %c1
                iter_args(%sum0 = %begin#0, %sum1 = %begin#1, %sum2 = %begin#2, %sum3 = %begin#3, %sum4 = %begin#4, %sum5 = %begin#5, %sum6 = %begin#6, %sum7 = %begin#7) -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>) {
              %place = arith.addi %chunk_first, %b : index
              %weight = memref.load %weights[%b, %h] : memref<64x2xf32>
              %weight_lanes = vector.broadcast %weight : f32 to vector<16xf32>
              %value0 = vector.load %partial[%place, %h, %d0] : memref<?x2x512xf32>, vector<16xf32>
              %next0 = math.fma %weight_lanes, %value0, %sum0 : vector<16xf32>
              %value1 = vector.load %partial[%place, %h, %d1] : memref<?x2x512xf32>, vector<16xf32>
              %next1 = math.fma %weight_lanes, %value1, %sum1 : vector<16xf32>
              %value2 = vector.load %partial[%place, %h, %d2] : memref<?x2x512xf32>, vector<16xf32>
              %next2 = math.fma %weight_lanes, %value2, %sum2 : vector<16xf32>
              %value3 = vector.load %partial[%place, %h, %d3] : memref<?x2x512xf32>, vector<16xf32>
              %next3 = math.fma %weight_lanes, %value3, %sum3 : vector<16xf32>
              %value4 = vector.load %partial[%place, %h, %d4] : memref<?x2x512xf32>, vector<16xf32>
              %next4 = math.fma %weight_lanes, %value4, %sum4 : vector<16xf32>
              %value5 = vector.load %partial[%place, %h, %d5] : memref<?x2x512xf32>, vector<16xf32>
              %next5 = math.fma %weight_lanes, %value5, %sum5 : vector<16xf32>
              %value6 = vector.load %partial[%place, %h, %d6] : memref<?x2x512xf32>, vector<16xf32>
              %next6 = math.fma %weight_lanes, %value6, %sum6 : vector<16xf32>
              %value7 = vector.load %partial[%place, %h, %d7] : memref<?x2x512xf32>, vector<16xf32>
              %next7 = math.fma %weight_lanes, %value7, %sum7 : vector<16xf32>
              scf.yield %next0, %next1, %next2, %next3, %next4, %next5, %next6, %next7 : vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>
            }
            vector.store %sums#0, %row_values[%row, %h, %d0] : memref<?x2x512xf32>, vector<16xf32>
            vector.store %sums#1, %row_values[%row, %h, %d1] : memref<?x2x512xf32>, vector<16xf32>
            vector.store %sums#2, %row_values[%row, %h, %d2] : memref<?x2x512xf32>, vector<16xf32>
            vector.store %sums#3, %row_values[%row, %h, %d3] : memref<?x2x512xf32>, vector<16xf32>
            vector.store %sums#4, %row_values[%row, %h, %d4] : memref<?x2x512xf32>, vector<16xf32>
            vector.store %sums#5, %row_values[%row, %h, %d5] : memref<?x2x512xf32>, vector<16xf32>
            vector.store %sums#6, %row_values[%row, %h, %d6] : memref<?x2x512xf32>, vector<16xf32>
            vector.store %sums#7, %row_values[%row, %h, %d7] : memref<?x2x512xf32>, vector<16xf32>
          }
        }
      }
      return
    }
  }
}

// Partial results: sum of exp2(score - maximum) * value, the maximum (scores carry log2(e)), and the sum of the weights.
func.func @attend(
  %query_rows: !query_rows, %cmp_kv: !kv, %ranges: !ranges, %descales: !descales, %scale: f32, %items: !items
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
  %count = tensor.dim %items, %c0 : !items
  %cmp_cache = tensor.cast %cmp_kv : !kv to !cache

  // A row's blocks: those of the original part, then those of the compressed one.
  %item_parts_empty = tensor.empty(%count) : !item_parts
  %item_descales_empty = tensor.empty(%count) : !per_item
  %item_parts_computed, %item_descales_computed = linalg.generic {
    indexing_maps = [#item, #item], iterator_types = ["parallel"]
  } outs(%item_parts_empty, %item_descales_empty : !item_parts, !per_item) {
  ^bb0(%unused_p: i32, %unused_d: f32):
    %part_i32 = arith.constant 1 : i32
    %descale = tensor.extract %descales[%c1] : !descales
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

    %key_block = arith.constant 256 : index
    %block = arith.index_cast %block_i32 : i32 to index
    %block_start = arith.muli %block, %key_block : index
    %in_block = linalg.index 1 : index
    %slot = arith.addi %block_start, %in_block : index
    %kv_start_at = arith.constant 3 : index
    %kv_start = tensor.extract %ranges[%query_row, %kv_start_at] : !ranges
    %first_at = arith.constant 4 : index
    %first = tensor.extract %ranges[%query_row, %first_at] : !ranges
    %end_at = arith.constant 5 : index
    %end = tensor.extract %ranges[%query_row, %end_at] : !ranges
    %slot_i32 = arith.index_cast %slot : index to i32
    %candidate = arith.addi %slot_i32, %first : i32
    %not_before = arith.cmpi sge, %candidate, %first : i32
    %below_end = arith.cmpi slt, %candidate, %end : i32
    %attended = arith.andi %not_before, %below_end : i1
    %token = arith.select %attended, %candidate, %zero_i32 : i32
    %row = arith.addi %kv_start, %token : i32



    %slot_row = arith.select %attended, %row, %masked : i32
    linalg.yield %slot_row : i32
  } -> !item_keys
  // Without the barrier IREE fuses this into each of its users and redoes it for every column.
  %slots = iree_tensor_ext.compute_barrier.start %slots_computed : !item_keys{%count} -> !item_keys
  %scale_log2_e = arith.mulf %scale, %log2_e : f32
  %rows = tensor.dim %query_rows, %c0 : !query_rows
  %cmp_cache_size = tensor.dim %cmp_cache, %c0 : !cache
  %values, %maximum, %sum = flow.dispatch @attend_avx512_bf16::@items[%count](
    %query_rows, %cmp_cache, %item_parts, %item_descales, %slots, %items,
    %rows, %cmp_cache_size, %count, %scale_log2_e
  ) : (
    !query_rows{%rows}, !cache{%cmp_cache_size}, !item_parts{%count}, !per_item{%count}, !item_keys{%count}, !items{%count},
    index, index, index, f32
  ) -> (!partial{%count}, !per_head{%count}, !per_head{%count})
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
  %count = tensor.dim %partial, %c0 : !partial
  %row_values, %row_maximum, %row_total = flow.dispatch @fold_avx512_bf16::@rows[%rows](
    %partial, %maximum, %total, %spans, %count, %rows
  ) : (
    !partial{%count}, !per_head{%count}, !per_head{%count}, tensor<?x2xi32>{%rows}, index, index
  ) -> (!partial{%rows}, !per_head{%rows}, !per_head{%rows})

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
  %query_rows: !query_rows, %cmp_kv: !kv, %ranges: !ranges, %descales: !descales, %scale: f32, %items: !items, %storage: !partial {iree.abi.output = 0 : index}
) -> (!partial, !per_head, !per_head) attributes {iree.reflection = {}} {
  %partial, %maximum, %total = call @attend(%query_rows, %cmp_kv, %ranges, %descales, %scale, %items)
    : (!query_rows, !kv, !ranges, !descales, f32, !items) -> (!partial, !per_head, !per_head)
  return %partial, %maximum, %total : !partial, !per_head, !per_head
}

// Both passes, for rows whose work items are all there.
func.func @attend_rows(
  %query_rows: !query_rows, %cmp_kv: !kv, %ranges: !ranges, %descales: !descales, %scale: f32, %items: !items, %sinks: !sinks, %spans: tensor<?x2xi32>, %longest: i32
) -> (!folded, !per_head) attributes {iree.reflection = {}} {
  %partial, %maximum, %total = call @attend(%query_rows, %cmp_kv, %ranges, %descales, %scale, %items)
    : (!query_rows, !kv, !ranges, !descales, f32, !items) -> (!partial, !per_head, !per_head)
  %out, %lse = call @fold(%partial, %maximum, %total, %sinks, %spans, %longest)
    : (!partial, !per_head, !per_head, !sinks, tensor<?x2xi32>, i32) -> (!folded, !per_head)
  return %out, %lse : !folded, !per_head
}
}
