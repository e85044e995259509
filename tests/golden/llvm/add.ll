define void @"E_2_8"(ptr %args, ptr %scratch, i64 %begin, i64 %end) #0 {
entry:
  %slot0 = getelementptr i64, ptr %args, i64 1
  %param0 = load ptr, ptr %slot0, align 8
  %at0 = getelementptr float, ptr %param0, i64 0
  %load0 = load <8 x float>, ptr %at0, align 4
  %slot1 = getelementptr i64, ptr %args, i64 2
  %param1 = load ptr, ptr %slot1, align 8
  %at1 = getelementptr float, ptr %param1, i64 0
  %load1 = load <8 x float>, ptr %at1, align 4
  %add0 = fadd <8 x float> %load0, %load1
  %slot2 = getelementptr i64, ptr %args, i64 0
  %param2 = load ptr, ptr %slot2, align 8
  %at2 = getelementptr float, ptr %param2, i64 0
  %at3 = getelementptr float, ptr %param0, i64 8
  %load2 = load <8 x float>, ptr %at3, align 4
  %at4 = getelementptr float, ptr %param1, i64 8
  %load3 = load <8 x float>, ptr %at4, align 4
  %add1 = fadd <8 x float> %load2, %load3
  %at5 = getelementptr float, ptr %param2, i64 8
  store <8 x float> %add0, ptr %at2, align 4
  store <8 x float> %add1, ptr %at5, align 4
  ret void
}
attributes #0 = { nounwind "prefer-vector-width"="512" "min-legal-vector-width"="512" }
