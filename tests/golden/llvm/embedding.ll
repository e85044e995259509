define void @"E_3_8"(ptr %args, ptr %scratch, i64 %begin, i64 %end) #0 {
entry:
  %slot0 = getelementptr i64, ptr %args, i64 3
  %param0 = load ptr, ptr %slot0, align 8
  %slot1 = getelementptr i64, ptr %args, i64 1
  %param1 = load ptr, ptr %slot1, align 8
  %slot2 = getelementptr i64, ptr %args, i64 2
  %param2 = load ptr, ptr %slot2, align 8
  %at0 = getelementptr i64, ptr %param2, i64 0
  %slot3 = getelementptr i64, ptr %args, i64 0
  %param3 = load ptr, ptr %slot3, align 8
  br label %loop0
loop0:
  %i0 = phi i64 [ 0, %entry ], [ %next0, %if0.done ]
  %at1 = phi ptr [ %param3, %entry ], [ %at4, %if0.done ]
  %at2 = getelementptr i32, ptr %param1, i64 %i0
  %load0 = load i32, ptr %at2, align 4
  %cmplt0 = icmp slt i32 %load0, 0
  %add0 = add i32 %load0, 10
  %where0 = select i1 %cmplt0, i32 %add0, i32 %load0
  %cmplt1 = icmp ult i32 9, %where0
  %cast0 = sext i32 %where0 to i64
  br i1 %cmplt1, label %if0, label %if0.done
if0:
  store i64 %cast0, ptr %at0, align 8
  br label %if0.done
if0.done:
  %where1 = select i1 %cmplt1, i32 0, i32 %where0
  %cast1 = sext i32 %where1 to i64
  %shl0 = shl i64 %cast1, 3
  %at3 = getelementptr float, ptr %param0, i64 %shl0
  %load1 = load <8 x float>, ptr %at3, align 4
  store <8 x float> %load1, ptr %at1, align 4
  %at4 = getelementptr float, ptr %at1, i64 8
  %next0 = add nsw i64 %i0, 1
  %more0 = icmp slt i64 %next0, 3
  br i1 %more0, label %loop0, label %loop0.done, !llvm.loop !2
loop0.done:
  ret void
}
attributes #0 = { nounwind "prefer-vector-width"="512" "min-legal-vector-width"="512" }
!1 = !{!"llvm.loop.align", i32 64}
!2 = distinct !{!2, !1}
