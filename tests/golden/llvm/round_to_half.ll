define void @"E_8"(ptr %args, ptr %scratch, i64 %begin, i64 %end) #0 {
entry:
  %slot0 = getelementptr i64, ptr %args, i64 1
  %param0 = load ptr, ptr %slot0, align 8
  %at0 = getelementptr float, ptr %param0, i64 0
  %load0 = load <8 x float>, ptr %at0, align 4
  %mul0 = fmul <8 x float> %load0, <float 0x4008000000000000, float 0x4008000000000000, float 0x4008000000000000, float 0x4008000000000000, float 0x4008000000000000, float 0x4008000000000000, float 0x4008000000000000, float 0x4008000000000000>
  %cast0 = fptrunc <8 x float> %mul0 to <8 x half>
  %slot1 = getelementptr i64, ptr %args, i64 0
  %param1 = load ptr, ptr %slot1, align 8
  %at1 = getelementptr half, ptr %param1, i64 0
  store <8 x half> %cast0, ptr %at1, align 2
  ret void
}
attributes #0 = { nounwind "prefer-vector-width"="512" "min-legal-vector-width"="512" }
