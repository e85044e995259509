define void @"r_4_8_8"(ptr %args, ptr %scratch, i64 %begin, i64 %end) #0 {
entry:
  %slot0 = getelementptr i64, ptr %args, i64 1
  %param0 = load ptr, ptr %slot0, align 8
  %slot1 = getelementptr i64, ptr %args, i64 2
  %param1 = load ptr, ptr %slot1, align 8
  %slot2 = getelementptr i64, ptr %args, i64 3
  %param2 = load ptr, ptr %slot2, align 8
  %slot3 = getelementptr i64, ptr %args, i64 0
  %param3 = load ptr, ptr %slot3, align 8
  br label %loop0
loop0:
  %i0 = phi i64 [ 0, %entry ], [ %next2, %loop1.done ]
  %at0 = phi ptr [ %param0, %entry ], [ %at8, %loop1.done ]
  %at1 = phi ptr [ %param3, %entry ], [ %at9, %loop1.done ]
  br label %loop1
loop1:
  %i1 = phi i64 [ 0, %loop0 ], [ %next1, %loop2.done ]
  %at2 = getelementptr float, ptr %param1, i64 %i1
  br label %loop2
loop2:
  %i2 = phi i64 [ 0, %loop1 ], [ %next0, %loop2 ]
  %at3 = phi ptr [ %at2, %loop1 ], [ %at5, %loop2 ]
  %acc0 = phi float [ 0x0000000000000000, %loop1 ], [ %mulacc0, %loop2 ]
  %at4 = getelementptr float, ptr %at0, i64 %i2
  %load0 = load float, ptr %at4, align 4
  %load1 = load float, ptr %at3, align 4
  %product0 = fmul contract float %load0, %load1
  %mulacc0 = fadd contract float %product0, %acc0
  %at5 = getelementptr float, ptr %at3, i64 8
  %next0 = add nsw i64 %i2, 1
  %more0 = icmp slt i64 %next0, 8
  br i1 %more0, label %loop2, label %loop2.done, !llvm.loop !2
loop2.done:
  %at6 = getelementptr float, ptr %param2, i64 %i1
  %load2 = load float, ptr %at6, align 4
  %add0 = fadd float %mulacc0, %load2
  %test0 = fcmp ogt float 0x0000000000000000, %add0
  %max0 = select i1 %test0, float 0x0000000000000000, float %add0
  %at7 = getelementptr float, ptr %at1, i64 %i1
  store float %max0, ptr %at7, align 4
  %next1 = add nsw i64 %i1, 1
  %more1 = icmp slt i64 %next1, 8
  br i1 %more1, label %loop1, label %loop1.done
loop1.done:
  %at8 = getelementptr float, ptr %at0, i64 8
  %at9 = getelementptr float, ptr %at1, i64 8
  %next2 = add nsw i64 %i0, 1
  %more2 = icmp slt i64 %next2, 4
  br i1 %more2, label %loop0, label %loop0.done
loop0.done:
  ret void
}
attributes #0 = { nounwind "prefer-vector-width"="512" "min-legal-vector-width"="512" }
!1 = !{!"llvm.loop.align", i32 64}
!2 = distinct !{!2, !1}
