!query_rows = tensor<?x21x512xi8>
!kv = tensor<?x512xi8>
!cache = tensor<?x512xi8>
!indices_rows = tensor<?x?xi32>
!ranges = tensor<?x7xi32> // ori and cmp: cache row of the sequence's token 0, first token seen, end; then ori's key blocks
!descales = tensor<2xf32> // ori, cmp
!item_parts = tensor<?xi32>
!items = tensor<?x3xi32> // query row, batch, key block of the row
!item_keys = tensor<?x256xi32>
!item_query = tensor<?x21x512xf32>
!item_nope = tensor<?x256x512xf32>
!item_scores = tensor<?x21x256xf32>
!item_weights = tensor<?x21x256xf32>
!item_partial = tensor<?x21x512xf32>
!item_per_head = tensor<?x21xf32>
!partial = tensor<?x21x512xf32>
!per_item = tensor<?xf32>
!per_head = tensor<?x21xf32>
!sinks = tensor<21xf32>
!folded = tensor<?x21x512xbf16>

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


module @quant_sparse_flash_mla_ori_dense_cmp_sparse_kv_cache_contiguous_heads_21 {

stream.executable private @attend_avx2 {
  stream.executable.export public @items workgroups(%items: index) -> (index, index, index) {
    %c1 = arith.constant 1 : index
    stream.return %items, %c1, %c1 : index, index, index
  }
  builtin.module {
    func.func @items(
      %query_binding: !stream.binding,
      %ori_cache_binding: !stream.binding,
      %cmp_cache_binding: !stream.binding,
      %parts_binding: !stream.binding, %descales_binding: !stream.binding,
      %slots_binding: !stream.binding, %items_binding: !stream.binding,
      %rows: index,
      %ori_cache_size: index,
      %cmp_cache_size: index,

      %count: index, %scale_log2_e: f32,
      %values_binding: !stream.binding, %maximum_binding: !stream.binding, %total_binding: !stream.binding
    ) attributes {translation_info = #iree_codegen.translation_info<pipeline = #iree_codegen.no_pipeline>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %lanes = arith.constant 8 : index
      %columns = arith.constant 512 : index
      %nope = arith.constant 512 : index
      %key_block = arith.constant 256 : index
      %key_step = arith.constant 6 : index
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
      %values = stream.binding.subspan %values_binding[%c0] : !stream.binding -> memref<?x21x512xf32>{%count}
      %maxima = stream.binding.subspan %maximum_binding[%c0] : !stream.binding -> memref<?x21xf32>{%count}
      %totals = stream.binding.subspan %total_binding[%c0] : !stream.binding -> memref<?x21xf32>{%count}
      %item = stream.dispatch.workgroup.id[0] : index
      %query_row_i32 = memref.load %items[%item, %c0] : memref<?x3xi32>
      %query_row = arith.index_cast %query_row_i32 : i32 to index
      %query = stream.binding.subspan %query_binding[%c0] : !stream.binding -> memref<?x21x512xi8>{%rows}
      %ori_cache = stream.binding.subspan %ori_cache_binding[%c0] : !stream.binding -> memref<?x512xi8>{%ori_cache_size}
      %cmp_cache = stream.binding.subspan %cmp_cache_binding[%c0] : !stream.binding -> memref<?x512xi8>{%cmp_cache_size}
      %item_parts = stream.binding.subspan %parts_binding[%c0] : !stream.binding -> memref<?xi32>{%count}
      %item_descales = stream.binding.subspan %descales_binding[%c0] : !stream.binding -> memref<?xf32>{%count}
      %run = arith.constant 32 : index
      %lower_bytes0 = arith.constant dense<[0, 128, 0, 128, 0, 128, 0, 128, 128, 144, 160, 176, 192, 208, 224, 240, 0, 128, 0, 128, 0, 128, 0, 128, 128, 144, 160, 176, 192, 208, 224, 240]> : vector<32xi8>
      %upper_bytes0 = arith.constant dense<[0, 52, 53, 53, 54, 54, 55, 55, 63, 63, 63, 63, 63, 63, 63, 63, 0, 52, 53, 53, 54, 54, 55, 55, 63, 63, 63, 63, 63, 63, 63, 63]> : vector<32xi8>
      %lower_bytes1 = arith.constant dense<[0, 16, 32, 48, 64, 80, 96, 112, 0, 16, 32, 48, 64, 80, 96, 112, 0, 16, 32, 48, 64, 80, 96, 112, 0, 16, 32, 48, 64, 80, 96, 112]> : vector<32xi8>
      %upper_bytes1 = arith.constant dense<[64, 64, 64, 64, 64, 64, 64, 64, 63, 63, 63, 63, 63, 63, 63, 63, 64, 64, 64, 64, 64, 64, 64, 64, 63, 63, 63, 63, 63, 63, 63, 63]> : vector<32xi8>
      %lower_bytes2 = arith.constant dense<[128, 144, 160, 176, 192, 208, 224, 240, 0, 16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 0, 16, 32, 48, 64, 80, 96, 112]> : vector<32xi8>
      %upper_bytes2 = arith.constant dense<[64, 64, 64, 64, 64, 64, 64, 64, 65, 65, 65, 65, 65, 65, 65, 65, 64, 64, 64, 64, 64, 64, 64, 64, 65, 65, 65, 65, 65, 65, 65, 65]> : vector<32xi8>
      %lower_bytes3 = arith.constant dense<[128, 144, 160, 176, 192, 208, 224, 240, 0, 16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 0, 16, 32, 48, 64, 80, 96, 112]> : vector<32xi8>
      %upper_bytes3 = arith.constant dense<[62, 62, 62, 62, 62, 62, 62, 62, 62, 62, 62, 62, 62, 62, 62, 62, 62, 62, 62, 62, 62, 62, 62, 62, 62, 62, 62, 62, 62, 62, 62, 62]> : vector<32xi8>
      %lower_bytes4 = arith.constant dense<[128, 160, 192, 224, 0, 32, 64, 96, 128, 160, 192, 224, 0, 32, 64, 96, 128, 160, 192, 224, 0, 32, 64, 96, 128, 160, 192, 224, 0, 32, 64, 96]> : vector<32xi8>
      %upper_bytes4 = arith.constant dense<[65, 65, 65, 65, 66, 66, 66, 66, 66, 66, 66, 66, 67, 67, 67, 67, 65, 65, 65, 65, 66, 66, 66, 66, 66, 66, 66, 66, 67, 67, 67, 67]> : vector<32xi8>
      %lower_bytes5 = arith.constant dense<[128, 160, 192, 224, 0, 32, 64, 96, 128, 160, 192, 224, 0, 32, 64, 96, 128, 160, 192, 224, 0, 32, 64, 96, 128, 160, 192, 224, 0, 32, 64, 96]> : vector<32xi8>
      %upper_bytes5 = arith.constant dense<[61, 61, 61, 61, 61, 61, 61, 61, 60, 60, 60, 60, 60, 60, 60, 60, 61, 61, 61, 61, 61, 61, 61, 61, 60, 60, 60, 60, 60, 60, 60, 60]> : vector<32xi8>
      %lower_bytes6 = arith.constant dense<[128, 192, 0, 64, 128, 192, 0, 64, 128, 192, 0, 64, 128, 192, 0, 128, 128, 192, 0, 64, 128, 192, 0, 64, 128, 192, 0, 64, 128, 192, 0, 128]> : vector<32xi8>
      %upper_bytes6 = arith.constant dense<[67, 67, 68, 68, 68, 68, 69, 69, 69, 69, 70, 70, 70, 70, 71, 127, 67, 67, 68, 68, 68, 68, 69, 69, 69, 69, 70, 70, 70, 70, 71, 127]> : vector<32xi8>
      %lower_bytes7 = arith.constant dense<[128, 192, 0, 64, 128, 192, 0, 64, 128, 192, 0, 64, 128, 192, 0, 64, 128, 192, 0, 64, 128, 192, 0, 64, 128, 192, 0, 64, 128, 192, 0, 64]> : vector<32xi8>
      %upper_bytes7 = arith.constant dense<[59, 59, 59, 59, 58, 58, 58, 58, 57, 57, 57, 57, 56, 56, 56, 56, 59, 59, 59, 59, 58, 58, 58, 58, 57, 57, 57, 57, 56, 56, 56, 56]> : vector<32xi8>
      %to_sign0 = arith.constant dense<3> : vector<32xi8>
      %to_sign1 = arith.constant dense<2> : vector<32xi8>
      %to_sign2 = arith.constant dense<1> : vector<32xi8>
      %no_bytes = arith.constant dense<0> : vector<32xi8>
      %code_magnitude = arith.constant dense<0x7F> : vector<32xi8>
      %code_sign = arith.constant dense<0x80> : vector<32xi8>
      %nan_lower = arith.constant dense<0xC0> : vector<32xi8>
      %nan_upper = arith.constant dense<0x7F> : vector<32xi8>

      %part = memref.load %item_parts[%item] : memref<?xi32>
      %in_cmp = arith.cmpi ne, %part, %zero_i32 : i32
      %descale = memref.load %item_descales[%item] : memref<?xf32>
      %descale_lanes = vector.broadcast %descale : f32 to vector<8xf32>
      %score_factor = arith.mulf %scale_log2_e, %descale : f32
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
      %pass = arith.constant 256 : index

      %keys = "memref.alloca"() <{alignment = 64 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<258x528xf32>
      %ahead = arith.constant 8 : index
      %last_slot = arith.constant 255 : index
      %scores = "memref.alloca"() <{alignment = 64 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<258x16xf32>
      %query_rows = "memref.alloca"() <{alignment = 64 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<16x528xf32>
      %packed = "memref.alloca"() <{alignment = 64 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<2x512x16xf32>
      %group = arith.constant 16 : index
      %groups = arith.constant 2 : index
      // Where the groups do not come out even, the last one does some heads of the one before again.
      %last_group = arith.constant 5 : index

      scf.for %g = %c0 to %groups step %c1 {
        %group_start = arith.muli %g, %group : index
        %first_head = arith.minui %group_start, %last_group : index
        scf.for %v = %c0 to %group step %lanes {
          %head = arith.addi %first_head, %v : index
          vector.store %minus_infinities, %maxima[%item, %head] : memref<?x21xf32>, vector<8xf32>
          vector.store %zeros, %totals[%item, %head] : memref<?x21xf32>, vector<8xf32>
        }

        // The group's queries, column by column.
        scf.for %h = %c0 to %group step %c1 {
          %head = arith.addi %first_head, %h : index
          scf.for %d = %c0 to %nope step %run {
              %decoded_codes = vector.load %query[%query_row, %head, %d] : memref<?x21x512xi8>, vector<32xi8>
              %decoded_index = arith.andi %decoded_codes, %code_magnitude : vector<32xi8>
              %decoded_lower_0_0 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%lower_bytes0, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_lower_0_1 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%lower_bytes1, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_lower_0_2 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%lower_bytes2, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_lower_0_3 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%lower_bytes3, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_lower_0_4 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%lower_bytes4, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_lower_0_5 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%lower_bytes5, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_lower_0_6 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%lower_bytes6, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_lower_0_7 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%lower_bytes7, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_upper_0_0 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%upper_bytes0, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_upper_0_1 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%upper_bytes1, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_upper_0_2 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%upper_bytes2, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_upper_0_3 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%upper_bytes3, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_upper_0_4 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%upper_bytes4, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_upper_0_5 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%upper_bytes5, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_upper_0_6 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%upper_bytes6, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_upper_0_7 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%upper_bytes7, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_chosen_by0 = arith.shli %decoded_codes, %to_sign0 : vector<32xi8>
              %decoded_second0 = arith.cmpi slt, %decoded_chosen_by0, %no_bytes : vector<32xi8>
              %decoded_lower_1_0 = arith.select %decoded_second0, %decoded_lower_0_1, %decoded_lower_0_0 : vector<32xi1>, vector<32xi8>
              %decoded_lower_1_1 = arith.select %decoded_second0, %decoded_lower_0_3, %decoded_lower_0_2 : vector<32xi1>, vector<32xi8>
              %decoded_lower_1_2 = arith.select %decoded_second0, %decoded_lower_0_5, %decoded_lower_0_4 : vector<32xi1>, vector<32xi8>
              %decoded_lower_1_3 = arith.select %decoded_second0, %decoded_lower_0_7, %decoded_lower_0_6 : vector<32xi1>, vector<32xi8>
              %decoded_upper_1_0 = arith.select %decoded_second0, %decoded_upper_0_1, %decoded_upper_0_0 : vector<32xi1>, vector<32xi8>
              %decoded_upper_1_1 = arith.select %decoded_second0, %decoded_upper_0_3, %decoded_upper_0_2 : vector<32xi1>, vector<32xi8>
              %decoded_upper_1_2 = arith.select %decoded_second0, %decoded_upper_0_5, %decoded_upper_0_4 : vector<32xi1>, vector<32xi8>
              %decoded_upper_1_3 = arith.select %decoded_second0, %decoded_upper_0_7, %decoded_upper_0_6 : vector<32xi1>, vector<32xi8>
              %decoded_chosen_by1 = arith.shli %decoded_codes, %to_sign1 : vector<32xi8>
              %decoded_second1 = arith.cmpi slt, %decoded_chosen_by1, %no_bytes : vector<32xi8>
              %decoded_lower_2_0 = arith.select %decoded_second1, %decoded_lower_1_1, %decoded_lower_1_0 : vector<32xi1>, vector<32xi8>
              %decoded_lower_2_1 = arith.select %decoded_second1, %decoded_lower_1_3, %decoded_lower_1_2 : vector<32xi1>, vector<32xi8>
              %decoded_upper_2_0 = arith.select %decoded_second1, %decoded_upper_1_1, %decoded_upper_1_0 : vector<32xi1>, vector<32xi8>
              %decoded_upper_2_1 = arith.select %decoded_second1, %decoded_upper_1_3, %decoded_upper_1_2 : vector<32xi1>, vector<32xi8>
              %decoded_chosen_by2 = arith.shli %decoded_codes, %to_sign2 : vector<32xi8>
              %decoded_second2 = arith.cmpi slt, %decoded_chosen_by2, %no_bytes : vector<32xi8>
              %decoded_lower_3_0 = arith.select %decoded_second2, %decoded_lower_2_1, %decoded_lower_2_0 : vector<32xi1>, vector<32xi8>
              %decoded_upper_3_0 = arith.select %decoded_second2, %decoded_upper_2_1, %decoded_upper_2_0 : vector<32xi1>, vector<32xi8>
              %decoded_sign = arith.andi %decoded_codes, %code_sign : vector<32xi8>
              %decoded_signed = arith.ori %decoded_upper_3_0, %decoded_sign : vector<32xi8>
              %decoded_is_nan = arith.cmpi eq, %decoded_codes, %code_sign : vector<32xi8>
              %decoded_lower_all = arith.select %decoded_is_nan, %nan_lower, %decoded_lower_3_0 : vector<32xi1>, vector<32xi8>
              %decoded_upper_all = arith.select %decoded_is_nan, %nan_upper, %decoded_signed : vector<32xi1>, vector<32xi8>
              %decoded_words0 = vector.shuffle %decoded_lower_all, %decoded_upper_all [0, 32, 1, 33, 2, 34, 3, 35, 4, 36, 5, 37, 6, 38, 7, 39] : vector<32xi8>, vector<32xi8>
              %decoded_zeros0 = arith.constant dense<0> : vector<16xi8>
              %decoded_bytes0 = vector.shuffle %decoded_words0, %decoded_zeros0 [16, 16, 0, 1, 16, 16, 2, 3, 16, 16, 4, 5, 16, 16, 6, 7, 16, 16, 8, 9, 16, 16, 10, 11, 16, 16, 12, 13, 16, 16, 14, 15] : vector<16xi8>, vector<16xi8>
              %decoded0 = vector.bitcast %decoded_bytes0 : vector<32xi8> to vector<8xf32>
              %decoded_words1 = vector.shuffle %decoded_lower_all, %decoded_upper_all [8, 40, 9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47] : vector<32xi8>, vector<32xi8>
              %decoded_zeros1 = arith.constant dense<0> : vector<16xi8>
              %decoded_bytes1 = vector.shuffle %decoded_words1, %decoded_zeros1 [16, 16, 0, 1, 16, 16, 2, 3, 16, 16, 4, 5, 16, 16, 6, 7, 16, 16, 8, 9, 16, 16, 10, 11, 16, 16, 12, 13, 16, 16, 14, 15] : vector<16xi8>, vector<16xi8>
              %decoded1 = vector.bitcast %decoded_bytes1 : vector<32xi8> to vector<8xf32>
              %decoded_words2 = vector.shuffle %decoded_lower_all, %decoded_upper_all [16, 48, 17, 49, 18, 50, 19, 51, 20, 52, 21, 53, 22, 54, 23, 55] : vector<32xi8>, vector<32xi8>
              %decoded_zeros2 = arith.constant dense<0> : vector<16xi8>
              %decoded_bytes2 = vector.shuffle %decoded_words2, %decoded_zeros2 [16, 16, 0, 1, 16, 16, 2, 3, 16, 16, 4, 5, 16, 16, 6, 7, 16, 16, 8, 9, 16, 16, 10, 11, 16, 16, 12, 13, 16, 16, 14, 15] : vector<16xi8>, vector<16xi8>
              %decoded2 = vector.bitcast %decoded_bytes2 : vector<32xi8> to vector<8xf32>
              %decoded_words3 = vector.shuffle %decoded_lower_all, %decoded_upper_all [24, 56, 25, 57, 26, 58, 27, 59, 28, 60, 29, 61, 30, 62, 31, 63] : vector<32xi8>, vector<32xi8>
              %decoded_zeros3 = arith.constant dense<0> : vector<16xi8>
              %decoded_bytes3 = vector.shuffle %decoded_words3, %decoded_zeros3 [16, 16, 0, 1, 16, 16, 2, 3, 16, 16, 4, 5, 16, 16, 6, 7, 16, 16, 8, 9, 16, 16, 10, 11, 16, 16, 12, 13, 16, 16, 14, 15] : vector<16xi8>, vector<16xi8>
              %decoded3 = vector.bitcast %decoded_bytes3 : vector<32xi8> to vector<8xf32>


            %offset0 = arith.constant 0 : index
            %d0 = arith.addi %d, %offset0 : index
          vector.store %decoded0, %query_rows[%h, %d0] : memref<16x528xf32>, vector<8xf32>

            %offset1 = arith.constant 8 : index
            %d1 = arith.addi %d, %offset1 : index
          vector.store %decoded1, %query_rows[%h, %d1] : memref<16x528xf32>, vector<8xf32>

            %offset2 = arith.constant 16 : index
            %d2 = arith.addi %d, %offset2 : index
          vector.store %decoded2, %query_rows[%h, %d2] : memref<16x528xf32>, vector<8xf32>

            %offset3 = arith.constant 24 : index
            %d3 = arith.addi %d, %offset3 : index
          vector.store %decoded3, %query_rows[%h, %d3] : memref<16x528xf32>, vector<8xf32>

          }
        }
        scf.for %h = %c0 to %group step %lanes {
          scf.for %d = %c0 to %columns step %lanes {
            %place0 = arith.constant 0 : index
            %h0 = arith.addi %h, %place0 : index
            %by_head0 = vector.load %query_rows[%h0, %d] : memref<16x528xf32>, vector<8xf32>
            %place1 = arith.constant 1 : index
            %h1 = arith.addi %h, %place1 : index
            %by_head1 = vector.load %query_rows[%h1, %d] : memref<16x528xf32>, vector<8xf32>
            %place2 = arith.constant 2 : index
            %h2 = arith.addi %h, %place2 : index
            %by_head2 = vector.load %query_rows[%h2, %d] : memref<16x528xf32>, vector<8xf32>
            %place3 = arith.constant 3 : index
            %h3 = arith.addi %h, %place3 : index
            %by_head3 = vector.load %query_rows[%h3, %d] : memref<16x528xf32>, vector<8xf32>
            %place4 = arith.constant 4 : index
            %h4 = arith.addi %h, %place4 : index
            %by_head4 = vector.load %query_rows[%h4, %d] : memref<16x528xf32>, vector<8xf32>
            %place5 = arith.constant 5 : index
            %h5 = arith.addi %h, %place5 : index
            %by_head5 = vector.load %query_rows[%h5, %d] : memref<16x528xf32>, vector<8xf32>
            %place6 = arith.constant 6 : index
            %h6 = arith.addi %h, %place6 : index
            %by_head6 = vector.load %query_rows[%h6, %d] : memref<16x528xf32>, vector<8xf32>
            %place7 = arith.constant 7 : index
            %h7 = arith.addi %h, %place7 : index
            %by_head7 = vector.load %query_rows[%h7, %d] : memref<16x528xf32>, vector<8xf32>
          %by_column_1_0 = vector.shuffle %by_head0, %by_head1 [0, 8, 2, 10, 4, 12, 6, 14] : vector<8xf32>, vector<8xf32>
          %by_column_1_1 = vector.shuffle %by_head0, %by_head1 [1, 9, 3, 11, 5, 13, 7, 15] : vector<8xf32>, vector<8xf32>
          %by_column_1_2 = vector.shuffle %by_head2, %by_head3 [0, 8, 2, 10, 4, 12, 6, 14] : vector<8xf32>, vector<8xf32>
          %by_column_1_3 = vector.shuffle %by_head2, %by_head3 [1, 9, 3, 11, 5, 13, 7, 15] : vector<8xf32>, vector<8xf32>
          %by_column_1_4 = vector.shuffle %by_head4, %by_head5 [0, 8, 2, 10, 4, 12, 6, 14] : vector<8xf32>, vector<8xf32>
          %by_column_1_5 = vector.shuffle %by_head4, %by_head5 [1, 9, 3, 11, 5, 13, 7, 15] : vector<8xf32>, vector<8xf32>
          %by_column_1_6 = vector.shuffle %by_head6, %by_head7 [0, 8, 2, 10, 4, 12, 6, 14] : vector<8xf32>, vector<8xf32>
          %by_column_1_7 = vector.shuffle %by_head6, %by_head7 [1, 9, 3, 11, 5, 13, 7, 15] : vector<8xf32>, vector<8xf32>
          %by_column_2_0 = vector.shuffle %by_column_1_0, %by_column_1_2 [0, 1, 8, 9, 4, 5, 12, 13] : vector<8xf32>, vector<8xf32>
          %by_column_2_2 = vector.shuffle %by_column_1_0, %by_column_1_2 [2, 3, 10, 11, 6, 7, 14, 15] : vector<8xf32>, vector<8xf32>
          %by_column_2_1 = vector.shuffle %by_column_1_1, %by_column_1_3 [0, 1, 8, 9, 4, 5, 12, 13] : vector<8xf32>, vector<8xf32>
          %by_column_2_3 = vector.shuffle %by_column_1_1, %by_column_1_3 [2, 3, 10, 11, 6, 7, 14, 15] : vector<8xf32>, vector<8xf32>
          %by_column_2_4 = vector.shuffle %by_column_1_4, %by_column_1_6 [0, 1, 8, 9, 4, 5, 12, 13] : vector<8xf32>, vector<8xf32>
          %by_column_2_6 = vector.shuffle %by_column_1_4, %by_column_1_6 [2, 3, 10, 11, 6, 7, 14, 15] : vector<8xf32>, vector<8xf32>
          %by_column_2_5 = vector.shuffle %by_column_1_5, %by_column_1_7 [0, 1, 8, 9, 4, 5, 12, 13] : vector<8xf32>, vector<8xf32>
          %by_column_2_7 = vector.shuffle %by_column_1_5, %by_column_1_7 [2, 3, 10, 11, 6, 7, 14, 15] : vector<8xf32>, vector<8xf32>
          %by_column0 = vector.shuffle %by_column_2_0, %by_column_2_4 [0, 1, 2, 3, 8, 9, 10, 11] : vector<8xf32>, vector<8xf32>
          %by_column4 = vector.shuffle %by_column_2_0, %by_column_2_4 [4, 5, 6, 7, 12, 13, 14, 15] : vector<8xf32>, vector<8xf32>
          %by_column1 = vector.shuffle %by_column_2_1, %by_column_2_5 [0, 1, 2, 3, 8, 9, 10, 11] : vector<8xf32>, vector<8xf32>
          %by_column5 = vector.shuffle %by_column_2_1, %by_column_2_5 [4, 5, 6, 7, 12, 13, 14, 15] : vector<8xf32>, vector<8xf32>
          %by_column2 = vector.shuffle %by_column_2_2, %by_column_2_6 [0, 1, 2, 3, 8, 9, 10, 11] : vector<8xf32>, vector<8xf32>
          %by_column6 = vector.shuffle %by_column_2_2, %by_column_2_6 [4, 5, 6, 7, 12, 13, 14, 15] : vector<8xf32>, vector<8xf32>
          %by_column3 = vector.shuffle %by_column_2_3, %by_column_2_7 [0, 1, 2, 3, 8, 9, 10, 11] : vector<8xf32>, vector<8xf32>
          %by_column7 = vector.shuffle %by_column_2_3, %by_column_2_7 [4, 5, 6, 7, 12, 13, 14, 15] : vector<8xf32>, vector<8xf32>

            %d0 = arith.addi %d, %place0 : index
            vector.store %by_column0, %packed[%g, %d0, %h] : memref<2x512x16xf32>, vector<8xf32>
            %d1 = arith.addi %d, %place1 : index
            vector.store %by_column1, %packed[%g, %d1, %h] : memref<2x512x16xf32>, vector<8xf32>
            %d2 = arith.addi %d, %place2 : index
            vector.store %by_column2, %packed[%g, %d2, %h] : memref<2x512x16xf32>, vector<8xf32>
            %d3 = arith.addi %d, %place3 : index
            vector.store %by_column3, %packed[%g, %d3, %h] : memref<2x512x16xf32>, vector<8xf32>
            %d4 = arith.addi %d, %place4 : index
            vector.store %by_column4, %packed[%g, %d4, %h] : memref<2x512x16xf32>, vector<8xf32>
            %d5 = arith.addi %d, %place5 : index
            vector.store %by_column5, %packed[%g, %d5, %h] : memref<2x512x16xf32>, vector<8xf32>
            %d6 = arith.addi %d, %place6 : index
            vector.store %by_column6, %packed[%g, %d6, %h] : memref<2x512x16xf32>, vector<8xf32>
            %d7 = arith.addi %d, %place7 : index
            vector.store %by_column7, %packed[%g, %d7, %h] : memref<2x512x16xf32>, vector<8xf32>
          }
        }
      }

      scf.for %pass_start = %c0 to %passes_end step %pass {
        %left = arith.subi %last, %pass_start : index
        %keys_here = arith.minui %left, %pass : index
        %key_steps = arith.ceildivui %keys_here, %key_step : index
        %key_end = arith.muli %key_steps, %key_step : index
        // The rows lie anywhere in memory. All are touched at once, so that their pages are looked up side by side.
        %touched_end = arith.addi %key_end, %ahead : index
        scf.for %k = %c0 to %touched_end step %c1 {
          %any_place = arith.addi %pass_start, %k : index
          %place = arith.minui %any_place, %last_slot : index
          %slot = memref.load %slots[%item, %place] : memref<?x256xi32>
          %slot_or_first = arith.maxsi %slot, %zero_i32 : i32
          %row = arith.index_cast %slot_or_first : i32 to index
        scf.if %in_cmp {
          memref.prefetch %cmp_cache[%row, %c0], read, locality<3>, data : memref<?x512xi8>
        } else {
          memref.prefetch %ori_cache[%row, %c0], read, locality<3>, data : memref<?x512xi8>
        }

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
          scf.if %in_cmp {
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
              %decoded_index = arith.andi %decoded_codes, %code_magnitude : vector<32xi8>
              %decoded_lower_0_0 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%lower_bytes0, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_lower_0_1 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%lower_bytes1, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_lower_0_2 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%lower_bytes2, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_lower_0_3 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%lower_bytes3, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_lower_0_4 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%lower_bytes4, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_lower_0_5 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%lower_bytes5, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_lower_0_6 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%lower_bytes6, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_lower_0_7 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%lower_bytes7, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_upper_0_0 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%upper_bytes0, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_upper_0_1 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%upper_bytes1, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_upper_0_2 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%upper_bytes2, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_upper_0_3 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%upper_bytes3, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_upper_0_4 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%upper_bytes4, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_upper_0_5 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%upper_bytes5, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_upper_0_6 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%upper_bytes6, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_upper_0_7 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%upper_bytes7, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_chosen_by0 = arith.shli %decoded_codes, %to_sign0 : vector<32xi8>
              %decoded_second0 = arith.cmpi slt, %decoded_chosen_by0, %no_bytes : vector<32xi8>
              %decoded_lower_1_0 = arith.select %decoded_second0, %decoded_lower_0_1, %decoded_lower_0_0 : vector<32xi1>, vector<32xi8>
              %decoded_lower_1_1 = arith.select %decoded_second0, %decoded_lower_0_3, %decoded_lower_0_2 : vector<32xi1>, vector<32xi8>
              %decoded_lower_1_2 = arith.select %decoded_second0, %decoded_lower_0_5, %decoded_lower_0_4 : vector<32xi1>, vector<32xi8>
              %decoded_lower_1_3 = arith.select %decoded_second0, %decoded_lower_0_7, %decoded_lower_0_6 : vector<32xi1>, vector<32xi8>
              %decoded_upper_1_0 = arith.select %decoded_second0, %decoded_upper_0_1, %decoded_upper_0_0 : vector<32xi1>, vector<32xi8>
              %decoded_upper_1_1 = arith.select %decoded_second0, %decoded_upper_0_3, %decoded_upper_0_2 : vector<32xi1>, vector<32xi8>
              %decoded_upper_1_2 = arith.select %decoded_second0, %decoded_upper_0_5, %decoded_upper_0_4 : vector<32xi1>, vector<32xi8>
              %decoded_upper_1_3 = arith.select %decoded_second0, %decoded_upper_0_7, %decoded_upper_0_6 : vector<32xi1>, vector<32xi8>
              %decoded_chosen_by1 = arith.shli %decoded_codes, %to_sign1 : vector<32xi8>
              %decoded_second1 = arith.cmpi slt, %decoded_chosen_by1, %no_bytes : vector<32xi8>
              %decoded_lower_2_0 = arith.select %decoded_second1, %decoded_lower_1_1, %decoded_lower_1_0 : vector<32xi1>, vector<32xi8>
              %decoded_lower_2_1 = arith.select %decoded_second1, %decoded_lower_1_3, %decoded_lower_1_2 : vector<32xi1>, vector<32xi8>
              %decoded_upper_2_0 = arith.select %decoded_second1, %decoded_upper_1_1, %decoded_upper_1_0 : vector<32xi1>, vector<32xi8>
              %decoded_upper_2_1 = arith.select %decoded_second1, %decoded_upper_1_3, %decoded_upper_1_2 : vector<32xi1>, vector<32xi8>
              %decoded_chosen_by2 = arith.shli %decoded_codes, %to_sign2 : vector<32xi8>
              %decoded_second2 = arith.cmpi slt, %decoded_chosen_by2, %no_bytes : vector<32xi8>
              %decoded_lower_3_0 = arith.select %decoded_second2, %decoded_lower_2_1, %decoded_lower_2_0 : vector<32xi1>, vector<32xi8>
              %decoded_upper_3_0 = arith.select %decoded_second2, %decoded_upper_2_1, %decoded_upper_2_0 : vector<32xi1>, vector<32xi8>
              %decoded_sign = arith.andi %decoded_codes, %code_sign : vector<32xi8>
              %decoded_signed = arith.ori %decoded_upper_3_0, %decoded_sign : vector<32xi8>
              %decoded_is_nan = arith.cmpi eq, %decoded_codes, %code_sign : vector<32xi8>
              %decoded_lower_all = arith.select %decoded_is_nan, %nan_lower, %decoded_lower_3_0 : vector<32xi1>, vector<32xi8>
              %decoded_upper_all = arith.select %decoded_is_nan, %nan_upper, %decoded_signed : vector<32xi1>, vector<32xi8>
              %decoded_words0 = vector.shuffle %decoded_lower_all, %decoded_upper_all [0, 32, 1, 33, 2, 34, 3, 35, 4, 36, 5, 37, 6, 38, 7, 39] : vector<32xi8>, vector<32xi8>
              %decoded_zeros0 = arith.constant dense<0> : vector<16xi8>
              %decoded_bytes0 = vector.shuffle %decoded_words0, %decoded_zeros0 [16, 16, 0, 1, 16, 16, 2, 3, 16, 16, 4, 5, 16, 16, 6, 7, 16, 16, 8, 9, 16, 16, 10, 11, 16, 16, 12, 13, 16, 16, 14, 15] : vector<16xi8>, vector<16xi8>
              %decoded0 = vector.bitcast %decoded_bytes0 : vector<32xi8> to vector<8xf32>
              %decoded_words1 = vector.shuffle %decoded_lower_all, %decoded_upper_all [8, 40, 9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47] : vector<32xi8>, vector<32xi8>
              %decoded_zeros1 = arith.constant dense<0> : vector<16xi8>
              %decoded_bytes1 = vector.shuffle %decoded_words1, %decoded_zeros1 [16, 16, 0, 1, 16, 16, 2, 3, 16, 16, 4, 5, 16, 16, 6, 7, 16, 16, 8, 9, 16, 16, 10, 11, 16, 16, 12, 13, 16, 16, 14, 15] : vector<16xi8>, vector<16xi8>
              %decoded1 = vector.bitcast %decoded_bytes1 : vector<32xi8> to vector<8xf32>
              %decoded_words2 = vector.shuffle %decoded_lower_all, %decoded_upper_all [16, 48, 17, 49, 18, 50, 19, 51, 20, 52, 21, 53, 22, 54, 23, 55] : vector<32xi8>, vector<32xi8>
              %decoded_zeros2 = arith.constant dense<0> : vector<16xi8>
              %decoded_bytes2 = vector.shuffle %decoded_words2, %decoded_zeros2 [16, 16, 0, 1, 16, 16, 2, 3, 16, 16, 4, 5, 16, 16, 6, 7, 16, 16, 8, 9, 16, 16, 10, 11, 16, 16, 12, 13, 16, 16, 14, 15] : vector<16xi8>, vector<16xi8>
              %decoded2 = vector.bitcast %decoded_bytes2 : vector<32xi8> to vector<8xf32>
              %decoded_words3 = vector.shuffle %decoded_lower_all, %decoded_upper_all [24, 56, 25, 57, 26, 58, 27, 59, 28, 60, 29, 61, 30, 62, 31, 63] : vector<32xi8>, vector<32xi8>
              %decoded_zeros3 = arith.constant dense<0> : vector<16xi8>
              %decoded_bytes3 = vector.shuffle %decoded_words3, %decoded_zeros3 [16, 16, 0, 1, 16, 16, 2, 3, 16, 16, 4, 5, 16, 16, 6, 7, 16, 16, 8, 9, 16, 16, 10, 11, 16, 16, 12, 13, 16, 16, 14, 15] : vector<16xi8>, vector<16xi8>
              %decoded3 = vector.bitcast %decoded_bytes3 : vector<32xi8> to vector<8xf32>


            %offset0 = arith.constant 0 : index
            %d0 = arith.addi %d, %offset0 : index
          vector.store %decoded0, %keys[%k, %d0] : memref<258x528xf32>, vector<8xf32>

            %offset1 = arith.constant 8 : index
            %d1 = arith.addi %d, %offset1 : index
          vector.store %decoded1, %keys[%k, %d1] : memref<258x528xf32>, vector<8xf32>

            %offset2 = arith.constant 16 : index
            %d2 = arith.addi %d, %offset2 : index
          vector.store %decoded2, %keys[%k, %d2] : memref<258x528xf32>, vector<8xf32>

            %offset3 = arith.constant 24 : index
            %d3 = arith.addi %d, %offset3 : index
          vector.store %decoded3, %keys[%k, %d3] : memref<258x528xf32>, vector<8xf32>

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
              %decoded_index = arith.andi %decoded_codes, %code_magnitude : vector<32xi8>
              %decoded_lower_0_0 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%lower_bytes0, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_lower_0_1 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%lower_bytes1, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_lower_0_2 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%lower_bytes2, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_lower_0_3 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%lower_bytes3, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_lower_0_4 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%lower_bytes4, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_lower_0_5 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%lower_bytes5, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_lower_0_6 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%lower_bytes6, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_lower_0_7 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%lower_bytes7, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_upper_0_0 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%upper_bytes0, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_upper_0_1 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%upper_bytes1, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_upper_0_2 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%upper_bytes2, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_upper_0_3 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%upper_bytes3, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_upper_0_4 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%upper_bytes4, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_upper_0_5 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%upper_bytes5, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_upper_0_6 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%upper_bytes6, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_upper_0_7 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%upper_bytes7, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_chosen_by0 = arith.shli %decoded_codes, %to_sign0 : vector<32xi8>
              %decoded_second0 = arith.cmpi slt, %decoded_chosen_by0, %no_bytes : vector<32xi8>
              %decoded_lower_1_0 = arith.select %decoded_second0, %decoded_lower_0_1, %decoded_lower_0_0 : vector<32xi1>, vector<32xi8>
              %decoded_lower_1_1 = arith.select %decoded_second0, %decoded_lower_0_3, %decoded_lower_0_2 : vector<32xi1>, vector<32xi8>
              %decoded_lower_1_2 = arith.select %decoded_second0, %decoded_lower_0_5, %decoded_lower_0_4 : vector<32xi1>, vector<32xi8>
              %decoded_lower_1_3 = arith.select %decoded_second0, %decoded_lower_0_7, %decoded_lower_0_6 : vector<32xi1>, vector<32xi8>
              %decoded_upper_1_0 = arith.select %decoded_second0, %decoded_upper_0_1, %decoded_upper_0_0 : vector<32xi1>, vector<32xi8>
              %decoded_upper_1_1 = arith.select %decoded_second0, %decoded_upper_0_3, %decoded_upper_0_2 : vector<32xi1>, vector<32xi8>
              %decoded_upper_1_2 = arith.select %decoded_second0, %decoded_upper_0_5, %decoded_upper_0_4 : vector<32xi1>, vector<32xi8>
              %decoded_upper_1_3 = arith.select %decoded_second0, %decoded_upper_0_7, %decoded_upper_0_6 : vector<32xi1>, vector<32xi8>
              %decoded_chosen_by1 = arith.shli %decoded_codes, %to_sign1 : vector<32xi8>
              %decoded_second1 = arith.cmpi slt, %decoded_chosen_by1, %no_bytes : vector<32xi8>
              %decoded_lower_2_0 = arith.select %decoded_second1, %decoded_lower_1_1, %decoded_lower_1_0 : vector<32xi1>, vector<32xi8>
              %decoded_lower_2_1 = arith.select %decoded_second1, %decoded_lower_1_3, %decoded_lower_1_2 : vector<32xi1>, vector<32xi8>
              %decoded_upper_2_0 = arith.select %decoded_second1, %decoded_upper_1_1, %decoded_upper_1_0 : vector<32xi1>, vector<32xi8>
              %decoded_upper_2_1 = arith.select %decoded_second1, %decoded_upper_1_3, %decoded_upper_1_2 : vector<32xi1>, vector<32xi8>
              %decoded_chosen_by2 = arith.shli %decoded_codes, %to_sign2 : vector<32xi8>
              %decoded_second2 = arith.cmpi slt, %decoded_chosen_by2, %no_bytes : vector<32xi8>
              %decoded_lower_3_0 = arith.select %decoded_second2, %decoded_lower_2_1, %decoded_lower_2_0 : vector<32xi1>, vector<32xi8>
              %decoded_upper_3_0 = arith.select %decoded_second2, %decoded_upper_2_1, %decoded_upper_2_0 : vector<32xi1>, vector<32xi8>
              %decoded_sign = arith.andi %decoded_codes, %code_sign : vector<32xi8>
              %decoded_signed = arith.ori %decoded_upper_3_0, %decoded_sign : vector<32xi8>
              %decoded_is_nan = arith.cmpi eq, %decoded_codes, %code_sign : vector<32xi8>
              %decoded_lower_all = arith.select %decoded_is_nan, %nan_lower, %decoded_lower_3_0 : vector<32xi1>, vector<32xi8>
              %decoded_upper_all = arith.select %decoded_is_nan, %nan_upper, %decoded_signed : vector<32xi1>, vector<32xi8>
              %decoded_words0 = vector.shuffle %decoded_lower_all, %decoded_upper_all [0, 32, 1, 33, 2, 34, 3, 35, 4, 36, 5, 37, 6, 38, 7, 39] : vector<32xi8>, vector<32xi8>
              %decoded_zeros0 = arith.constant dense<0> : vector<16xi8>
              %decoded_bytes0 = vector.shuffle %decoded_words0, %decoded_zeros0 [16, 16, 0, 1, 16, 16, 2, 3, 16, 16, 4, 5, 16, 16, 6, 7, 16, 16, 8, 9, 16, 16, 10, 11, 16, 16, 12, 13, 16, 16, 14, 15] : vector<16xi8>, vector<16xi8>
              %decoded0 = vector.bitcast %decoded_bytes0 : vector<32xi8> to vector<8xf32>
              %decoded_words1 = vector.shuffle %decoded_lower_all, %decoded_upper_all [8, 40, 9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47] : vector<32xi8>, vector<32xi8>
              %decoded_zeros1 = arith.constant dense<0> : vector<16xi8>
              %decoded_bytes1 = vector.shuffle %decoded_words1, %decoded_zeros1 [16, 16, 0, 1, 16, 16, 2, 3, 16, 16, 4, 5, 16, 16, 6, 7, 16, 16, 8, 9, 16, 16, 10, 11, 16, 16, 12, 13, 16, 16, 14, 15] : vector<16xi8>, vector<16xi8>
              %decoded1 = vector.bitcast %decoded_bytes1 : vector<32xi8> to vector<8xf32>
              %decoded_words2 = vector.shuffle %decoded_lower_all, %decoded_upper_all [16, 48, 17, 49, 18, 50, 19, 51, 20, 52, 21, 53, 22, 54, 23, 55] : vector<32xi8>, vector<32xi8>
              %decoded_zeros2 = arith.constant dense<0> : vector<16xi8>
              %decoded_bytes2 = vector.shuffle %decoded_words2, %decoded_zeros2 [16, 16, 0, 1, 16, 16, 2, 3, 16, 16, 4, 5, 16, 16, 6, 7, 16, 16, 8, 9, 16, 16, 10, 11, 16, 16, 12, 13, 16, 16, 14, 15] : vector<16xi8>, vector<16xi8>
              %decoded2 = vector.bitcast %decoded_bytes2 : vector<32xi8> to vector<8xf32>
              %decoded_words3 = vector.shuffle %decoded_lower_all, %decoded_upper_all [24, 56, 25, 57, 26, 58, 27, 59, 28, 60, 29, 61, 30, 62, 31, 63] : vector<32xi8>, vector<32xi8>
              %decoded_zeros3 = arith.constant dense<0> : vector<16xi8>
              %decoded_bytes3 = vector.shuffle %decoded_words3, %decoded_zeros3 [16, 16, 0, 1, 16, 16, 2, 3, 16, 16, 4, 5, 16, 16, 6, 7, 16, 16, 8, 9, 16, 16, 10, 11, 16, 16, 12, 13, 16, 16, 14, 15] : vector<16xi8>, vector<16xi8>
              %decoded3 = vector.bitcast %decoded_bytes3 : vector<32xi8> to vector<8xf32>


            %offset0 = arith.constant 0 : index
            %d0 = arith.addi %d, %offset0 : index
          vector.store %decoded0, %keys[%k, %d0] : memref<258x528xf32>, vector<8xf32>

            %offset1 = arith.constant 8 : index
            %d1 = arith.addi %d, %offset1 : index
          vector.store %decoded1, %keys[%k, %d1] : memref<258x528xf32>, vector<8xf32>

            %offset2 = arith.constant 16 : index
            %d2 = arith.addi %d, %offset2 : index
          vector.store %decoded2, %keys[%k, %d2] : memref<258x528xf32>, vector<8xf32>

            %offset3 = arith.constant 24 : index
            %d3 = arith.addi %d, %offset3 : index
          vector.store %decoded3, %keys[%k, %d3] : memref<258x528xf32>, vector<8xf32>

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
              %decoded_index = arith.andi %decoded_codes, %code_magnitude : vector<32xi8>
              %decoded_lower_0_0 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%lower_bytes0, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_lower_0_1 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%lower_bytes1, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_lower_0_2 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%lower_bytes2, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_lower_0_3 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%lower_bytes3, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_lower_0_4 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%lower_bytes4, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_lower_0_5 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%lower_bytes5, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_lower_0_6 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%lower_bytes6, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_lower_0_7 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%lower_bytes7, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_upper_0_0 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%upper_bytes0, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_upper_0_1 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%upper_bytes1, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_upper_0_2 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%upper_bytes2, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_upper_0_3 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%upper_bytes3, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_upper_0_4 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%upper_bytes4, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_upper_0_5 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%upper_bytes5, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_upper_0_6 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%upper_bytes6, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_upper_0_7 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%upper_bytes7, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_chosen_by0 = arith.shli %decoded_codes, %to_sign0 : vector<32xi8>
              %decoded_second0 = arith.cmpi slt, %decoded_chosen_by0, %no_bytes : vector<32xi8>
              %decoded_lower_1_0 = arith.select %decoded_second0, %decoded_lower_0_1, %decoded_lower_0_0 : vector<32xi1>, vector<32xi8>
              %decoded_lower_1_1 = arith.select %decoded_second0, %decoded_lower_0_3, %decoded_lower_0_2 : vector<32xi1>, vector<32xi8>
              %decoded_lower_1_2 = arith.select %decoded_second0, %decoded_lower_0_5, %decoded_lower_0_4 : vector<32xi1>, vector<32xi8>
              %decoded_lower_1_3 = arith.select %decoded_second0, %decoded_lower_0_7, %decoded_lower_0_6 : vector<32xi1>, vector<32xi8>
              %decoded_upper_1_0 = arith.select %decoded_second0, %decoded_upper_0_1, %decoded_upper_0_0 : vector<32xi1>, vector<32xi8>
              %decoded_upper_1_1 = arith.select %decoded_second0, %decoded_upper_0_3, %decoded_upper_0_2 : vector<32xi1>, vector<32xi8>
              %decoded_upper_1_2 = arith.select %decoded_second0, %decoded_upper_0_5, %decoded_upper_0_4 : vector<32xi1>, vector<32xi8>
              %decoded_upper_1_3 = arith.select %decoded_second0, %decoded_upper_0_7, %decoded_upper_0_6 : vector<32xi1>, vector<32xi8>
              %decoded_chosen_by1 = arith.shli %decoded_codes, %to_sign1 : vector<32xi8>
              %decoded_second1 = arith.cmpi slt, %decoded_chosen_by1, %no_bytes : vector<32xi8>
              %decoded_lower_2_0 = arith.select %decoded_second1, %decoded_lower_1_1, %decoded_lower_1_0 : vector<32xi1>, vector<32xi8>
              %decoded_lower_2_1 = arith.select %decoded_second1, %decoded_lower_1_3, %decoded_lower_1_2 : vector<32xi1>, vector<32xi8>
              %decoded_upper_2_0 = arith.select %decoded_second1, %decoded_upper_1_1, %decoded_upper_1_0 : vector<32xi1>, vector<32xi8>
              %decoded_upper_2_1 = arith.select %decoded_second1, %decoded_upper_1_3, %decoded_upper_1_2 : vector<32xi1>, vector<32xi8>
              %decoded_chosen_by2 = arith.shli %decoded_codes, %to_sign2 : vector<32xi8>
              %decoded_second2 = arith.cmpi slt, %decoded_chosen_by2, %no_bytes : vector<32xi8>
              %decoded_lower_3_0 = arith.select %decoded_second2, %decoded_lower_2_1, %decoded_lower_2_0 : vector<32xi1>, vector<32xi8>
              %decoded_upper_3_0 = arith.select %decoded_second2, %decoded_upper_2_1, %decoded_upper_2_0 : vector<32xi1>, vector<32xi8>
              %decoded_sign = arith.andi %decoded_codes, %code_sign : vector<32xi8>
              %decoded_signed = arith.ori %decoded_upper_3_0, %decoded_sign : vector<32xi8>
              %decoded_is_nan = arith.cmpi eq, %decoded_codes, %code_sign : vector<32xi8>
              %decoded_lower_all = arith.select %decoded_is_nan, %nan_lower, %decoded_lower_3_0 : vector<32xi1>, vector<32xi8>
              %decoded_upper_all = arith.select %decoded_is_nan, %nan_upper, %decoded_signed : vector<32xi1>, vector<32xi8>
              %decoded_words0 = vector.shuffle %decoded_lower_all, %decoded_upper_all [0, 32, 1, 33, 2, 34, 3, 35, 4, 36, 5, 37, 6, 38, 7, 39] : vector<32xi8>, vector<32xi8>
              %decoded_zeros0 = arith.constant dense<0> : vector<16xi8>
              %decoded_bytes0 = vector.shuffle %decoded_words0, %decoded_zeros0 [16, 16, 0, 1, 16, 16, 2, 3, 16, 16, 4, 5, 16, 16, 6, 7, 16, 16, 8, 9, 16, 16, 10, 11, 16, 16, 12, 13, 16, 16, 14, 15] : vector<16xi8>, vector<16xi8>
              %decoded0 = vector.bitcast %decoded_bytes0 : vector<32xi8> to vector<8xf32>
              %decoded_words1 = vector.shuffle %decoded_lower_all, %decoded_upper_all [8, 40, 9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47] : vector<32xi8>, vector<32xi8>
              %decoded_zeros1 = arith.constant dense<0> : vector<16xi8>
              %decoded_bytes1 = vector.shuffle %decoded_words1, %decoded_zeros1 [16, 16, 0, 1, 16, 16, 2, 3, 16, 16, 4, 5, 16, 16, 6, 7, 16, 16, 8, 9, 16, 16, 10, 11, 16, 16, 12, 13, 16, 16, 14, 15] : vector<16xi8>, vector<16xi8>
              %decoded1 = vector.bitcast %decoded_bytes1 : vector<32xi8> to vector<8xf32>
              %decoded_words2 = vector.shuffle %decoded_lower_all, %decoded_upper_all [16, 48, 17, 49, 18, 50, 19, 51, 20, 52, 21, 53, 22, 54, 23, 55] : vector<32xi8>, vector<32xi8>
              %decoded_zeros2 = arith.constant dense<0> : vector<16xi8>
              %decoded_bytes2 = vector.shuffle %decoded_words2, %decoded_zeros2 [16, 16, 0, 1, 16, 16, 2, 3, 16, 16, 4, 5, 16, 16, 6, 7, 16, 16, 8, 9, 16, 16, 10, 11, 16, 16, 12, 13, 16, 16, 14, 15] : vector<16xi8>, vector<16xi8>
              %decoded2 = vector.bitcast %decoded_bytes2 : vector<32xi8> to vector<8xf32>
              %decoded_words3 = vector.shuffle %decoded_lower_all, %decoded_upper_all [24, 56, 25, 57, 26, 58, 27, 59, 28, 60, 29, 61, 30, 62, 31, 63] : vector<32xi8>, vector<32xi8>
              %decoded_zeros3 = arith.constant dense<0> : vector<16xi8>
              %decoded_bytes3 = vector.shuffle %decoded_words3, %decoded_zeros3 [16, 16, 0, 1, 16, 16, 2, 3, 16, 16, 4, 5, 16, 16, 6, 7, 16, 16, 8, 9, 16, 16, 10, 11, 16, 16, 12, 13, 16, 16, 14, 15] : vector<16xi8>, vector<16xi8>
              %decoded3 = vector.bitcast %decoded_bytes3 : vector<32xi8> to vector<8xf32>


            %offset0 = arith.constant 0 : index
            %d0 = arith.addi %d, %offset0 : index
          vector.store %decoded0, %keys[%k, %d0] : memref<258x528xf32>, vector<8xf32>

            %offset1 = arith.constant 8 : index
            %d1 = arith.addi %d, %offset1 : index
          vector.store %decoded1, %keys[%k, %d1] : memref<258x528xf32>, vector<8xf32>

            %offset2 = arith.constant 16 : index
            %d2 = arith.addi %d, %offset2 : index
          vector.store %decoded2, %keys[%k, %d2] : memref<258x528xf32>, vector<8xf32>

            %offset3 = arith.constant 24 : index
            %d3 = arith.addi %d, %offset3 : index
          vector.store %decoded3, %keys[%k, %d3] : memref<258x528xf32>, vector<8xf32>

          }

          %quarter_start3 = arith.constant 384 : index
          %quarter_end3 = arith.constant 512 : index
          scf.for %d = %quarter_start3 to %quarter_end3 step %run {
              %decoded_codes = vector.load %cmp_cache[%row, %d] : memref<?x512xi8>, vector<32xi8>
              %decoded_index = arith.andi %decoded_codes, %code_magnitude : vector<32xi8>
              %decoded_lower_0_0 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%lower_bytes0, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_lower_0_1 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%lower_bytes1, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_lower_0_2 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%lower_bytes2, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_lower_0_3 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%lower_bytes3, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_lower_0_4 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%lower_bytes4, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_lower_0_5 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%lower_bytes5, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_lower_0_6 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%lower_bytes6, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_lower_0_7 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%lower_bytes7, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_upper_0_0 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%upper_bytes0, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_upper_0_1 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%upper_bytes1, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_upper_0_2 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%upper_bytes2, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_upper_0_3 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%upper_bytes3, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_upper_0_4 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%upper_bytes4, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_upper_0_5 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%upper_bytes5, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_upper_0_6 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%upper_bytes6, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_upper_0_7 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%upper_bytes7, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_chosen_by0 = arith.shli %decoded_codes, %to_sign0 : vector<32xi8>
              %decoded_second0 = arith.cmpi slt, %decoded_chosen_by0, %no_bytes : vector<32xi8>
              %decoded_lower_1_0 = arith.select %decoded_second0, %decoded_lower_0_1, %decoded_lower_0_0 : vector<32xi1>, vector<32xi8>
              %decoded_lower_1_1 = arith.select %decoded_second0, %decoded_lower_0_3, %decoded_lower_0_2 : vector<32xi1>, vector<32xi8>
              %decoded_lower_1_2 = arith.select %decoded_second0, %decoded_lower_0_5, %decoded_lower_0_4 : vector<32xi1>, vector<32xi8>
              %decoded_lower_1_3 = arith.select %decoded_second0, %decoded_lower_0_7, %decoded_lower_0_6 : vector<32xi1>, vector<32xi8>
              %decoded_upper_1_0 = arith.select %decoded_second0, %decoded_upper_0_1, %decoded_upper_0_0 : vector<32xi1>, vector<32xi8>
              %decoded_upper_1_1 = arith.select %decoded_second0, %decoded_upper_0_3, %decoded_upper_0_2 : vector<32xi1>, vector<32xi8>
              %decoded_upper_1_2 = arith.select %decoded_second0, %decoded_upper_0_5, %decoded_upper_0_4 : vector<32xi1>, vector<32xi8>
              %decoded_upper_1_3 = arith.select %decoded_second0, %decoded_upper_0_7, %decoded_upper_0_6 : vector<32xi1>, vector<32xi8>
              %decoded_chosen_by1 = arith.shli %decoded_codes, %to_sign1 : vector<32xi8>
              %decoded_second1 = arith.cmpi slt, %decoded_chosen_by1, %no_bytes : vector<32xi8>
              %decoded_lower_2_0 = arith.select %decoded_second1, %decoded_lower_1_1, %decoded_lower_1_0 : vector<32xi1>, vector<32xi8>
              %decoded_lower_2_1 = arith.select %decoded_second1, %decoded_lower_1_3, %decoded_lower_1_2 : vector<32xi1>, vector<32xi8>
              %decoded_upper_2_0 = arith.select %decoded_second1, %decoded_upper_1_1, %decoded_upper_1_0 : vector<32xi1>, vector<32xi8>
              %decoded_upper_2_1 = arith.select %decoded_second1, %decoded_upper_1_3, %decoded_upper_1_2 : vector<32xi1>, vector<32xi8>
              %decoded_chosen_by2 = arith.shli %decoded_codes, %to_sign2 : vector<32xi8>
              %decoded_second2 = arith.cmpi slt, %decoded_chosen_by2, %no_bytes : vector<32xi8>
              %decoded_lower_3_0 = arith.select %decoded_second2, %decoded_lower_2_1, %decoded_lower_2_0 : vector<32xi1>, vector<32xi8>
              %decoded_upper_3_0 = arith.select %decoded_second2, %decoded_upper_2_1, %decoded_upper_2_0 : vector<32xi1>, vector<32xi8>
              %decoded_sign = arith.andi %decoded_codes, %code_sign : vector<32xi8>
              %decoded_signed = arith.ori %decoded_upper_3_0, %decoded_sign : vector<32xi8>
              %decoded_is_nan = arith.cmpi eq, %decoded_codes, %code_sign : vector<32xi8>
              %decoded_lower_all = arith.select %decoded_is_nan, %nan_lower, %decoded_lower_3_0 : vector<32xi1>, vector<32xi8>
              %decoded_upper_all = arith.select %decoded_is_nan, %nan_upper, %decoded_signed : vector<32xi1>, vector<32xi8>
              %decoded_words0 = vector.shuffle %decoded_lower_all, %decoded_upper_all [0, 32, 1, 33, 2, 34, 3, 35, 4, 36, 5, 37, 6, 38, 7, 39] : vector<32xi8>, vector<32xi8>
              %decoded_zeros0 = arith.constant dense<0> : vector<16xi8>
              %decoded_bytes0 = vector.shuffle %decoded_words0, %decoded_zeros0 [16, 16, 0, 1, 16, 16, 2, 3, 16, 16, 4, 5, 16, 16, 6, 7, 16, 16, 8, 9, 16, 16, 10, 11, 16, 16, 12, 13, 16, 16, 14, 15] : vector<16xi8>, vector<16xi8>
              %decoded0 = vector.bitcast %decoded_bytes0 : vector<32xi8> to vector<8xf32>
              %decoded_words1 = vector.shuffle %decoded_lower_all, %decoded_upper_all [8, 40, 9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47] : vector<32xi8>, vector<32xi8>
              %decoded_zeros1 = arith.constant dense<0> : vector<16xi8>
              %decoded_bytes1 = vector.shuffle %decoded_words1, %decoded_zeros1 [16, 16, 0, 1, 16, 16, 2, 3, 16, 16, 4, 5, 16, 16, 6, 7, 16, 16, 8, 9, 16, 16, 10, 11, 16, 16, 12, 13, 16, 16, 14, 15] : vector<16xi8>, vector<16xi8>
              %decoded1 = vector.bitcast %decoded_bytes1 : vector<32xi8> to vector<8xf32>
              %decoded_words2 = vector.shuffle %decoded_lower_all, %decoded_upper_all [16, 48, 17, 49, 18, 50, 19, 51, 20, 52, 21, 53, 22, 54, 23, 55] : vector<32xi8>, vector<32xi8>
              %decoded_zeros2 = arith.constant dense<0> : vector<16xi8>
              %decoded_bytes2 = vector.shuffle %decoded_words2, %decoded_zeros2 [16, 16, 0, 1, 16, 16, 2, 3, 16, 16, 4, 5, 16, 16, 6, 7, 16, 16, 8, 9, 16, 16, 10, 11, 16, 16, 12, 13, 16, 16, 14, 15] : vector<16xi8>, vector<16xi8>
              %decoded2 = vector.bitcast %decoded_bytes2 : vector<32xi8> to vector<8xf32>
              %decoded_words3 = vector.shuffle %decoded_lower_all, %decoded_upper_all [24, 56, 25, 57, 26, 58, 27, 59, 28, 60, 29, 61, 30, 62, 31, 63] : vector<32xi8>, vector<32xi8>
              %decoded_zeros3 = arith.constant dense<0> : vector<16xi8>
              %decoded_bytes3 = vector.shuffle %decoded_words3, %decoded_zeros3 [16, 16, 0, 1, 16, 16, 2, 3, 16, 16, 4, 5, 16, 16, 6, 7, 16, 16, 8, 9, 16, 16, 10, 11, 16, 16, 12, 13, 16, 16, 14, 15] : vector<16xi8>, vector<16xi8>
              %decoded3 = vector.bitcast %decoded_bytes3 : vector<32xi8> to vector<8xf32>


            %offset0 = arith.constant 0 : index
            %d0 = arith.addi %d, %offset0 : index
          vector.store %decoded0, %keys[%k, %d0] : memref<258x528xf32>, vector<8xf32>

            %offset1 = arith.constant 8 : index
            %d1 = arith.addi %d, %offset1 : index
          vector.store %decoded1, %keys[%k, %d1] : memref<258x528xf32>, vector<8xf32>

            %offset2 = arith.constant 16 : index
            %d2 = arith.addi %d, %offset2 : index
          vector.store %decoded2, %keys[%k, %d2] : memref<258x528xf32>, vector<8xf32>

            %offset3 = arith.constant 24 : index
            %d3 = arith.addi %d, %offset3 : index
          vector.store %decoded3, %keys[%k, %d3] : memref<258x528xf32>, vector<8xf32>

          }

          } else {
          %line0 = arith.constant 0 : index
          memref.prefetch %ori_cache[%row_ahead, %line0], read, locality<3>, data : memref<?x512xi8>
          %line1 = arith.constant 64 : index
          memref.prefetch %ori_cache[%row_ahead, %line1], read, locality<3>, data : memref<?x512xi8>
          %line2 = arith.constant 128 : index
          memref.prefetch %ori_cache[%row_ahead, %line2], read, locality<3>, data : memref<?x512xi8>

          %quarter_start0 = arith.constant 0 : index
          %quarter_end0 = arith.constant 128 : index
          scf.for %d = %quarter_start0 to %quarter_end0 step %run {
              %decoded_codes = vector.load %ori_cache[%row, %d] : memref<?x512xi8>, vector<32xi8>
              %decoded_index = arith.andi %decoded_codes, %code_magnitude : vector<32xi8>
              %decoded_lower_0_0 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%lower_bytes0, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_lower_0_1 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%lower_bytes1, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_lower_0_2 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%lower_bytes2, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_lower_0_3 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%lower_bytes3, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_lower_0_4 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%lower_bytes4, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_lower_0_5 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%lower_bytes5, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_lower_0_6 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%lower_bytes6, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_lower_0_7 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%lower_bytes7, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_upper_0_0 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%upper_bytes0, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_upper_0_1 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%upper_bytes1, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_upper_0_2 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%upper_bytes2, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_upper_0_3 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%upper_bytes3, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_upper_0_4 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%upper_bytes4, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_upper_0_5 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%upper_bytes5, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_upper_0_6 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%upper_bytes6, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_upper_0_7 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%upper_bytes7, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_chosen_by0 = arith.shli %decoded_codes, %to_sign0 : vector<32xi8>
              %decoded_second0 = arith.cmpi slt, %decoded_chosen_by0, %no_bytes : vector<32xi8>
              %decoded_lower_1_0 = arith.select %decoded_second0, %decoded_lower_0_1, %decoded_lower_0_0 : vector<32xi1>, vector<32xi8>
              %decoded_lower_1_1 = arith.select %decoded_second0, %decoded_lower_0_3, %decoded_lower_0_2 : vector<32xi1>, vector<32xi8>
              %decoded_lower_1_2 = arith.select %decoded_second0, %decoded_lower_0_5, %decoded_lower_0_4 : vector<32xi1>, vector<32xi8>
              %decoded_lower_1_3 = arith.select %decoded_second0, %decoded_lower_0_7, %decoded_lower_0_6 : vector<32xi1>, vector<32xi8>
              %decoded_upper_1_0 = arith.select %decoded_second0, %decoded_upper_0_1, %decoded_upper_0_0 : vector<32xi1>, vector<32xi8>
              %decoded_upper_1_1 = arith.select %decoded_second0, %decoded_upper_0_3, %decoded_upper_0_2 : vector<32xi1>, vector<32xi8>
              %decoded_upper_1_2 = arith.select %decoded_second0, %decoded_upper_0_5, %decoded_upper_0_4 : vector<32xi1>, vector<32xi8>
              %decoded_upper_1_3 = arith.select %decoded_second0, %decoded_upper_0_7, %decoded_upper_0_6 : vector<32xi1>, vector<32xi8>
              %decoded_chosen_by1 = arith.shli %decoded_codes, %to_sign1 : vector<32xi8>
              %decoded_second1 = arith.cmpi slt, %decoded_chosen_by1, %no_bytes : vector<32xi8>
              %decoded_lower_2_0 = arith.select %decoded_second1, %decoded_lower_1_1, %decoded_lower_1_0 : vector<32xi1>, vector<32xi8>
              %decoded_lower_2_1 = arith.select %decoded_second1, %decoded_lower_1_3, %decoded_lower_1_2 : vector<32xi1>, vector<32xi8>
              %decoded_upper_2_0 = arith.select %decoded_second1, %decoded_upper_1_1, %decoded_upper_1_0 : vector<32xi1>, vector<32xi8>
              %decoded_upper_2_1 = arith.select %decoded_second1, %decoded_upper_1_3, %decoded_upper_1_2 : vector<32xi1>, vector<32xi8>
              %decoded_chosen_by2 = arith.shli %decoded_codes, %to_sign2 : vector<32xi8>
              %decoded_second2 = arith.cmpi slt, %decoded_chosen_by2, %no_bytes : vector<32xi8>
              %decoded_lower_3_0 = arith.select %decoded_second2, %decoded_lower_2_1, %decoded_lower_2_0 : vector<32xi1>, vector<32xi8>
              %decoded_upper_3_0 = arith.select %decoded_second2, %decoded_upper_2_1, %decoded_upper_2_0 : vector<32xi1>, vector<32xi8>
              %decoded_sign = arith.andi %decoded_codes, %code_sign : vector<32xi8>
              %decoded_signed = arith.ori %decoded_upper_3_0, %decoded_sign : vector<32xi8>
              %decoded_is_nan = arith.cmpi eq, %decoded_codes, %code_sign : vector<32xi8>
              %decoded_lower_all = arith.select %decoded_is_nan, %nan_lower, %decoded_lower_3_0 : vector<32xi1>, vector<32xi8>
              %decoded_upper_all = arith.select %decoded_is_nan, %nan_upper, %decoded_signed : vector<32xi1>, vector<32xi8>
              %decoded_words0 = vector.shuffle %decoded_lower_all, %decoded_upper_all [0, 32, 1, 33, 2, 34, 3, 35, 4, 36, 5, 37, 6, 38, 7, 39] : vector<32xi8>, vector<32xi8>
              %decoded_zeros0 = arith.constant dense<0> : vector<16xi8>
              %decoded_bytes0 = vector.shuffle %decoded_words0, %decoded_zeros0 [16, 16, 0, 1, 16, 16, 2, 3, 16, 16, 4, 5, 16, 16, 6, 7, 16, 16, 8, 9, 16, 16, 10, 11, 16, 16, 12, 13, 16, 16, 14, 15] : vector<16xi8>, vector<16xi8>
              %decoded0 = vector.bitcast %decoded_bytes0 : vector<32xi8> to vector<8xf32>
              %decoded_words1 = vector.shuffle %decoded_lower_all, %decoded_upper_all [8, 40, 9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47] : vector<32xi8>, vector<32xi8>
              %decoded_zeros1 = arith.constant dense<0> : vector<16xi8>
              %decoded_bytes1 = vector.shuffle %decoded_words1, %decoded_zeros1 [16, 16, 0, 1, 16, 16, 2, 3, 16, 16, 4, 5, 16, 16, 6, 7, 16, 16, 8, 9, 16, 16, 10, 11, 16, 16, 12, 13, 16, 16, 14, 15] : vector<16xi8>, vector<16xi8>
              %decoded1 = vector.bitcast %decoded_bytes1 : vector<32xi8> to vector<8xf32>
              %decoded_words2 = vector.shuffle %decoded_lower_all, %decoded_upper_all [16, 48, 17, 49, 18, 50, 19, 51, 20, 52, 21, 53, 22, 54, 23, 55] : vector<32xi8>, vector<32xi8>
              %decoded_zeros2 = arith.constant dense<0> : vector<16xi8>
              %decoded_bytes2 = vector.shuffle %decoded_words2, %decoded_zeros2 [16, 16, 0, 1, 16, 16, 2, 3, 16, 16, 4, 5, 16, 16, 6, 7, 16, 16, 8, 9, 16, 16, 10, 11, 16, 16, 12, 13, 16, 16, 14, 15] : vector<16xi8>, vector<16xi8>
              %decoded2 = vector.bitcast %decoded_bytes2 : vector<32xi8> to vector<8xf32>
              %decoded_words3 = vector.shuffle %decoded_lower_all, %decoded_upper_all [24, 56, 25, 57, 26, 58, 27, 59, 28, 60, 29, 61, 30, 62, 31, 63] : vector<32xi8>, vector<32xi8>
              %decoded_zeros3 = arith.constant dense<0> : vector<16xi8>
              %decoded_bytes3 = vector.shuffle %decoded_words3, %decoded_zeros3 [16, 16, 0, 1, 16, 16, 2, 3, 16, 16, 4, 5, 16, 16, 6, 7, 16, 16, 8, 9, 16, 16, 10, 11, 16, 16, 12, 13, 16, 16, 14, 15] : vector<16xi8>, vector<16xi8>
              %decoded3 = vector.bitcast %decoded_bytes3 : vector<32xi8> to vector<8xf32>


            %offset0 = arith.constant 0 : index
            %d0 = arith.addi %d, %offset0 : index
          vector.store %decoded0, %keys[%k, %d0] : memref<258x528xf32>, vector<8xf32>

            %offset1 = arith.constant 8 : index
            %d1 = arith.addi %d, %offset1 : index
          vector.store %decoded1, %keys[%k, %d1] : memref<258x528xf32>, vector<8xf32>

            %offset2 = arith.constant 16 : index
            %d2 = arith.addi %d, %offset2 : index
          vector.store %decoded2, %keys[%k, %d2] : memref<258x528xf32>, vector<8xf32>

            %offset3 = arith.constant 24 : index
            %d3 = arith.addi %d, %offset3 : index
          vector.store %decoded3, %keys[%k, %d3] : memref<258x528xf32>, vector<8xf32>

          }
          %line3 = arith.constant 192 : index
          memref.prefetch %ori_cache[%row_ahead, %line3], read, locality<3>, data : memref<?x512xi8>
          %line4 = arith.constant 256 : index
          memref.prefetch %ori_cache[%row_ahead, %line4], read, locality<3>, data : memref<?x512xi8>
          %line5 = arith.constant 320 : index
          memref.prefetch %ori_cache[%row_ahead, %line5], read, locality<3>, data : memref<?x512xi8>

          %quarter_start1 = arith.constant 128 : index
          %quarter_end1 = arith.constant 256 : index
          scf.for %d = %quarter_start1 to %quarter_end1 step %run {
              %decoded_codes = vector.load %ori_cache[%row, %d] : memref<?x512xi8>, vector<32xi8>
              %decoded_index = arith.andi %decoded_codes, %code_magnitude : vector<32xi8>
              %decoded_lower_0_0 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%lower_bytes0, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_lower_0_1 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%lower_bytes1, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_lower_0_2 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%lower_bytes2, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_lower_0_3 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%lower_bytes3, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_lower_0_4 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%lower_bytes4, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_lower_0_5 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%lower_bytes5, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_lower_0_6 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%lower_bytes6, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_lower_0_7 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%lower_bytes7, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_upper_0_0 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%upper_bytes0, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_upper_0_1 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%upper_bytes1, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_upper_0_2 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%upper_bytes2, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_upper_0_3 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%upper_bytes3, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_upper_0_4 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%upper_bytes4, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_upper_0_5 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%upper_bytes5, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_upper_0_6 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%upper_bytes6, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_upper_0_7 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%upper_bytes7, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_chosen_by0 = arith.shli %decoded_codes, %to_sign0 : vector<32xi8>
              %decoded_second0 = arith.cmpi slt, %decoded_chosen_by0, %no_bytes : vector<32xi8>
              %decoded_lower_1_0 = arith.select %decoded_second0, %decoded_lower_0_1, %decoded_lower_0_0 : vector<32xi1>, vector<32xi8>
              %decoded_lower_1_1 = arith.select %decoded_second0, %decoded_lower_0_3, %decoded_lower_0_2 : vector<32xi1>, vector<32xi8>
              %decoded_lower_1_2 = arith.select %decoded_second0, %decoded_lower_0_5, %decoded_lower_0_4 : vector<32xi1>, vector<32xi8>
              %decoded_lower_1_3 = arith.select %decoded_second0, %decoded_lower_0_7, %decoded_lower_0_6 : vector<32xi1>, vector<32xi8>
              %decoded_upper_1_0 = arith.select %decoded_second0, %decoded_upper_0_1, %decoded_upper_0_0 : vector<32xi1>, vector<32xi8>
              %decoded_upper_1_1 = arith.select %decoded_second0, %decoded_upper_0_3, %decoded_upper_0_2 : vector<32xi1>, vector<32xi8>
              %decoded_upper_1_2 = arith.select %decoded_second0, %decoded_upper_0_5, %decoded_upper_0_4 : vector<32xi1>, vector<32xi8>
              %decoded_upper_1_3 = arith.select %decoded_second0, %decoded_upper_0_7, %decoded_upper_0_6 : vector<32xi1>, vector<32xi8>
              %decoded_chosen_by1 = arith.shli %decoded_codes, %to_sign1 : vector<32xi8>
              %decoded_second1 = arith.cmpi slt, %decoded_chosen_by1, %no_bytes : vector<32xi8>
              %decoded_lower_2_0 = arith.select %decoded_second1, %decoded_lower_1_1, %decoded_lower_1_0 : vector<32xi1>, vector<32xi8>
              %decoded_lower_2_1 = arith.select %decoded_second1, %decoded_lower_1_3, %decoded_lower_1_2 : vector<32xi1>, vector<32xi8>
              %decoded_upper_2_0 = arith.select %decoded_second1, %decoded_upper_1_1, %decoded_upper_1_0 : vector<32xi1>, vector<32xi8>
              %decoded_upper_2_1 = arith.select %decoded_second1, %decoded_upper_1_3, %decoded_upper_1_2 : vector<32xi1>, vector<32xi8>
              %decoded_chosen_by2 = arith.shli %decoded_codes, %to_sign2 : vector<32xi8>
              %decoded_second2 = arith.cmpi slt, %decoded_chosen_by2, %no_bytes : vector<32xi8>
              %decoded_lower_3_0 = arith.select %decoded_second2, %decoded_lower_2_1, %decoded_lower_2_0 : vector<32xi1>, vector<32xi8>
              %decoded_upper_3_0 = arith.select %decoded_second2, %decoded_upper_2_1, %decoded_upper_2_0 : vector<32xi1>, vector<32xi8>
              %decoded_sign = arith.andi %decoded_codes, %code_sign : vector<32xi8>
              %decoded_signed = arith.ori %decoded_upper_3_0, %decoded_sign : vector<32xi8>
              %decoded_is_nan = arith.cmpi eq, %decoded_codes, %code_sign : vector<32xi8>
              %decoded_lower_all = arith.select %decoded_is_nan, %nan_lower, %decoded_lower_3_0 : vector<32xi1>, vector<32xi8>
              %decoded_upper_all = arith.select %decoded_is_nan, %nan_upper, %decoded_signed : vector<32xi1>, vector<32xi8>
              %decoded_words0 = vector.shuffle %decoded_lower_all, %decoded_upper_all [0, 32, 1, 33, 2, 34, 3, 35, 4, 36, 5, 37, 6, 38, 7, 39] : vector<32xi8>, vector<32xi8>
              %decoded_zeros0 = arith.constant dense<0> : vector<16xi8>
              %decoded_bytes0 = vector.shuffle %decoded_words0, %decoded_zeros0 [16, 16, 0, 1, 16, 16, 2, 3, 16, 16, 4, 5, 16, 16, 6, 7, 16, 16, 8, 9, 16, 16, 10, 11, 16, 16, 12, 13, 16, 16, 14, 15] : vector<16xi8>, vector<16xi8>
              %decoded0 = vector.bitcast %decoded_bytes0 : vector<32xi8> to vector<8xf32>
              %decoded_words1 = vector.shuffle %decoded_lower_all, %decoded_upper_all [8, 40, 9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47] : vector<32xi8>, vector<32xi8>
              %decoded_zeros1 = arith.constant dense<0> : vector<16xi8>
              %decoded_bytes1 = vector.shuffle %decoded_words1, %decoded_zeros1 [16, 16, 0, 1, 16, 16, 2, 3, 16, 16, 4, 5, 16, 16, 6, 7, 16, 16, 8, 9, 16, 16, 10, 11, 16, 16, 12, 13, 16, 16, 14, 15] : vector<16xi8>, vector<16xi8>
              %decoded1 = vector.bitcast %decoded_bytes1 : vector<32xi8> to vector<8xf32>
              %decoded_words2 = vector.shuffle %decoded_lower_all, %decoded_upper_all [16, 48, 17, 49, 18, 50, 19, 51, 20, 52, 21, 53, 22, 54, 23, 55] : vector<32xi8>, vector<32xi8>
              %decoded_zeros2 = arith.constant dense<0> : vector<16xi8>
              %decoded_bytes2 = vector.shuffle %decoded_words2, %decoded_zeros2 [16, 16, 0, 1, 16, 16, 2, 3, 16, 16, 4, 5, 16, 16, 6, 7, 16, 16, 8, 9, 16, 16, 10, 11, 16, 16, 12, 13, 16, 16, 14, 15] : vector<16xi8>, vector<16xi8>
              %decoded2 = vector.bitcast %decoded_bytes2 : vector<32xi8> to vector<8xf32>
              %decoded_words3 = vector.shuffle %decoded_lower_all, %decoded_upper_all [24, 56, 25, 57, 26, 58, 27, 59, 28, 60, 29, 61, 30, 62, 31, 63] : vector<32xi8>, vector<32xi8>
              %decoded_zeros3 = arith.constant dense<0> : vector<16xi8>
              %decoded_bytes3 = vector.shuffle %decoded_words3, %decoded_zeros3 [16, 16, 0, 1, 16, 16, 2, 3, 16, 16, 4, 5, 16, 16, 6, 7, 16, 16, 8, 9, 16, 16, 10, 11, 16, 16, 12, 13, 16, 16, 14, 15] : vector<16xi8>, vector<16xi8>
              %decoded3 = vector.bitcast %decoded_bytes3 : vector<32xi8> to vector<8xf32>


            %offset0 = arith.constant 0 : index
            %d0 = arith.addi %d, %offset0 : index
          vector.store %decoded0, %keys[%k, %d0] : memref<258x528xf32>, vector<8xf32>

            %offset1 = arith.constant 8 : index
            %d1 = arith.addi %d, %offset1 : index
          vector.store %decoded1, %keys[%k, %d1] : memref<258x528xf32>, vector<8xf32>

            %offset2 = arith.constant 16 : index
            %d2 = arith.addi %d, %offset2 : index
          vector.store %decoded2, %keys[%k, %d2] : memref<258x528xf32>, vector<8xf32>

            %offset3 = arith.constant 24 : index
            %d3 = arith.addi %d, %offset3 : index
          vector.store %decoded3, %keys[%k, %d3] : memref<258x528xf32>, vector<8xf32>

          }
          %line6 = arith.constant 384 : index
          memref.prefetch %ori_cache[%row_ahead, %line6], read, locality<3>, data : memref<?x512xi8>
          %line7 = arith.constant 448 : index
          memref.prefetch %ori_cache[%row_ahead, %line7], read, locality<3>, data : memref<?x512xi8>
          %line8 = arith.constant 511 : index
          memref.prefetch %ori_cache[%row_ahead, %line8], read, locality<3>, data : memref<?x512xi8>

          %quarter_start2 = arith.constant 256 : index
          %quarter_end2 = arith.constant 384 : index
          scf.for %d = %quarter_start2 to %quarter_end2 step %run {
              %decoded_codes = vector.load %ori_cache[%row, %d] : memref<?x512xi8>, vector<32xi8>
              %decoded_index = arith.andi %decoded_codes, %code_magnitude : vector<32xi8>
              %decoded_lower_0_0 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%lower_bytes0, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_lower_0_1 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%lower_bytes1, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_lower_0_2 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%lower_bytes2, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_lower_0_3 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%lower_bytes3, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_lower_0_4 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%lower_bytes4, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_lower_0_5 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%lower_bytes5, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_lower_0_6 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%lower_bytes6, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_lower_0_7 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%lower_bytes7, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_upper_0_0 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%upper_bytes0, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_upper_0_1 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%upper_bytes1, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_upper_0_2 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%upper_bytes2, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_upper_0_3 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%upper_bytes3, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_upper_0_4 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%upper_bytes4, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_upper_0_5 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%upper_bytes5, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_upper_0_6 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%upper_bytes6, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_upper_0_7 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%upper_bytes7, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_chosen_by0 = arith.shli %decoded_codes, %to_sign0 : vector<32xi8>
              %decoded_second0 = arith.cmpi slt, %decoded_chosen_by0, %no_bytes : vector<32xi8>
              %decoded_lower_1_0 = arith.select %decoded_second0, %decoded_lower_0_1, %decoded_lower_0_0 : vector<32xi1>, vector<32xi8>
              %decoded_lower_1_1 = arith.select %decoded_second0, %decoded_lower_0_3, %decoded_lower_0_2 : vector<32xi1>, vector<32xi8>
              %decoded_lower_1_2 = arith.select %decoded_second0, %decoded_lower_0_5, %decoded_lower_0_4 : vector<32xi1>, vector<32xi8>
              %decoded_lower_1_3 = arith.select %decoded_second0, %decoded_lower_0_7, %decoded_lower_0_6 : vector<32xi1>, vector<32xi8>
              %decoded_upper_1_0 = arith.select %decoded_second0, %decoded_upper_0_1, %decoded_upper_0_0 : vector<32xi1>, vector<32xi8>
              %decoded_upper_1_1 = arith.select %decoded_second0, %decoded_upper_0_3, %decoded_upper_0_2 : vector<32xi1>, vector<32xi8>
              %decoded_upper_1_2 = arith.select %decoded_second0, %decoded_upper_0_5, %decoded_upper_0_4 : vector<32xi1>, vector<32xi8>
              %decoded_upper_1_3 = arith.select %decoded_second0, %decoded_upper_0_7, %decoded_upper_0_6 : vector<32xi1>, vector<32xi8>
              %decoded_chosen_by1 = arith.shli %decoded_codes, %to_sign1 : vector<32xi8>
              %decoded_second1 = arith.cmpi slt, %decoded_chosen_by1, %no_bytes : vector<32xi8>
              %decoded_lower_2_0 = arith.select %decoded_second1, %decoded_lower_1_1, %decoded_lower_1_0 : vector<32xi1>, vector<32xi8>
              %decoded_lower_2_1 = arith.select %decoded_second1, %decoded_lower_1_3, %decoded_lower_1_2 : vector<32xi1>, vector<32xi8>
              %decoded_upper_2_0 = arith.select %decoded_second1, %decoded_upper_1_1, %decoded_upper_1_0 : vector<32xi1>, vector<32xi8>
              %decoded_upper_2_1 = arith.select %decoded_second1, %decoded_upper_1_3, %decoded_upper_1_2 : vector<32xi1>, vector<32xi8>
              %decoded_chosen_by2 = arith.shli %decoded_codes, %to_sign2 : vector<32xi8>
              %decoded_second2 = arith.cmpi slt, %decoded_chosen_by2, %no_bytes : vector<32xi8>
              %decoded_lower_3_0 = arith.select %decoded_second2, %decoded_lower_2_1, %decoded_lower_2_0 : vector<32xi1>, vector<32xi8>
              %decoded_upper_3_0 = arith.select %decoded_second2, %decoded_upper_2_1, %decoded_upper_2_0 : vector<32xi1>, vector<32xi8>
              %decoded_sign = arith.andi %decoded_codes, %code_sign : vector<32xi8>
              %decoded_signed = arith.ori %decoded_upper_3_0, %decoded_sign : vector<32xi8>
              %decoded_is_nan = arith.cmpi eq, %decoded_codes, %code_sign : vector<32xi8>
              %decoded_lower_all = arith.select %decoded_is_nan, %nan_lower, %decoded_lower_3_0 : vector<32xi1>, vector<32xi8>
              %decoded_upper_all = arith.select %decoded_is_nan, %nan_upper, %decoded_signed : vector<32xi1>, vector<32xi8>
              %decoded_words0 = vector.shuffle %decoded_lower_all, %decoded_upper_all [0, 32, 1, 33, 2, 34, 3, 35, 4, 36, 5, 37, 6, 38, 7, 39] : vector<32xi8>, vector<32xi8>
              %decoded_zeros0 = arith.constant dense<0> : vector<16xi8>
              %decoded_bytes0 = vector.shuffle %decoded_words0, %decoded_zeros0 [16, 16, 0, 1, 16, 16, 2, 3, 16, 16, 4, 5, 16, 16, 6, 7, 16, 16, 8, 9, 16, 16, 10, 11, 16, 16, 12, 13, 16, 16, 14, 15] : vector<16xi8>, vector<16xi8>
              %decoded0 = vector.bitcast %decoded_bytes0 : vector<32xi8> to vector<8xf32>
              %decoded_words1 = vector.shuffle %decoded_lower_all, %decoded_upper_all [8, 40, 9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47] : vector<32xi8>, vector<32xi8>
              %decoded_zeros1 = arith.constant dense<0> : vector<16xi8>
              %decoded_bytes1 = vector.shuffle %decoded_words1, %decoded_zeros1 [16, 16, 0, 1, 16, 16, 2, 3, 16, 16, 4, 5, 16, 16, 6, 7, 16, 16, 8, 9, 16, 16, 10, 11, 16, 16, 12, 13, 16, 16, 14, 15] : vector<16xi8>, vector<16xi8>
              %decoded1 = vector.bitcast %decoded_bytes1 : vector<32xi8> to vector<8xf32>
              %decoded_words2 = vector.shuffle %decoded_lower_all, %decoded_upper_all [16, 48, 17, 49, 18, 50, 19, 51, 20, 52, 21, 53, 22, 54, 23, 55] : vector<32xi8>, vector<32xi8>
              %decoded_zeros2 = arith.constant dense<0> : vector<16xi8>
              %decoded_bytes2 = vector.shuffle %decoded_words2, %decoded_zeros2 [16, 16, 0, 1, 16, 16, 2, 3, 16, 16, 4, 5, 16, 16, 6, 7, 16, 16, 8, 9, 16, 16, 10, 11, 16, 16, 12, 13, 16, 16, 14, 15] : vector<16xi8>, vector<16xi8>
              %decoded2 = vector.bitcast %decoded_bytes2 : vector<32xi8> to vector<8xf32>
              %decoded_words3 = vector.shuffle %decoded_lower_all, %decoded_upper_all [24, 56, 25, 57, 26, 58, 27, 59, 28, 60, 29, 61, 30, 62, 31, 63] : vector<32xi8>, vector<32xi8>
              %decoded_zeros3 = arith.constant dense<0> : vector<16xi8>
              %decoded_bytes3 = vector.shuffle %decoded_words3, %decoded_zeros3 [16, 16, 0, 1, 16, 16, 2, 3, 16, 16, 4, 5, 16, 16, 6, 7, 16, 16, 8, 9, 16, 16, 10, 11, 16, 16, 12, 13, 16, 16, 14, 15] : vector<16xi8>, vector<16xi8>
              %decoded3 = vector.bitcast %decoded_bytes3 : vector<32xi8> to vector<8xf32>


            %offset0 = arith.constant 0 : index
            %d0 = arith.addi %d, %offset0 : index
          vector.store %decoded0, %keys[%k, %d0] : memref<258x528xf32>, vector<8xf32>

            %offset1 = arith.constant 8 : index
            %d1 = arith.addi %d, %offset1 : index
          vector.store %decoded1, %keys[%k, %d1] : memref<258x528xf32>, vector<8xf32>

            %offset2 = arith.constant 16 : index
            %d2 = arith.addi %d, %offset2 : index
          vector.store %decoded2, %keys[%k, %d2] : memref<258x528xf32>, vector<8xf32>

            %offset3 = arith.constant 24 : index
            %d3 = arith.addi %d, %offset3 : index
          vector.store %decoded3, %keys[%k, %d3] : memref<258x528xf32>, vector<8xf32>

          }

          %quarter_start3 = arith.constant 384 : index
          %quarter_end3 = arith.constant 512 : index
          scf.for %d = %quarter_start3 to %quarter_end3 step %run {
              %decoded_codes = vector.load %ori_cache[%row, %d] : memref<?x512xi8>, vector<32xi8>
              %decoded_index = arith.andi %decoded_codes, %code_magnitude : vector<32xi8>
              %decoded_lower_0_0 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%lower_bytes0, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_lower_0_1 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%lower_bytes1, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_lower_0_2 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%lower_bytes2, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_lower_0_3 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%lower_bytes3, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_lower_0_4 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%lower_bytes4, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_lower_0_5 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%lower_bytes5, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_lower_0_6 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%lower_bytes6, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_lower_0_7 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%lower_bytes7, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_upper_0_0 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%upper_bytes0, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_upper_0_1 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%upper_bytes1, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_upper_0_2 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%upper_bytes2, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_upper_0_3 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%upper_bytes3, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_upper_0_4 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%upper_bytes4, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_upper_0_5 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%upper_bytes5, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_upper_0_6 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%upper_bytes6, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_upper_0_7 = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%upper_bytes7, %decoded_index) : (vector<32xi8>, vector<32xi8>) -> vector<32xi8>
              %decoded_chosen_by0 = arith.shli %decoded_codes, %to_sign0 : vector<32xi8>
              %decoded_second0 = arith.cmpi slt, %decoded_chosen_by0, %no_bytes : vector<32xi8>
              %decoded_lower_1_0 = arith.select %decoded_second0, %decoded_lower_0_1, %decoded_lower_0_0 : vector<32xi1>, vector<32xi8>
              %decoded_lower_1_1 = arith.select %decoded_second0, %decoded_lower_0_3, %decoded_lower_0_2 : vector<32xi1>, vector<32xi8>
              %decoded_lower_1_2 = arith.select %decoded_second0, %decoded_lower_0_5, %decoded_lower_0_4 : vector<32xi1>, vector<32xi8>
              %decoded_lower_1_3 = arith.select %decoded_second0, %decoded_lower_0_7, %decoded_lower_0_6 : vector<32xi1>, vector<32xi8>
              %decoded_upper_1_0 = arith.select %decoded_second0, %decoded_upper_0_1, %decoded_upper_0_0 : vector<32xi1>, vector<32xi8>
              %decoded_upper_1_1 = arith.select %decoded_second0, %decoded_upper_0_3, %decoded_upper_0_2 : vector<32xi1>, vector<32xi8>
              %decoded_upper_1_2 = arith.select %decoded_second0, %decoded_upper_0_5, %decoded_upper_0_4 : vector<32xi1>, vector<32xi8>
              %decoded_upper_1_3 = arith.select %decoded_second0, %decoded_upper_0_7, %decoded_upper_0_6 : vector<32xi1>, vector<32xi8>
              %decoded_chosen_by1 = arith.shli %decoded_codes, %to_sign1 : vector<32xi8>
              %decoded_second1 = arith.cmpi slt, %decoded_chosen_by1, %no_bytes : vector<32xi8>
              %decoded_lower_2_0 = arith.select %decoded_second1, %decoded_lower_1_1, %decoded_lower_1_0 : vector<32xi1>, vector<32xi8>
              %decoded_lower_2_1 = arith.select %decoded_second1, %decoded_lower_1_3, %decoded_lower_1_2 : vector<32xi1>, vector<32xi8>
              %decoded_upper_2_0 = arith.select %decoded_second1, %decoded_upper_1_1, %decoded_upper_1_0 : vector<32xi1>, vector<32xi8>
              %decoded_upper_2_1 = arith.select %decoded_second1, %decoded_upper_1_3, %decoded_upper_1_2 : vector<32xi1>, vector<32xi8>
              %decoded_chosen_by2 = arith.shli %decoded_codes, %to_sign2 : vector<32xi8>
              %decoded_second2 = arith.cmpi slt, %decoded_chosen_by2, %no_bytes : vector<32xi8>
              %decoded_lower_3_0 = arith.select %decoded_second2, %decoded_lower_2_1, %decoded_lower_2_0 : vector<32xi1>, vector<32xi8>
              %decoded_upper_3_0 = arith.select %decoded_second2, %decoded_upper_2_1, %decoded_upper_2_0 : vector<32xi1>, vector<32xi8>
              %decoded_sign = arith.andi %decoded_codes, %code_sign : vector<32xi8>
              %decoded_signed = arith.ori %decoded_upper_3_0, %decoded_sign : vector<32xi8>
              %decoded_is_nan = arith.cmpi eq, %decoded_codes, %code_sign : vector<32xi8>
              %decoded_lower_all = arith.select %decoded_is_nan, %nan_lower, %decoded_lower_3_0 : vector<32xi1>, vector<32xi8>
              %decoded_upper_all = arith.select %decoded_is_nan, %nan_upper, %decoded_signed : vector<32xi1>, vector<32xi8>
              %decoded_words0 = vector.shuffle %decoded_lower_all, %decoded_upper_all [0, 32, 1, 33, 2, 34, 3, 35, 4, 36, 5, 37, 6, 38, 7, 39] : vector<32xi8>, vector<32xi8>
              %decoded_zeros0 = arith.constant dense<0> : vector<16xi8>
              %decoded_bytes0 = vector.shuffle %decoded_words0, %decoded_zeros0 [16, 16, 0, 1, 16, 16, 2, 3, 16, 16, 4, 5, 16, 16, 6, 7, 16, 16, 8, 9, 16, 16, 10, 11, 16, 16, 12, 13, 16, 16, 14, 15] : vector<16xi8>, vector<16xi8>
              %decoded0 = vector.bitcast %decoded_bytes0 : vector<32xi8> to vector<8xf32>
              %decoded_words1 = vector.shuffle %decoded_lower_all, %decoded_upper_all [8, 40, 9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47] : vector<32xi8>, vector<32xi8>
              %decoded_zeros1 = arith.constant dense<0> : vector<16xi8>
              %decoded_bytes1 = vector.shuffle %decoded_words1, %decoded_zeros1 [16, 16, 0, 1, 16, 16, 2, 3, 16, 16, 4, 5, 16, 16, 6, 7, 16, 16, 8, 9, 16, 16, 10, 11, 16, 16, 12, 13, 16, 16, 14, 15] : vector<16xi8>, vector<16xi8>
              %decoded1 = vector.bitcast %decoded_bytes1 : vector<32xi8> to vector<8xf32>
              %decoded_words2 = vector.shuffle %decoded_lower_all, %decoded_upper_all [16, 48, 17, 49, 18, 50, 19, 51, 20, 52, 21, 53, 22, 54, 23, 55] : vector<32xi8>, vector<32xi8>
              %decoded_zeros2 = arith.constant dense<0> : vector<16xi8>
              %decoded_bytes2 = vector.shuffle %decoded_words2, %decoded_zeros2 [16, 16, 0, 1, 16, 16, 2, 3, 16, 16, 4, 5, 16, 16, 6, 7, 16, 16, 8, 9, 16, 16, 10, 11, 16, 16, 12, 13, 16, 16, 14, 15] : vector<16xi8>, vector<16xi8>
              %decoded2 = vector.bitcast %decoded_bytes2 : vector<32xi8> to vector<8xf32>
              %decoded_words3 = vector.shuffle %decoded_lower_all, %decoded_upper_all [24, 56, 25, 57, 26, 58, 27, 59, 28, 60, 29, 61, 30, 62, 31, 63] : vector<32xi8>, vector<32xi8>
              %decoded_zeros3 = arith.constant dense<0> : vector<16xi8>
              %decoded_bytes3 = vector.shuffle %decoded_words3, %decoded_zeros3 [16, 16, 0, 1, 16, 16, 2, 3, 16, 16, 4, 5, 16, 16, 6, 7, 16, 16, 8, 9, 16, 16, 10, 11, 16, 16, 12, 13, 16, 16, 14, 15] : vector<16xi8>, vector<16xi8>
              %decoded3 = vector.bitcast %decoded_bytes3 : vector<32xi8> to vector<8xf32>


            %offset0 = arith.constant 0 : index
            %d0 = arith.addi %d, %offset0 : index
          vector.store %decoded0, %keys[%k, %d0] : memref<258x528xf32>, vector<8xf32>

            %offset1 = arith.constant 8 : index
            %d1 = arith.addi %d, %offset1 : index
          vector.store %decoded1, %keys[%k, %d1] : memref<258x528xf32>, vector<8xf32>

            %offset2 = arith.constant 16 : index
            %d2 = arith.addi %d, %offset2 : index
          vector.store %decoded2, %keys[%k, %d2] : memref<258x528xf32>, vector<8xf32>

            %offset3 = arith.constant 24 : index
            %d3 = arith.addi %d, %offset3 : index
          vector.store %decoded3, %keys[%k, %d3] : memref<258x528xf32>, vector<8xf32>

          }

          }

        } else {
          scf.for %column = %c0 to %columns step %lanes {
            vector.store %no_elements, %keys[%k, %column] : memref<258x528xf32>, vector<8xf32>
          }
        }
      }

        scf.for %g = %c0 to %groups step %c1 {
          %group_start = arith.muli %g, %group : index
          %first_head = arith.minui %group_start, %last_group : index

          // Scores: 6 keys x 16 heads in registers, summed column by column.
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
            %dots:12 = scf.for %d = %c0 to %columns step %c1
                iter_args(%sum0 = %zeros, %sum1 = %zeros, %sum2 = %zeros, %sum3 = %zeros, %sum4 = %zeros, %sum5 = %zeros, %sum6 = %zeros, %sum7 = %zeros, %sum8 = %zeros, %sum9 = %zeros, %sum10 = %zeros, %sum11 = %zeros) -> (vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>) {
              %lanes0 = arith.constant 0 : index
              %q0 = vector.load %packed[%g, %d, %lanes0] : memref<2x512x16xf32>, vector<8xf32>
              %lanes1 = arith.constant 8 : index
              %q1 = vector.load %packed[%g, %d, %lanes1] : memref<2x512x16xf32>, vector<8xf32>
              %key0 = memref.load %keys[%k0, %d] : memref<258x528xf32>
              %key_lanes0 = vector.broadcast %key0 : f32 to vector<8xf32>
            %next0 = math.fma %q0, %key_lanes0, %sum0 : vector<8xf32>

            %next1 = math.fma %q1, %key_lanes0, %sum1 : vector<8xf32>

              %key1 = memref.load %keys[%k1, %d] : memref<258x528xf32>
              %key_lanes1 = vector.broadcast %key1 : f32 to vector<8xf32>
            %next2 = math.fma %q0, %key_lanes1, %sum2 : vector<8xf32>

            %next3 = math.fma %q1, %key_lanes1, %sum3 : vector<8xf32>

              %key2 = memref.load %keys[%k2, %d] : memref<258x528xf32>
              %key_lanes2 = vector.broadcast %key2 : f32 to vector<8xf32>
            %next4 = math.fma %q0, %key_lanes2, %sum4 : vector<8xf32>

            %next5 = math.fma %q1, %key_lanes2, %sum5 : vector<8xf32>

              %key3 = memref.load %keys[%k3, %d] : memref<258x528xf32>
              %key_lanes3 = vector.broadcast %key3 : f32 to vector<8xf32>
            %next6 = math.fma %q0, %key_lanes3, %sum6 : vector<8xf32>

            %next7 = math.fma %q1, %key_lanes3, %sum7 : vector<8xf32>

              %key4 = memref.load %keys[%k4, %d] : memref<258x528xf32>
              %key_lanes4 = vector.broadcast %key4 : f32 to vector<8xf32>
            %next8 = math.fma %q0, %key_lanes4, %sum8 : vector<8xf32>

            %next9 = math.fma %q1, %key_lanes4, %sum9 : vector<8xf32>

              %key5 = memref.load %keys[%k5, %d] : memref<258x528xf32>
              %key_lanes5 = vector.broadcast %key5 : f32 to vector<8xf32>
            %next10 = math.fma %q0, %key_lanes5, %sum10 : vector<8xf32>

            %next11 = math.fma %q1, %key_lanes5, %sum11 : vector<8xf32>

              scf.yield %next0, %next1, %next2, %next3, %next4, %next5, %next6, %next7, %next8, %next9, %next10, %next11 : vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>
            }
            %place_in_block0 = arith.addi %pass_start, %k0 : index
            %in_block0 = arith.cmpi ult, %place_in_block0, %key_block : index
            %slot_place0 = arith.select %in_block0, %place_in_block0, %c0 : index
            %slot0 = memref.load %slots[%item, %slot_place0] : memref<?x256xi32>
            %is_key0 = arith.cmpi sge, %slot0, %zero_i32 : i32
            %attended0 = arith.andi %in_block0, %is_key0 : i1
            %scaled0_0 = arith.mulf %dots#0, %score_factor_lanes : vector<8xf32>
            %score0_0 = arith.select %attended0, %scaled0_0, %minus_infinities : vector<8xf32>
            %score_lanes0_0 = arith.constant 0 : index
            vector.store %score0_0, %scores[%k0, %score_lanes0_0] : memref<258x16xf32>, vector<8xf32>
            %scaled0_1 = arith.mulf %dots#1, %score_factor_lanes : vector<8xf32>
            %score0_1 = arith.select %attended0, %scaled0_1, %minus_infinities : vector<8xf32>
            %score_lanes0_1 = arith.constant 8 : index
            vector.store %score0_1, %scores[%k0, %score_lanes0_1] : memref<258x16xf32>, vector<8xf32>
            %place_in_block1 = arith.addi %pass_start, %k1 : index
            %in_block1 = arith.cmpi ult, %place_in_block1, %key_block : index
            %slot_place1 = arith.select %in_block1, %place_in_block1, %c0 : index
            %slot1 = memref.load %slots[%item, %slot_place1] : memref<?x256xi32>
            %is_key1 = arith.cmpi sge, %slot1, %zero_i32 : i32
            %attended1 = arith.andi %in_block1, %is_key1 : i1
            %scaled1_0 = arith.mulf %dots#2, %score_factor_lanes : vector<8xf32>
            %score1_0 = arith.select %attended1, %scaled1_0, %minus_infinities : vector<8xf32>
            %score_lanes1_0 = arith.constant 0 : index
            vector.store %score1_0, %scores[%k1, %score_lanes1_0] : memref<258x16xf32>, vector<8xf32>
            %scaled1_1 = arith.mulf %dots#3, %score_factor_lanes : vector<8xf32>
            %score1_1 = arith.select %attended1, %scaled1_1, %minus_infinities : vector<8xf32>
            %score_lanes1_1 = arith.constant 8 : index
            vector.store %score1_1, %scores[%k1, %score_lanes1_1] : memref<258x16xf32>, vector<8xf32>
            %place_in_block2 = arith.addi %pass_start, %k2 : index
            %in_block2 = arith.cmpi ult, %place_in_block2, %key_block : index
            %slot_place2 = arith.select %in_block2, %place_in_block2, %c0 : index
            %slot2 = memref.load %slots[%item, %slot_place2] : memref<?x256xi32>
            %is_key2 = arith.cmpi sge, %slot2, %zero_i32 : i32
            %attended2 = arith.andi %in_block2, %is_key2 : i1
            %scaled2_0 = arith.mulf %dots#4, %score_factor_lanes : vector<8xf32>
            %score2_0 = arith.select %attended2, %scaled2_0, %minus_infinities : vector<8xf32>
            %score_lanes2_0 = arith.constant 0 : index
            vector.store %score2_0, %scores[%k2, %score_lanes2_0] : memref<258x16xf32>, vector<8xf32>
            %scaled2_1 = arith.mulf %dots#5, %score_factor_lanes : vector<8xf32>
            %score2_1 = arith.select %attended2, %scaled2_1, %minus_infinities : vector<8xf32>
            %score_lanes2_1 = arith.constant 8 : index
            vector.store %score2_1, %scores[%k2, %score_lanes2_1] : memref<258x16xf32>, vector<8xf32>
            %place_in_block3 = arith.addi %pass_start, %k3 : index
            %in_block3 = arith.cmpi ult, %place_in_block3, %key_block : index
            %slot_place3 = arith.select %in_block3, %place_in_block3, %c0 : index
            %slot3 = memref.load %slots[%item, %slot_place3] : memref<?x256xi32>
            %is_key3 = arith.cmpi sge, %slot3, %zero_i32 : i32
            %attended3 = arith.andi %in_block3, %is_key3 : i1
            %scaled3_0 = arith.mulf %dots#6, %score_factor_lanes : vector<8xf32>
            %score3_0 = arith.select %attended3, %scaled3_0, %minus_infinities : vector<8xf32>
            %score_lanes3_0 = arith.constant 0 : index
            vector.store %score3_0, %scores[%k3, %score_lanes3_0] : memref<258x16xf32>, vector<8xf32>
            %scaled3_1 = arith.mulf %dots#7, %score_factor_lanes : vector<8xf32>
            %score3_1 = arith.select %attended3, %scaled3_1, %minus_infinities : vector<8xf32>
            %score_lanes3_1 = arith.constant 8 : index
            vector.store %score3_1, %scores[%k3, %score_lanes3_1] : memref<258x16xf32>, vector<8xf32>
            %place_in_block4 = arith.addi %pass_start, %k4 : index
            %in_block4 = arith.cmpi ult, %place_in_block4, %key_block : index
            %slot_place4 = arith.select %in_block4, %place_in_block4, %c0 : index
            %slot4 = memref.load %slots[%item, %slot_place4] : memref<?x256xi32>
            %is_key4 = arith.cmpi sge, %slot4, %zero_i32 : i32
            %attended4 = arith.andi %in_block4, %is_key4 : i1
            %scaled4_0 = arith.mulf %dots#8, %score_factor_lanes : vector<8xf32>
            %score4_0 = arith.select %attended4, %scaled4_0, %minus_infinities : vector<8xf32>
            %score_lanes4_0 = arith.constant 0 : index
            vector.store %score4_0, %scores[%k4, %score_lanes4_0] : memref<258x16xf32>, vector<8xf32>
            %scaled4_1 = arith.mulf %dots#9, %score_factor_lanes : vector<8xf32>
            %score4_1 = arith.select %attended4, %scaled4_1, %minus_infinities : vector<8xf32>
            %score_lanes4_1 = arith.constant 8 : index
            vector.store %score4_1, %scores[%k4, %score_lanes4_1] : memref<258x16xf32>, vector<8xf32>
            %place_in_block5 = arith.addi %pass_start, %k5 : index
            %in_block5 = arith.cmpi ult, %place_in_block5, %key_block : index
            %slot_place5 = arith.select %in_block5, %place_in_block5, %c0 : index
            %slot5 = memref.load %slots[%item, %slot_place5] : memref<?x256xi32>
            %is_key5 = arith.cmpi sge, %slot5, %zero_i32 : i32
            %attended5 = arith.andi %in_block5, %is_key5 : i1
            %scaled5_0 = arith.mulf %dots#10, %score_factor_lanes : vector<8xf32>
            %score5_0 = arith.select %attended5, %scaled5_0, %minus_infinities : vector<8xf32>
            %score_lanes5_0 = arith.constant 0 : index
            vector.store %score5_0, %scores[%k5, %score_lanes5_0] : memref<258x16xf32>, vector<8xf32>
            %scaled5_1 = arith.mulf %dots#11, %score_factor_lanes : vector<8xf32>
            %score5_1 = arith.select %attended5, %scaled5_1, %minus_infinities : vector<8xf32>
            %score_lanes5_1 = arith.constant 8 : index
            vector.store %score5_1, %scores[%k5, %score_lanes5_1] : memref<258x16xf32>, vector<8xf32>
          }

          // Softmax over the pass; the weights are rounded, their sum is of the float32 ones.
          scf.for %v = %c0 to %group step %lanes {
            %head = arith.addi %first_head, %v : index
            %maximum = scf.for %k = %c0 to %key_end step %c1 iter_args(%so_far = %minus_infinities) -> (vector<8xf32>) {
              %score = vector.load %scores[%k, %v] : memref<258x16xf32>, vector<8xf32>
              %larger = arith.maximumf %so_far, %score : vector<8xf32>
              scf.yield %larger : vector<8xf32>
            }
          %reference_magnitude = math.absf %maximum : vector<8xf32>
          %reference_is_infinite = arith.cmpf oeq, %reference_magnitude, %infinities : vector<8xf32>
          %reference = arith.select %reference_is_infinite, %zeros, %maximum : vector<8xi1>, vector<8xf32>
            %total = scf.for %k = %c0 to %key_end step %c1 iter_args(%so_far0 = %zeros) -> (vector<8xf32>) {
              %k0 = arith.addi %k, %c0 : index
              %score0 = vector.load %scores[%k0, %v] : memref<258x16xf32>, vector<8xf32>
              %below0 = arith.subf %score0, %reference : vector<8xf32>
          %weight0_above = arith.maximumf %below0, %least_power : vector<8xf32>
          %weight0_inside = arith.minimumf %weight0_above, %largest_power : vector<8xf32>
          %weight0_shifted = arith.addf %weight0_inside, %rounder : vector<8xf32>
          %weight0_whole = arith.subf %weight0_shifted, %rounder : vector<8xf32>
          %weight0_rest = arith.subf %weight0_inside, %weight0_whole : vector<8xf32>
          %weight0_5 = math.fma %exp2_6, %weight0_rest, %exp2_5 : vector<8xf32>
          %weight0_4 = math.fma %weight0_5, %weight0_rest, %exp2_4 : vector<8xf32>
          %weight0_3 = math.fma %weight0_4, %weight0_rest, %exp2_3 : vector<8xf32>
          %weight0_2 = math.fma %weight0_3, %weight0_rest, %exp2_2 : vector<8xf32>
          %weight0_1 = math.fma %weight0_2, %weight0_rest, %exp2_1 : vector<8xf32>
          %weight0_0 = math.fma %weight0_1, %weight0_rest, %exp2_0 : vector<8xf32>
          %weight0_whole_bits = vector.bitcast %weight0_shifted : vector<8xf32> to vector<8xi32>
          %weight0_exponent = arith.shli %weight0_whole_bits, %mantissa_bits : vector<8xi32>
          %weight0_bits = vector.bitcast %weight0_0 : vector<8xf32> to vector<8xi32>
          %weight0_scaled_bits = arith.addi %weight0_bits, %weight0_exponent : vector<8xi32>
          %weight0_power = vector.bitcast %weight0_scaled_bits : vector<8xi32> to vector<8xf32>
          %weight0_is_small = arith.cmpf olt, %below0, %least_power : vector<8xf32>
          %weight0_or_zero = arith.select %weight0_is_small, %zeros, %weight0_power : vector<8xi1>, vector<8xf32>
          %weight0_is_large = arith.cmpf ogt, %below0, %largest_power : vector<8xf32>
          %weight0_or_infinity = arith.select %weight0_is_large, %infinities, %weight0_or_zero : vector<8xi1>, vector<8xf32>
          %weight0_is_nan = arith.cmpf uno, %below0, %below0 : vector<8xf32>
          %weight0 = arith.select %weight0_is_nan, %below0, %weight0_or_infinity : vector<8xi1>, vector<8xf32>
              %so_far1 = arith.addf %so_far0, %weight0 : vector<8xf32>
          %weight_rounded_rounding_bits = vector.bitcast %weight0 : vector<8xf32> to vector<8xi32>
          %weight_rounded_rounding_upper = arith.shrui %weight_rounded_rounding_bits, %sixteens : vector<8xi32>
          %weight_rounded_rounding_odd = arith.andi %weight_rounded_rounding_upper, %ones_i32 : vector<8xi32>
          %weight_rounded_rounding_bias = arith.addi %weight_rounded_rounding_odd, %half_of_bfloat16 : vector<8xi32>
          %weight_rounded_rounding_carried = arith.addi %weight_rounded_rounding_bits, %weight_rounded_rounding_bias : vector<8xi32>
          %weight_rounded_rounding_is_nan = arith.cmpf uno, %weight0, %weight0 : vector<8xf32>
          %weight_rounded_rounding = arith.select %weight_rounded_rounding_is_nan, %weight_rounded_rounding_bits, %weight_rounded_rounding_carried : vector<8xi1>, vector<8xi32>

          %weight_rounded_masked = arith.andi %weight_rounded_rounding, %upper_half : vector<8xi32>
          %weight_rounded = vector.bitcast %weight_rounded_masked : vector<8xi32> to vector<8xf32>

              vector.store %weight_rounded, %scores[%k, %v] : memref<258x16xf32>, vector<8xf32>
              scf.yield %so_far1 : vector<8xf32>
            }
            vector.store %maximum, %maxima[%item, %head] : memref<?x21xf32>, vector<8xf32>
            vector.store %total, %totals[%item, %head] : memref<?x21xf32>, vector<8xf32>
          }

          // Values: some heads x 2 vectors of columns in registers, summed key by key; a panel of columns serves the
          // whole group.
          %panel = arith.constant 16 : index
          %terms = arith.divui %key_end, %c1 : index
          scf.for %d0 = %c0 to %nope step %panel {
            %columns1 = arith.constant 8 : index
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
            %sums0:12 = scf.for %k = %c0 to %terms step %c1
                iter_args(%sum0 = %zeros, %sum1 = %zeros, %sum2 = %zeros, %sum3 = %zeros, %sum4 = %zeros, %sum5 = %zeros, %sum6 = %zeros, %sum7 = %zeros, %sum8 = %zeros, %sum9 = %zeros, %sum10 = %zeros, %sum11 = %zeros) -> (vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>) {
              %value0 = vector.load %keys[%k, %d0] : memref<258x528xf32>, vector<8xf32>
              %value1 = vector.load %keys[%k, %d1] : memref<258x528xf32>, vector<8xf32>
              %weight0 = memref.load %scores[%k, %h0] : memref<258x16xf32>
              %weight_lanes0 = vector.broadcast %weight0 : f32 to vector<8xf32>
            %next0 = math.fma %value0, %weight_lanes0, %sum0 : vector<8xf32>

            %next1 = math.fma %value1, %weight_lanes0, %sum1 : vector<8xf32>

              %weight1 = memref.load %scores[%k, %h1] : memref<258x16xf32>
              %weight_lanes1 = vector.broadcast %weight1 : f32 to vector<8xf32>
            %next2 = math.fma %value0, %weight_lanes1, %sum2 : vector<8xf32>

            %next3 = math.fma %value1, %weight_lanes1, %sum3 : vector<8xf32>

              %weight2 = memref.load %scores[%k, %h2] : memref<258x16xf32>
              %weight_lanes2 = vector.broadcast %weight2 : f32 to vector<8xf32>
            %next4 = math.fma %value0, %weight_lanes2, %sum4 : vector<8xf32>

            %next5 = math.fma %value1, %weight_lanes2, %sum5 : vector<8xf32>

              %weight3 = memref.load %scores[%k, %h3] : memref<258x16xf32>
              %weight_lanes3 = vector.broadcast %weight3 : f32 to vector<8xf32>
            %next6 = math.fma %value0, %weight_lanes3, %sum6 : vector<8xf32>

            %next7 = math.fma %value1, %weight_lanes3, %sum7 : vector<8xf32>

              %weight4 = memref.load %scores[%k, %h4] : memref<258x16xf32>
              %weight_lanes4 = vector.broadcast %weight4 : f32 to vector<8xf32>
            %next8 = math.fma %value0, %weight_lanes4, %sum8 : vector<8xf32>

            %next9 = math.fma %value1, %weight_lanes4, %sum9 : vector<8xf32>

              %weight5 = memref.load %scores[%k, %h5] : memref<258x16xf32>
              %weight_lanes5 = vector.broadcast %weight5 : f32 to vector<8xf32>
            %next10 = math.fma %value0, %weight_lanes5, %sum10 : vector<8xf32>

            %next11 = math.fma %value1, %weight_lanes5, %sum11 : vector<8xf32>

              scf.yield %next0, %next1, %next2, %next3, %next4, %next5, %next6, %next7, %next8, %next9, %next10, %next11 : vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>
            }
            %so_far0_0_scaled = arith.mulf %sums0#0, %descale_lanes : vector<8xf32>
            vector.store %so_far0_0_scaled, %values[%item, %head0, %d0] : memref<?x21x512xf32>, vector<8xf32>
            %so_far0_1_scaled = arith.mulf %sums0#1, %descale_lanes : vector<8xf32>
            vector.store %so_far0_1_scaled, %values[%item, %head0, %d1] : memref<?x21x512xf32>, vector<8xf32>
            %so_far1_0_scaled = arith.mulf %sums0#2, %descale_lanes : vector<8xf32>
            vector.store %so_far1_0_scaled, %values[%item, %head1, %d0] : memref<?x21x512xf32>, vector<8xf32>
            %so_far1_1_scaled = arith.mulf %sums0#3, %descale_lanes : vector<8xf32>
            vector.store %so_far1_1_scaled, %values[%item, %head1, %d1] : memref<?x21x512xf32>, vector<8xf32>
            %so_far2_0_scaled = arith.mulf %sums0#4, %descale_lanes : vector<8xf32>
            vector.store %so_far2_0_scaled, %values[%item, %head2, %d0] : memref<?x21x512xf32>, vector<8xf32>
            %so_far2_1_scaled = arith.mulf %sums0#5, %descale_lanes : vector<8xf32>
            vector.store %so_far2_1_scaled, %values[%item, %head2, %d1] : memref<?x21x512xf32>, vector<8xf32>
            %so_far3_0_scaled = arith.mulf %sums0#6, %descale_lanes : vector<8xf32>
            vector.store %so_far3_0_scaled, %values[%item, %head3, %d0] : memref<?x21x512xf32>, vector<8xf32>
            %so_far3_1_scaled = arith.mulf %sums0#7, %descale_lanes : vector<8xf32>
            vector.store %so_far3_1_scaled, %values[%item, %head3, %d1] : memref<?x21x512xf32>, vector<8xf32>
            %so_far4_0_scaled = arith.mulf %sums0#8, %descale_lanes : vector<8xf32>
            vector.store %so_far4_0_scaled, %values[%item, %head4, %d0] : memref<?x21x512xf32>, vector<8xf32>
            %so_far4_1_scaled = arith.mulf %sums0#9, %descale_lanes : vector<8xf32>
            vector.store %so_far4_1_scaled, %values[%item, %head4, %d1] : memref<?x21x512xf32>, vector<8xf32>
            %so_far5_0_scaled = arith.mulf %sums0#10, %descale_lanes : vector<8xf32>
            vector.store %so_far5_0_scaled, %values[%item, %head5, %d0] : memref<?x21x512xf32>, vector<8xf32>
            %so_far5_1_scaled = arith.mulf %sums0#11, %descale_lanes : vector<8xf32>
            vector.store %so_far5_1_scaled, %values[%item, %head5, %d1] : memref<?x21x512xf32>, vector<8xf32>
            %h6 = arith.constant 6 : index
            %head6 = arith.addi %first_head, %h6 : index
            %h7 = arith.constant 7 : index
            %head7 = arith.addi %first_head, %h7 : index
            %h8 = arith.constant 8 : index
            %head8 = arith.addi %first_head, %h8 : index
            %h9 = arith.constant 9 : index
            %head9 = arith.addi %first_head, %h9 : index
            %h10 = arith.constant 10 : index
            %head10 = arith.addi %first_head, %h10 : index
            %h11 = arith.constant 11 : index
            %head11 = arith.addi %first_head, %h11 : index
            %sums1:12 = scf.for %k = %c0 to %terms step %c1
                iter_args(%sum0 = %zeros, %sum1 = %zeros, %sum2 = %zeros, %sum3 = %zeros, %sum4 = %zeros, %sum5 = %zeros, %sum6 = %zeros, %sum7 = %zeros, %sum8 = %zeros, %sum9 = %zeros, %sum10 = %zeros, %sum11 = %zeros) -> (vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>) {
              %value0 = vector.load %keys[%k, %d0] : memref<258x528xf32>, vector<8xf32>
              %value1 = vector.load %keys[%k, %d1] : memref<258x528xf32>, vector<8xf32>
              %weight6 = memref.load %scores[%k, %h6] : memref<258x16xf32>
              %weight_lanes6 = vector.broadcast %weight6 : f32 to vector<8xf32>
            %next0 = math.fma %value0, %weight_lanes6, %sum0 : vector<8xf32>

            %next1 = math.fma %value1, %weight_lanes6, %sum1 : vector<8xf32>

              %weight7 = memref.load %scores[%k, %h7] : memref<258x16xf32>
              %weight_lanes7 = vector.broadcast %weight7 : f32 to vector<8xf32>
            %next2 = math.fma %value0, %weight_lanes7, %sum2 : vector<8xf32>

            %next3 = math.fma %value1, %weight_lanes7, %sum3 : vector<8xf32>

              %weight8 = memref.load %scores[%k, %h8] : memref<258x16xf32>
              %weight_lanes8 = vector.broadcast %weight8 : f32 to vector<8xf32>
            %next4 = math.fma %value0, %weight_lanes8, %sum4 : vector<8xf32>

            %next5 = math.fma %value1, %weight_lanes8, %sum5 : vector<8xf32>

              %weight9 = memref.load %scores[%k, %h9] : memref<258x16xf32>
              %weight_lanes9 = vector.broadcast %weight9 : f32 to vector<8xf32>
            %next6 = math.fma %value0, %weight_lanes9, %sum6 : vector<8xf32>

            %next7 = math.fma %value1, %weight_lanes9, %sum7 : vector<8xf32>

              %weight10 = memref.load %scores[%k, %h10] : memref<258x16xf32>
              %weight_lanes10 = vector.broadcast %weight10 : f32 to vector<8xf32>
            %next8 = math.fma %value0, %weight_lanes10, %sum8 : vector<8xf32>

            %next9 = math.fma %value1, %weight_lanes10, %sum9 : vector<8xf32>

              %weight11 = memref.load %scores[%k, %h11] : memref<258x16xf32>
              %weight_lanes11 = vector.broadcast %weight11 : f32 to vector<8xf32>
            %next10 = math.fma %value0, %weight_lanes11, %sum10 : vector<8xf32>

            %next11 = math.fma %value1, %weight_lanes11, %sum11 : vector<8xf32>

              scf.yield %next0, %next1, %next2, %next3, %next4, %next5, %next6, %next7, %next8, %next9, %next10, %next11 : vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>
            }
            %so_far6_0_scaled = arith.mulf %sums1#0, %descale_lanes : vector<8xf32>
            vector.store %so_far6_0_scaled, %values[%item, %head6, %d0] : memref<?x21x512xf32>, vector<8xf32>
            %so_far6_1_scaled = arith.mulf %sums1#1, %descale_lanes : vector<8xf32>
            vector.store %so_far6_1_scaled, %values[%item, %head6, %d1] : memref<?x21x512xf32>, vector<8xf32>
            %so_far7_0_scaled = arith.mulf %sums1#2, %descale_lanes : vector<8xf32>
            vector.store %so_far7_0_scaled, %values[%item, %head7, %d0] : memref<?x21x512xf32>, vector<8xf32>
            %so_far7_1_scaled = arith.mulf %sums1#3, %descale_lanes : vector<8xf32>
            vector.store %so_far7_1_scaled, %values[%item, %head7, %d1] : memref<?x21x512xf32>, vector<8xf32>
            %so_far8_0_scaled = arith.mulf %sums1#4, %descale_lanes : vector<8xf32>
            vector.store %so_far8_0_scaled, %values[%item, %head8, %d0] : memref<?x21x512xf32>, vector<8xf32>
            %so_far8_1_scaled = arith.mulf %sums1#5, %descale_lanes : vector<8xf32>
            vector.store %so_far8_1_scaled, %values[%item, %head8, %d1] : memref<?x21x512xf32>, vector<8xf32>
            %so_far9_0_scaled = arith.mulf %sums1#6, %descale_lanes : vector<8xf32>
            vector.store %so_far9_0_scaled, %values[%item, %head9, %d0] : memref<?x21x512xf32>, vector<8xf32>
            %so_far9_1_scaled = arith.mulf %sums1#7, %descale_lanes : vector<8xf32>
            vector.store %so_far9_1_scaled, %values[%item, %head9, %d1] : memref<?x21x512xf32>, vector<8xf32>
            %so_far10_0_scaled = arith.mulf %sums1#8, %descale_lanes : vector<8xf32>
            vector.store %so_far10_0_scaled, %values[%item, %head10, %d0] : memref<?x21x512xf32>, vector<8xf32>
            %so_far10_1_scaled = arith.mulf %sums1#9, %descale_lanes : vector<8xf32>
            vector.store %so_far10_1_scaled, %values[%item, %head10, %d1] : memref<?x21x512xf32>, vector<8xf32>
            %so_far11_0_scaled = arith.mulf %sums1#10, %descale_lanes : vector<8xf32>
            vector.store %so_far11_0_scaled, %values[%item, %head11, %d0] : memref<?x21x512xf32>, vector<8xf32>
            %so_far11_1_scaled = arith.mulf %sums1#11, %descale_lanes : vector<8xf32>
            vector.store %so_far11_1_scaled, %values[%item, %head11, %d1] : memref<?x21x512xf32>, vector<8xf32>
            %h12 = arith.constant 12 : index
            %head12 = arith.addi %first_head, %h12 : index
            %h13 = arith.constant 13 : index
            %head13 = arith.addi %first_head, %h13 : index
            %h14 = arith.constant 14 : index
            %head14 = arith.addi %first_head, %h14 : index
            %h15 = arith.constant 15 : index
            %head15 = arith.addi %first_head, %h15 : index
            %sums2:8 = scf.for %k = %c0 to %terms step %c1
                iter_args(%sum0 = %zeros, %sum1 = %zeros, %sum2 = %zeros, %sum3 = %zeros, %sum4 = %zeros, %sum5 = %zeros, %sum6 = %zeros, %sum7 = %zeros) -> (vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>) {
              %value0 = vector.load %keys[%k, %d0] : memref<258x528xf32>, vector<8xf32>
              %value1 = vector.load %keys[%k, %d1] : memref<258x528xf32>, vector<8xf32>
              %weight12 = memref.load %scores[%k, %h12] : memref<258x16xf32>
              %weight_lanes12 = vector.broadcast %weight12 : f32 to vector<8xf32>
            %next0 = math.fma %value0, %weight_lanes12, %sum0 : vector<8xf32>

            %next1 = math.fma %value1, %weight_lanes12, %sum1 : vector<8xf32>

              %weight13 = memref.load %scores[%k, %h13] : memref<258x16xf32>
              %weight_lanes13 = vector.broadcast %weight13 : f32 to vector<8xf32>
            %next2 = math.fma %value0, %weight_lanes13, %sum2 : vector<8xf32>

            %next3 = math.fma %value1, %weight_lanes13, %sum3 : vector<8xf32>

              %weight14 = memref.load %scores[%k, %h14] : memref<258x16xf32>
              %weight_lanes14 = vector.broadcast %weight14 : f32 to vector<8xf32>
            %next4 = math.fma %value0, %weight_lanes14, %sum4 : vector<8xf32>

            %next5 = math.fma %value1, %weight_lanes14, %sum5 : vector<8xf32>

              %weight15 = memref.load %scores[%k, %h15] : memref<258x16xf32>
              %weight_lanes15 = vector.broadcast %weight15 : f32 to vector<8xf32>
            %next6 = math.fma %value0, %weight_lanes15, %sum6 : vector<8xf32>

            %next7 = math.fma %value1, %weight_lanes15, %sum7 : vector<8xf32>

              scf.yield %next0, %next1, %next2, %next3, %next4, %next5, %next6, %next7 : vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>
            }
            %so_far12_0_scaled = arith.mulf %sums2#0, %descale_lanes : vector<8xf32>
            vector.store %so_far12_0_scaled, %values[%item, %head12, %d0] : memref<?x21x512xf32>, vector<8xf32>
            %so_far12_1_scaled = arith.mulf %sums2#1, %descale_lanes : vector<8xf32>
            vector.store %so_far12_1_scaled, %values[%item, %head12, %d1] : memref<?x21x512xf32>, vector<8xf32>
            %so_far13_0_scaled = arith.mulf %sums2#2, %descale_lanes : vector<8xf32>
            vector.store %so_far13_0_scaled, %values[%item, %head13, %d0] : memref<?x21x512xf32>, vector<8xf32>
            %so_far13_1_scaled = arith.mulf %sums2#3, %descale_lanes : vector<8xf32>
            vector.store %so_far13_1_scaled, %values[%item, %head13, %d1] : memref<?x21x512xf32>, vector<8xf32>
            %so_far14_0_scaled = arith.mulf %sums2#4, %descale_lanes : vector<8xf32>
            vector.store %so_far14_0_scaled, %values[%item, %head14, %d0] : memref<?x21x512xf32>, vector<8xf32>
            %so_far14_1_scaled = arith.mulf %sums2#5, %descale_lanes : vector<8xf32>
            vector.store %so_far14_1_scaled, %values[%item, %head14, %d1] : memref<?x21x512xf32>, vector<8xf32>
            %so_far15_0_scaled = arith.mulf %sums2#6, %descale_lanes : vector<8xf32>
            vector.store %so_far15_0_scaled, %values[%item, %head15, %d0] : memref<?x21x512xf32>, vector<8xf32>
            %so_far15_1_scaled = arith.mulf %sums2#7, %descale_lanes : vector<8xf32>
            vector.store %so_far15_1_scaled, %values[%item, %head15, %d1] : memref<?x21x512xf32>, vector<8xf32>
          }
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
      %columns = arith.constant 512 : index
      %nope = arith.constant 512 : index
      %key_block = arith.constant 256 : index
      %key_step = arith.constant 6 : index
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
      %heads = arith.constant 21 : index
      %last_group = arith.constant 13 : index
      %blocks_at_once = arith.constant 64 : index
      %panel = arith.constant 64 : index
      %partial = stream.binding.subspan %partial_binding[%c0] : !stream.binding -> memref<?x21x512xf32>{%count}
      %maxima = stream.binding.subspan %maximum_binding[%c0] : !stream.binding -> memref<?x21xf32>{%count}
      %totals = stream.binding.subspan %total_binding[%c0] : !stream.binding -> memref<?x21xf32>{%count}
      %spans = stream.binding.subspan %spans_binding[%c0] : !stream.binding -> memref<?x2xi32>{%rows}
      %row_values = stream.binding.subspan %row_values_binding[%c0] : !stream.binding -> memref<?x21x512xf32>{%rows}
      %row_maxima = stream.binding.subspan %row_maximum_binding[%c0] : !stream.binding -> memref<?x21xf32>{%rows}
      %row_totals = stream.binding.subspan %row_total_binding[%c0] : !stream.binding -> memref<?x21xf32>{%rows}
      %weights = "memref.alloca"() <{alignment = 64 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<64x21xf32>
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
        %maximum = scf.for %b = %first to %end step %c1 iter_args(%so_far = %minus_infinities) -> (vector<8xf32>) {
          %block_maximum = vector.load %maxima[%b, %h] : memref<?x21xf32>, vector<8xf32>

          %larger = arith.maximumf %so_far, %block_maximum : vector<8xf32>
          scf.yield %larger : vector<8xf32>
        }
          vector.store %maximum, %row_maxima[%row, %h] : memref<?x21xf32>, vector<8xf32>

          vector.store %zeros, %row_totals[%row, %h] : memref<?x21xf32>, vector<8xf32>

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
          %maximum = vector.load %row_maxima[%row, %h] : memref<?x21xf32>, vector<8xf32>

          %reference_magnitude = math.absf %maximum : vector<8xf32>
          %reference_is_infinite = arith.cmpf oeq, %reference_magnitude, %infinities : vector<8xf32>
          %reference = arith.select %reference_is_infinite, %zeros, %maximum : vector<8xi1>, vector<8xf32>
          scf.for %b = %c0 to %count_here step %c1 {
            %place = arith.addi %chunk_first, %b : index
          %block_maximum = vector.load %maxima[%place, %h] : memref<?x21xf32>, vector<8xf32>

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
          vector.store %weight, %weights[%b, %h] : memref<64x21xf32>, vector<8xf32>

          }
        }
        // The last group of heads may overlap the one before, so totals come after all weights are there, head by head.
        scf.for %h = %c0 to %heads step %c1 {
          %total_so_far = memref.load %row_totals[%row, %h] : memref<?x21xf32>
          %total = scf.for %b = %c0 to %count_here step %c1 iter_args(%so_far = %total_so_far) -> (f32) {
            %place = arith.addi %chunk_first, %b : index
            %block_total = memref.load %totals[%place, %h] : memref<?x21xf32>
            %weight = memref.load %weights[%b, %h] : memref<64x21xf32>
            %share = arith.mulf %block_total, %weight : f32
            %next = arith.addf %so_far, %share : f32
            scf.yield %next : f32
          }
          memref.store %total, %row_totals[%row, %h] : memref<?x21xf32>

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
              %kept0 = vector.load %row_values[%row, %h, %d0] : memref<?x21x512xf32>, vector<8xf32>
              %kept1 = vector.load %row_values[%row, %h, %d1] : memref<?x21x512xf32>, vector<8xf32>
              %kept2 = vector.load %row_values[%row, %h, %d2] : memref<?x21x512xf32>, vector<8xf32>
              %kept3 = vector.load %row_values[%row, %h, %d3] : memref<?x21x512xf32>, vector<8xf32>
              %kept4 = vector.load %row_values[%row, %h, %d4] : memref<?x21x512xf32>, vector<8xf32>
              %kept5 = vector.load %row_values[%row, %h, %d5] : memref<?x21x512xf32>, vector<8xf32>
              %kept6 = vector.load %row_values[%row, %h, %d6] : memref<?x21x512xf32>, vector<8xf32>
              %kept7 = vector.load %row_values[%row, %h, %d7] : memref<?x21x512xf32>, vector<8xf32>
              scf.yield %kept0, %kept1, %kept2, %kept3, %kept4, %kept5, %kept6, %kept7 : vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>
            }
            %sums:8 = scf.for %b = %c0 to %count_here step %c1
                iter_args(%sum0 = %begin#0, %sum1 = %begin#1, %sum2 = %begin#2, %sum3 = %begin#3, %sum4 = %begin#4, %sum5 = %begin#5, %sum6 = %begin#6, %sum7 = %begin#7) -> (vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>) {
              %place = arith.addi %chunk_first, %b : index
              %weight = memref.load %weights[%b, %h] : memref<64x21xf32>
              %weight_lanes = vector.broadcast %weight : f32 to vector<8xf32>
              %value0 = vector.load %partial[%place, %h, %d0] : memref<?x21x512xf32>, vector<8xf32>
              %next0 = math.fma %weight_lanes, %value0, %sum0 : vector<8xf32>
              %value1 = vector.load %partial[%place, %h, %d1] : memref<?x21x512xf32>, vector<8xf32>
              %next1 = math.fma %weight_lanes, %value1, %sum1 : vector<8xf32>
              %value2 = vector.load %partial[%place, %h, %d2] : memref<?x21x512xf32>, vector<8xf32>
              %next2 = math.fma %weight_lanes, %value2, %sum2 : vector<8xf32>
              %value3 = vector.load %partial[%place, %h, %d3] : memref<?x21x512xf32>, vector<8xf32>
              %next3 = math.fma %weight_lanes, %value3, %sum3 : vector<8xf32>
              %value4 = vector.load %partial[%place, %h, %d4] : memref<?x21x512xf32>, vector<8xf32>
              %next4 = math.fma %weight_lanes, %value4, %sum4 : vector<8xf32>
              %value5 = vector.load %partial[%place, %h, %d5] : memref<?x21x512xf32>, vector<8xf32>
              %next5 = math.fma %weight_lanes, %value5, %sum5 : vector<8xf32>
              %value6 = vector.load %partial[%place, %h, %d6] : memref<?x21x512xf32>, vector<8xf32>
              %next6 = math.fma %weight_lanes, %value6, %sum6 : vector<8xf32>
              %value7 = vector.load %partial[%place, %h, %d7] : memref<?x21x512xf32>, vector<8xf32>
              %next7 = math.fma %weight_lanes, %value7, %sum7 : vector<8xf32>
              scf.yield %next0, %next1, %next2, %next3, %next4, %next5, %next6, %next7 : vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>
            }
            vector.store %sums#0, %row_values[%row, %h, %d0] : memref<?x21x512xf32>, vector<8xf32>
            vector.store %sums#1, %row_values[%row, %h, %d1] : memref<?x21x512xf32>, vector<8xf32>
            vector.store %sums#2, %row_values[%row, %h, %d2] : memref<?x21x512xf32>, vector<8xf32>
            vector.store %sums#3, %row_values[%row, %h, %d3] : memref<?x21x512xf32>, vector<8xf32>
            vector.store %sums#4, %row_values[%row, %h, %d4] : memref<?x21x512xf32>, vector<8xf32>
            vector.store %sums#5, %row_values[%row, %h, %d5] : memref<?x21x512xf32>, vector<8xf32>
            vector.store %sums#6, %row_values[%row, %h, %d6] : memref<?x21x512xf32>, vector<8xf32>
            vector.store %sums#7, %row_values[%row, %h, %d7] : memref<?x21x512xf32>, vector<8xf32>
          }
        }
      }
      return
    }
  }
}

// Partial results: sum of exp2(score - maximum) * value, the maximum (scores carry log2(e)), and the sum of the weights.
func.func @attend(
  %query_rows: !query_rows, %ori_kv: !kv, %cmp_kv: !kv, %cmp_indices: !indices_rows, %ranges: !ranges, %descales: !descales, %scale: f32, %items: !items
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
  %ori_cache = tensor.cast %ori_kv : !kv to !cache

  %cmp_cache = tensor.cast %cmp_kv : !kv to !cache
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
    %ori_row = arith.addi %ori_kv_start, %ori_token : i32

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
    %cmp_row = arith.addi %cmp_kv_start, %cmp_token : i32

    %attended = arith.select %in_cmp, %cmp_attended, %ori_attended : i1
    %row = arith.select %in_cmp, %cmp_row, %ori_row : i32


    %slot_row = arith.select %attended, %row, %masked : i32
    linalg.yield %slot_row : i32
  } -> !item_keys
  // Without the barrier IREE fuses this into each of its users and redoes it for every column.
  %slots = iree_tensor_ext.compute_barrier.start %slots_computed : !item_keys{%count} -> !item_keys
  %scale_log2_e = arith.mulf %scale, %log2_e : f32
  %rows = tensor.dim %query_rows, %c0 : !query_rows
  %ori_cache_size = tensor.dim %ori_cache, %c0 : !cache
  %cmp_cache_size = tensor.dim %cmp_cache, %c0 : !cache
  %values, %maximum, %sum = flow.dispatch @attend_avx2::@items[%count](
    %query_rows, %ori_cache, %cmp_cache, %item_parts, %item_descales, %slots, %items,
    %rows, %ori_cache_size, %cmp_cache_size, %count, %scale_log2_e
  ) : (
    !query_rows{%rows}, !cache{%ori_cache_size}, !cache{%cmp_cache_size}, !item_parts{%count}, !per_item{%count}, !item_keys{%count}, !items{%count},
    index, index, index, index, f32
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
  %row_values, %row_maximum, %row_total = flow.dispatch @fold_avx2::@rows[%rows](
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
  %query_rows: !query_rows, %ori_kv: !kv, %cmp_kv: !kv, %cmp_indices: !indices_rows, %ranges: !ranges, %descales: !descales, %scale: f32, %items: !items, %storage: !partial {iree.abi.output = 0 : index}
) -> (!partial, !per_head, !per_head) attributes {iree.reflection = {}} {
  %partial, %maximum, %total = call @attend(%query_rows, %ori_kv, %cmp_kv, %cmp_indices, %ranges, %descales, %scale, %items)
    : (!query_rows, !kv, !kv, !indices_rows, !ranges, !descales, f32, !items) -> (!partial, !per_head, !per_head)
  return %partial, %maximum, %total : !partial, !per_head, !per_head
}

// Both passes, for rows whose work items are all there.
func.func @attend_rows(
  %query_rows: !query_rows, %ori_kv: !kv, %cmp_kv: !kv, %cmp_indices: !indices_rows, %ranges: !ranges, %descales: !descales, %scale: f32, %items: !items, %sinks: !sinks, %spans: tensor<?x2xi32>, %longest: i32
) -> (!folded, !per_head) attributes {iree.reflection = {}} {
  %partial, %maximum, %total = call @attend(%query_rows, %ori_kv, %cmp_kv, %cmp_indices, %ranges, %descales, %scale, %items)
    : (!query_rows, !kv, !kv, !indices_rows, !ranges, !descales, f32, !items) -> (!partial, !per_head, !per_head)
  %out, %lse = call @fold(%partial, %maximum, %total, %sinks, %spans, %longest)
    : (!partial, !per_head, !per_head, !sinks, tensor<?x2xi32>, i32) -> (!folded, !per_head)
  return %out, %lse : !folded, !per_head
}
}
