define void @"E_2_4_4"(ptr %args, ptr %scratch, i64 %begin, i64 %end) #0 {
entry:
  %slot0 = getelementptr i64, ptr %args, i64 1
  %param0 = load ptr, ptr %slot0, align 8
  %slot1 = getelementptr i64, ptr %args, i64 0
  %param1 = load ptr, ptr %slot1, align 8
  br label %loop0
loop0:
  %i0 = phi i64 [ 0, %entry ], [ %next0, %loop0 ]
  %shl0 = shl i64 %i0, 2
  %test0 = icmp slt i64 %shl0, 2
  %min0 = select i1 %test0, i64 %shl0, i64 2
  %shl1 = shl i64 %min0, 2
  %at0 = getelementptr float, ptr %param0, i64 %shl1
  %load0 = load <4 x float>, ptr %at0, align 4
  %at1 = getelementptr float, ptr %at0, i64 4
  %load1 = load <4 x float>, ptr %at1, align 4
  %at2 = getelementptr float, ptr %at0, i64 8
  %load2 = load <4 x float>, ptr %at2, align 4
  %at3 = getelementptr float, ptr %at0, i64 12
  %load3 = load <4 x float>, ptr %at3, align 4
  %shuffle0 = shufflevector <4 x float> %load0, <4 x float> %load1, <4 x i32> <i32 0, i32 4, i32 1, i32 5>
  %shuffle1 = shufflevector <4 x float> %load2, <4 x float> %load3, <4 x i32> <i32 0, i32 4, i32 1, i32 5>
  %shuffle2 = shufflevector <4 x float> %load0, <4 x float> %load1, <4 x i32> <i32 2, i32 6, i32 3, i32 7>
  %shuffle3 = shufflevector <4 x float> %load2, <4 x float> %load3, <4 x i32> <i32 2, i32 6, i32 3, i32 7>
  %shuffle4 = shufflevector <4 x float> %shuffle0, <4 x float> %shuffle1, <4 x i32> <i32 0, i32 1, i32 4, i32 5>
  %shuffle5 = shufflevector <4 x float> %shuffle0, <4 x float> %shuffle1, <4 x i32> <i32 2, i32 3, i32 6, i32 7>
  %shuffle6 = shufflevector <4 x float> %shuffle2, <4 x float> %shuffle3, <4 x i32> <i32 0, i32 1, i32 4, i32 5>
  %shuffle7 = shufflevector <4 x float> %shuffle2, <4 x float> %shuffle3, <4 x i32> <i32 2, i32 3, i32 6, i32 7>
  %at4 = getelementptr float, ptr %param1, i64 %min0
  %at5 = getelementptr float, ptr %at4, i64 6
  %at6 = getelementptr float, ptr %at4, i64 12
  %at7 = getelementptr float, ptr %at4, i64 18
  store <4 x float> %shuffle4, ptr %at4, align 4
  store <4 x float> %shuffle5, ptr %at5, align 4
  store <4 x float> %shuffle6, ptr %at6, align 4
  store <4 x float> %shuffle7, ptr %at7, align 4
  %next0 = add nsw i64 %i0, 1
  %more0 = icmp slt i64 %next0, 2
  br i1 %more0, label %loop0, label %loop0.done, !llvm.loop !2
loop0.done:
  ret void
}
attributes #0 = { nounwind "prefer-vector-width"="512" "min-legal-vector-width"="512" }
!1 = !{!"llvm.loop.align", i32 64}
!2 = distinct !{!2, !1}
