define void @"r_2_4_4_8"(ptr %args, ptr %scratch, i64 %begin, i64 %end) #0 {
entry:
  %slot0 = getelementptr i64, ptr %args, i64 1
  %param0 = load ptr, ptr %slot0, align 8
  %slot1 = getelementptr i64, ptr %args, i64 0
  %param1 = load ptr, ptr %slot1, align 8
  br label %loop0
loop0:
  %i0 = phi i64 [ 0, %entry ], [ %next1, %loop1.done ]
  %at0 = phi ptr [ %param0, %entry ], [ %at10, %loop1.done ]
  %at1 = phi ptr [ %param1, %entry ], [ %at11, %loop1.done ]
  br label %loop1
loop1:
  %i1 = phi i64 [ 0, %loop0 ], [ %next0, %loop1 ]
  %at2 = phi ptr [ %at0, %loop0 ], [ %at6, %loop1 ]
  %acc0 = phi <8 x float> [ <float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000>, %loop0 ], [ %add0, %loop1 ]
  %acc1 = phi <8 x float> [ <float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000>, %loop0 ], [ %add1, %loop1 ]
  %acc2 = phi <8 x float> [ <float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000>, %loop0 ], [ %add2, %loop1 ]
  %acc3 = phi <8 x float> [ <float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000>, %loop0 ], [ %add3, %loop1 ]
  %load0 = load <8 x float>, ptr %at2, align 4
  %add0 = fadd <8 x float> %acc0, %load0
  %at3 = getelementptr float, ptr %at2, i64 32
  %load1 = load <8 x float>, ptr %at3, align 4
  %add1 = fadd <8 x float> %acc1, %load1
  %at4 = getelementptr float, ptr %at2, i64 64
  %load2 = load <8 x float>, ptr %at4, align 4
  %add2 = fadd <8 x float> %acc2, %load2
  %at5 = getelementptr float, ptr %at2, i64 96
  %load3 = load <8 x float>, ptr %at5, align 4
  %add3 = fadd <8 x float> %acc3, %load3
  %at6 = getelementptr float, ptr %at2, i64 8
  %next0 = add nsw i64 %i1, 1
  %more0 = icmp slt i64 %next0, 4
  br i1 %more0, label %loop1, label %loop1.done, !llvm.loop !2
loop1.done:
  %shuffle0 = shufflevector <8 x float> %add0, <8 x float> %add1, <8 x i32> <i32 0, i32 2, i32 8, i32 10, i32 4, i32 6, i32 12, i32 14>
  %shuffle1 = shufflevector <8 x float> %add0, <8 x float> %add1, <8 x i32> <i32 1, i32 3, i32 9, i32 11, i32 5, i32 7, i32 13, i32 15>
  %add4 = fadd <8 x float> %shuffle0, %shuffle1
  %shuffle2 = shufflevector <8 x float> %add2, <8 x float> %add3, <8 x i32> <i32 0, i32 2, i32 8, i32 10, i32 4, i32 6, i32 12, i32 14>
  %shuffle3 = shufflevector <8 x float> %add2, <8 x float> %add3, <8 x i32> <i32 1, i32 3, i32 9, i32 11, i32 5, i32 7, i32 13, i32 15>
  %add5 = fadd <8 x float> %shuffle2, %shuffle3
  %shuffle4 = shufflevector <8 x float> %add4, <8 x float> %add5, <8 x i32> <i32 0, i32 2, i32 8, i32 10, i32 4, i32 6, i32 12, i32 14>
  %shuffle5 = shufflevector <8 x float> %add4, <8 x float> %add5, <8 x i32> <i32 1, i32 3, i32 9, i32 11, i32 5, i32 7, i32 13, i32 15>
  %add6 = fadd <8 x float> %shuffle4, %shuffle5
  %shuffle6 = shufflevector <8 x float> %add6, <8 x float> %add6, <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 8, i32 9, i32 10, i32 11>
  %shuffle7 = shufflevector <8 x float> %add6, <8 x float> %add6, <8 x i32> <i32 4, i32 5, i32 6, i32 7, i32 12, i32 13, i32 14, i32 15>
  %add7 = fadd <8 x float> %shuffle6, %shuffle7
  %lane0 = extractelement <8 x float> %add7, i64 0
  %lane1 = extractelement <8 x float> %add7, i64 1
  %lane2 = extractelement <8 x float> %add7, i64 2
  %lane3 = extractelement <8 x float> %add7, i64 3
  %at7 = getelementptr float, ptr %at1, i64 1
  %at8 = getelementptr float, ptr %at1, i64 2
  %at9 = getelementptr float, ptr %at1, i64 3
  store float %lane0, ptr %at1, align 4
  store float %lane1, ptr %at7, align 4
  store float %lane2, ptr %at8, align 4
  store float %lane3, ptr %at9, align 4
  %at10 = getelementptr float, ptr %at0, i64 128
  %at11 = getelementptr float, ptr %at1, i64 4
  %next1 = add nsw i64 %i0, 1
  %more1 = icmp slt i64 %next1, 2
  br i1 %more1, label %loop0, label %loop0.done
loop0.done:
  ret void
}
attributes #0 = { nounwind "prefer-vector-width"="512" "min-legal-vector-width"="512" }
!1 = !{!"llvm.loop.align", i32 64}
!2 = distinct !{!2, !1}
