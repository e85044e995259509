declare <8 x float> @llvm.masked.load.v8f32.p0(ptr, i32, <8 x i1>, <8 x float>)
define void @"E_8"(ptr %args, ptr %scratch, i64 %begin, i64 %end) #0 {
entry:
  %slot0 = getelementptr i64, ptr %args, i64 1
  %param0 = load ptr, ptr %slot0, align 8
  %at0 = getelementptr float, ptr %param0, i64 -2
  %load0 = call <8 x float> @llvm.masked.load.v8f32.p0(ptr %at0, i32 4, <8 x i1> <i1 false, i1 false, i1 true, i1 true, i1 true, i1 true, i1 true, i1 false>, <8 x float> zeroinitializer)
  %add0 = fadd <8 x float> %load0, <float 0x3FF0000000000000, float 0x3FF0000000000000, float 0x3FF0000000000000, float 0x3FF0000000000000, float 0x3FF0000000000000, float 0x3FF0000000000000, float 0x3FF0000000000000, float 0x3FF0000000000000>
  %slot1 = getelementptr i64, ptr %args, i64 0
  %param1 = load ptr, ptr %slot1, align 8
  %at1 = getelementptr float, ptr %param1, i64 0
  store <8 x float> %add0, ptr %at1, align 4
  ret void
}
attributes #0 = { nounwind "prefer-vector-width"="512" "min-legal-vector-width"="512" }
