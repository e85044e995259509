@zeros = private constant [64 x i8] zeroinitializer, align 64
define void @"r_3_5_5_2_3_3"(ptr %args, ptr %scratch, i64 %begin, i64 %end) #0 {
entry:
  %slot0 = getelementptr i64, ptr %args, i64 1
  %param0 = load ptr, ptr %slot0, align 8
  %slot1 = getelementptr i64, ptr %args, i64 2
  %param1 = load ptr, ptr %slot1, align 8
  %slot2 = getelementptr i64, ptr %args, i64 0
  %param2 = load ptr, ptr %slot2, align 8
  br label %loop0
loop0:
  %i0 = phi i64 [ 0, %entry ], [ %next5, %loop1.done ]
  %at0 = phi ptr [ %param1, %entry ], [ %at20, %loop1.done ]
  %at1 = phi ptr [ %param2, %entry ], [ %at21, %loop1.done ]
  br label %loop1
loop1:
  %i1 = phi i64 [ 0, %loop0 ], [ %next4, %loop2.done ]
  %at2 = phi ptr [ %param0, %loop0 ], [ %at18, %loop2.done ]
  %at3 = phi ptr [ %at1, %loop0 ], [ %at19, %loop2.done ]
  %neg0 = sub i64 0, %i1
  br label %loop2
loop2:
  %i2 = phi i64 [ 0, %loop1 ], [ %next3, %loop3.done ]
  %neg1 = sub i64 0, %i2
  %at4 = getelementptr float, ptr %at2, i64 %i2
  br label %loop3
loop3:
  %i3 = phi i64 [ 0, %loop2 ], [ %next2, %loop4.done ]
  %at5 = phi ptr [ %at4, %loop2 ], [ %at15, %loop4.done ]
  %at6 = phi ptr [ %at0, %loop2 ], [ %at16, %loop4.done ]
  %acc0 = phi float [ 0x0000000000000000, %loop2 ], [ %mulacc0, %loop4.done ]
  br label %loop4
loop4:
  %i4 = phi i64 [ 0, %loop3 ], [ %next1, %loop5.done ]
  %at7 = phi ptr [ %at5, %loop3 ], [ %at13, %loop5.done ]
  %at8 = phi ptr [ %at6, %loop3 ], [ %at14, %loop5.done ]
  %acc1 = phi float [ %acc0, %loop3 ], [ %mulacc0, %loop5.done ]
  %add0 = add i64 %i1, %i4
  %cmplt0 = icmp slt i64 %add0, 6
  %sub0 = sub i64 %neg0, %i4
  %cmplt1 = icmp slt i64 %sub0, 0
  br label %loop5
loop5:
  %i5 = phi i64 [ 0, %loop4 ], [ %next0, %loop5 ]
  %acc2 = phi float [ %acc1, %loop4 ], [ %mulacc0, %loop5 ]
  %add1 = add i64 %i2, %i5
  %cmplt2 = icmp slt i64 %add1, 6
  %and0 = and i1 %cmplt0, %cmplt2
  %and1 = and i1 %and0, %cmplt1
  %sub1 = sub i64 %neg1, %i5
  %cmplt3 = icmp slt i64 %sub1, 0
  %and2 = and i1 %and1, %cmplt3
  %at9 = getelementptr float, ptr %at7, i64 %i5
  %at10 = getelementptr float, ptr %at9, i64 -6
  %at11 = select i1 %and2, ptr %at10, ptr @zeros
  %load0 = load float, ptr %at11, align 4
  %at12 = getelementptr float, ptr %at8, i64 %i5
  %load1 = load float, ptr %at12, align 4
  %product0 = fmul contract float %load0, %load1
  %mulacc0 = fadd contract float %product0, %acc2
  %next0 = add nsw i64 %i5, 1
  %more0 = icmp slt i64 %next0, 3
  br i1 %more0, label %loop5, label %loop5.done, !llvm.loop !2
loop5.done:
  %at13 = getelementptr float, ptr %at7, i64 5
  %at14 = getelementptr float, ptr %at8, i64 3
  %next1 = add nsw i64 %i4, 1
  %more1 = icmp slt i64 %next1, 3
  br i1 %more1, label %loop4, label %loop4.done
loop4.done:
  %at15 = getelementptr float, ptr %at5, i64 25
  %at16 = getelementptr float, ptr %at6, i64 9
  %next2 = add nsw i64 %i3, 1
  %more2 = icmp slt i64 %next2, 2
  br i1 %more2, label %loop3, label %loop3.done
loop3.done:
  %at17 = getelementptr float, ptr %at3, i64 %i2
  store float %mulacc0, ptr %at17, align 4
  %next3 = add nsw i64 %i2, 1
  %more3 = icmp slt i64 %next3, 5
  br i1 %more3, label %loop2, label %loop2.done
loop2.done:
  %at18 = getelementptr float, ptr %at2, i64 5
  %at19 = getelementptr float, ptr %at3, i64 5
  %next4 = add nsw i64 %i1, 1
  %more4 = icmp slt i64 %next4, 5
  br i1 %more4, label %loop1, label %loop1.done
loop1.done:
  %at20 = getelementptr float, ptr %at0, i64 18
  %at21 = getelementptr float, ptr %at1, i64 25
  %next5 = add nsw i64 %i0, 1
  %more5 = icmp slt i64 %next5, 3
  br i1 %more5, label %loop0, label %loop0.done
loop0.done:
  ret void
}
attributes #0 = { nounwind "prefer-vector-width"="512" "min-legal-vector-width"="512" }
!1 = !{!"llvm.loop.align", i32 64}
!2 = distinct !{!2, !1}
