define void @"r_128_8_4"(ptr %args, ptr %scratch, i64 %begin, i64 %end) #0 {
entry:
  %slot0 = getelementptr i64, ptr %args, i64 1
  %param0 = load ptr, ptr %slot0, align 8
  br label %loop0
loop0:
  %i0 = phi i64 [ 0, %entry ], [ %next0, %loop0 ]
  %at0 = phi ptr [ %param0, %entry ], [ %at4, %loop0 ]
  %acc0 = phi <8 x float> [ <float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000>, %entry ], [ %add0, %loop0 ]
  %acc1 = phi <8 x float> [ <float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000>, %entry ], [ %add1, %loop0 ]
  %acc2 = phi <8 x float> [ <float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000>, %entry ], [ %add2, %loop0 ]
  %acc3 = phi <8 x float> [ <float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000>, %entry ], [ %add3, %loop0 ]
  %load0 = load <8 x float>, ptr %at0, align 4
  %add0 = fadd <8 x float> %acc0, %load0
  %at1 = getelementptr float, ptr %at0, i64 8
  %load1 = load <8 x float>, ptr %at1, align 4
  %add1 = fadd <8 x float> %acc1, %load1
  %at2 = getelementptr float, ptr %at0, i64 16
  %load2 = load <8 x float>, ptr %at2, align 4
  %add2 = fadd <8 x float> %acc2, %load2
  %at3 = getelementptr float, ptr %at0, i64 24
  %load3 = load <8 x float>, ptr %at3, align 4
  %add3 = fadd <8 x float> %acc3, %load3
  %at4 = getelementptr float, ptr %at0, i64 32
  %next0 = add nsw i64 %i0, 1
  %more0 = icmp slt i64 %next0, 128
  br i1 %more0, label %loop0, label %loop0.done, !llvm.loop !2
loop0.done:
  %add4 = fadd <8 x float> %add0, %add1
  %add5 = fadd <8 x float> %add2, %add3
  %add6 = fadd <8 x float> %add4, %add5
  %lane0 = extractelement <8 x float> %add6, i64 0
  %lane1 = extractelement <8 x float> %add6, i64 1
  %lane2 = extractelement <8 x float> %add6, i64 2
  %lane3 = extractelement <8 x float> %add6, i64 3
  %lane4 = extractelement <8 x float> %add6, i64 4
  %lane5 = extractelement <8 x float> %add6, i64 5
  %lane6 = extractelement <8 x float> %add6, i64 6
  %lane7 = extractelement <8 x float> %add6, i64 7
  %add7 = fadd float %lane0, %lane1
  %add8 = fadd float %lane2, %lane3
  %add9 = fadd float %lane4, %lane5
  %add10 = fadd float %lane6, %lane7
  %add11 = fadd float %add7, %add8
  %add12 = fadd float %add9, %add10
  %add13 = fadd float %add11, %add12
  %slot1 = getelementptr i64, ptr %args, i64 0
  %param1 = load ptr, ptr %slot1, align 8
  %at5 = getelementptr float, ptr %param1, i64 0
  store float %add13, ptr %at5, align 4
  ret void
}
attributes #0 = { nounwind "prefer-vector-width"="512" "min-legal-vector-width"="512" }
!1 = !{!"llvm.loop.align", i32 64}
!2 = distinct !{!2, !1}
