define void @"E_4"(ptr %args, ptr %scratch, i64 %begin, i64 %end) #0 {
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
  %at0 = getelementptr i32, ptr %param0, i64 %i0
  %load0 = load i32, ptr %at0, align 4
  %at1 = getelementptr i32, ptr %param1, i64 %i0
  %load1 = load i32, ptr %at1, align 4
  %zero0 = icmp eq i32 %load1, 0
  %safe0 = select i1 %zero0, i32 1, i32 %load1
  %minus0 = icmp eq i32 %load1, -1
  %safe1 = select i1 %minus0, i32 1, i32 %safe0
  %cdiv0 = sdiv i32 %load0, %safe1
  %neg0 = sub i32 0, %load0
  %cdiv1 = select i1 %minus0, i32 %neg0, i32 %cdiv0
  %cdiv2 = select i1 %zero0, i32 0, i32 %cdiv1
  %mul0 = mul i32 %cdiv2, %load1
  %sub0 = sub i32 %load0, %mul0
  %cmpne0 = icmp ne i32 %sub0, 0
  %cmplt0 = icmp slt i32 %sub0, 0
  %cmplt1 = icmp slt i32 %load1, 0
  %xor0 = xor i1 %cmplt0, %cmplt1
  %and0 = and i1 %cmpne0, %xor0
  %cmpne1 = icmp ne i32 %load1, 0
  %and1 = and i1 %and0, %cmpne1
  %cast0 = zext i1 %and1 to i32
  %sub1 = sub i32 %cdiv2, %cast0
  %at2 = getelementptr i32, ptr %param2, i64 %i0
  store i32 %sub1, ptr %at2, align 4
  %next0 = add nsw i64 %i0, 1
  %more0 = icmp slt i64 %next0, 4
  br i1 %more0, label %loop0, label %loop0.done, !llvm.loop !2
loop0.done:
  ret void
}
attributes #0 = { nounwind "prefer-vector-width"="512" "min-legal-vector-width"="512" }
!1 = !{!"llvm.loop.align", i32 64}
!2 = distinct !{!2, !1}
