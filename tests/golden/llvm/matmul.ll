define void @"r_8_4_8"(ptr %args, ptr %scratch, i64 %begin, i64 %end) #0 {
entry:
  %slot0 = getelementptr i64, ptr %args, i64 1
  %param0 = load ptr, ptr %slot0, align 8
  %slot1 = getelementptr i64, ptr %args, i64 2
  %param1 = load ptr, ptr %slot1, align 8
  br label %loop0
loop0:
  %i0 = phi i64 [ 0, %entry ], [ %next0, %loop0 ]
  %at0 = phi ptr [ %param1, %entry ], [ %at5, %loop0 ]
  %acc0 = phi <8 x float> [ <float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000>, %entry ], [ %mulacc0, %loop0 ]
  %acc1 = phi <8 x float> [ <float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000>, %entry ], [ %mulacc1, %loop0 ]
  %acc2 = phi <8 x float> [ <float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000>, %entry ], [ %mulacc2, %loop0 ]
  %acc3 = phi <8 x float> [ <float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000>, %entry ], [ %mulacc3, %loop0 ]
  %at1 = getelementptr float, ptr %param0, i64 %i0
  %load0 = load float, ptr %at1, align 4
  %splat0 = insertelement <8 x float> poison, float %load0, i64 0
  %splat1 = shufflevector <8 x float> %splat0, <8 x float> poison, <8 x i32> zeroinitializer
  %load1 = load <8 x float>, ptr %at0, align 4
  %product0 = fmul contract <8 x float> %splat1, %load1
  %mulacc0 = fadd contract <8 x float> %product0, %acc0
  %at2 = getelementptr float, ptr %at1, i64 8
  %load2 = load float, ptr %at2, align 4
  %splat2 = insertelement <8 x float> poison, float %load2, i64 0
  %splat3 = shufflevector <8 x float> %splat2, <8 x float> poison, <8 x i32> zeroinitializer
  %product1 = fmul contract <8 x float> %splat3, %load1
  %mulacc1 = fadd contract <8 x float> %product1, %acc1
  %at3 = getelementptr float, ptr %at1, i64 16
  %load3 = load float, ptr %at3, align 4
  %splat4 = insertelement <8 x float> poison, float %load3, i64 0
  %splat5 = shufflevector <8 x float> %splat4, <8 x float> poison, <8 x i32> zeroinitializer
  %product2 = fmul contract <8 x float> %splat5, %load1
  %mulacc2 = fadd contract <8 x float> %product2, %acc2
  %at4 = getelementptr float, ptr %at1, i64 24
  %load4 = load float, ptr %at4, align 4
  %splat6 = insertelement <8 x float> poison, float %load4, i64 0
  %splat7 = shufflevector <8 x float> %splat6, <8 x float> poison, <8 x i32> zeroinitializer
  %product3 = fmul contract <8 x float> %splat7, %load1
  %mulacc3 = fadd contract <8 x float> %product3, %acc3
  %at5 = getelementptr float, ptr %at0, i64 8
  %next0 = add nsw i64 %i0, 1
  %more0 = icmp slt i64 %next0, 8
  br i1 %more0, label %loop0, label %loop0.done, !llvm.loop !2
loop0.done:
  %slot2 = getelementptr i64, ptr %args, i64 0
  %param2 = load ptr, ptr %slot2, align 8
  %at6 = getelementptr float, ptr %param2, i64 0
  %at7 = getelementptr float, ptr %param2, i64 8
  %at8 = getelementptr float, ptr %param2, i64 16
  %at9 = getelementptr float, ptr %param2, i64 24
  store <8 x float> %mulacc0, ptr %at6, align 4
  store <8 x float> %mulacc1, ptr %at7, align 4
  store <8 x float> %mulacc2, ptr %at8, align 4
  store <8 x float> %mulacc3, ptr %at9, align 4
  ret void
}
attributes #0 = { nounwind "prefer-vector-width"="512" "min-legal-vector-width"="512" }
!1 = !{!"llvm.loop.align", i32 64}
!2 = distinct !{!2, !1}
