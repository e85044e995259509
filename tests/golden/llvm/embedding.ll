@zeros = private constant [64 x i8] zeroinitializer, align 64
define void @"E_3_8"(ptr %args, ptr %scratch, i64 %begin, i64 %end) #0 {
entry:
  %slot0 = getelementptr i64, ptr %args, i64 2
  %param0 = load ptr, ptr %slot0, align 8
  %slot1 = getelementptr i64, ptr %args, i64 1
  %param1 = load ptr, ptr %slot1, align 8
  %slot2 = getelementptr i64, ptr %args, i64 0
  %param2 = load ptr, ptr %slot2, align 8
  br label %loop0
loop0:
  %i0 = phi i64 [ 0, %entry ], [ %next0, %loop0 ]
  %at0 = getelementptr i32, ptr %param1, i64 %i0
  %load0 = load i32, ptr %at0, align 4
  %cmplt0 = icmp slt i32 %load0, 0
  %add0 = add i32 %load0, 10
  %where0 = select i1 %cmplt0, i32 %add0, i32 %load0
  %cast0 = sext i32 %where0 to i64
  %cmplt1 = icmp slt i64 %cast0, 10
  %neg0 = sub i64 0, %cast0
  %cmplt2 = icmp slt i64 %neg0, 1
  %and0 = and i1 %cmplt1, %cmplt2
  %shl0 = shl i64 %cast0, 3
  %at1 = getelementptr float, ptr %param0, i64 %shl0
  %at2 = getelementptr float, ptr %at1, i64 0
  %at3 = select i1 %and0, ptr %at2, ptr @zeros
  %load1 = load <8 x float>, ptr %at3, align 4
  %shl1 = shl i64 %i0, 3
  %at4 = getelementptr float, ptr %param2, i64 %shl1
  store <8 x float> %load1, ptr %at4, align 4
  %next0 = add nsw i64 %i0, 1
  %more0 = icmp slt i64 %next0, 3
  br i1 %more0, label %loop0, label %loop0.done
loop0.done:
  ret void
}
attributes #0 = { nounwind "prefer-vector-width"="512" "min-legal-vector-width"="512" }
