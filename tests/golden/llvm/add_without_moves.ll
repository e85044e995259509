define void @"E_16"(ptr %args, ptr %scratch, i64 %begin, i64 %end) #0 {
entry:
  %slot0 = getelementptr i64, ptr %args, i64 1
  %param0 = load ptr, ptr %slot0, align 8
  %slot1 = getelementptr i64, ptr %args, i64 2
  %param1 = load ptr, ptr %slot1, align 8
  %slot2 = getelementptr i64, ptr %args, i64 0
  %param2 = load ptr, ptr %slot2, align 8
  br label %loop0
loop0:
  %i0 = phi i64 [ 0, %entry ], [ %next0, %loop0 ]
  %at0 = getelementptr float, ptr %param0, i64 %i0
  %load0 = load float, ptr %at0, align 4
  %at1 = getelementptr float, ptr %param1, i64 %i0
  %load1 = load float, ptr %at1, align 4
  %add0 = fadd float %load0, %load1
  %at2 = getelementptr float, ptr %param2, i64 %i0
  store float %add0, ptr %at2, align 4
  %next0 = add nsw i64 %i0, 1
  %more0 = icmp slt i64 %next0, 16
  br i1 %more0, label %loop0, label %loop0.done, !llvm.loop !2
loop0.done:
  ret void
}
attributes #0 = { nounwind "prefer-vector-width"="512" "min-legal-vector-width"="512" }
!1 = !{!"llvm.loop.align", i32 64}
!2 = distinct !{!2, !1}
