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
  %load0 = load float, ptr %at0, align 4
  %at1 = getelementptr float, ptr %at0, i64 4
  %load1 = load float, ptr %at1, align 4
  %at2 = getelementptr float, ptr %at0, i64 8
  %load2 = load float, ptr %at2, align 4
  %at3 = getelementptr float, ptr %at0, i64 12
  %load3 = load float, ptr %at3, align 4
  %stack0 = insertelement <4 x float> poison, float %load0, i64 0
  %stack1 = insertelement <4 x float> %stack0, float %load1, i64 1
  %stack2 = insertelement <4 x float> %stack1, float %load2, i64 2
  %stack3 = insertelement <4 x float> %stack2, float %load3, i64 3
  %at4 = getelementptr float, ptr %param1, i64 %min0
  %at5 = getelementptr float, ptr %at0, i64 1
  %load4 = load float, ptr %at5, align 4
  %at6 = getelementptr float, ptr %at0, i64 5
  %load5 = load float, ptr %at6, align 4
  %at7 = getelementptr float, ptr %at0, i64 9
  %load6 = load float, ptr %at7, align 4
  %at8 = getelementptr float, ptr %at0, i64 13
  %load7 = load float, ptr %at8, align 4
  %stack4 = insertelement <4 x float> poison, float %load4, i64 0
  %stack5 = insertelement <4 x float> %stack4, float %load5, i64 1
  %stack6 = insertelement <4 x float> %stack5, float %load6, i64 2
  %stack7 = insertelement <4 x float> %stack6, float %load7, i64 3
  %at9 = getelementptr float, ptr %at4, i64 6
  %at10 = getelementptr float, ptr %at0, i64 2
  %load8 = load float, ptr %at10, align 4
  %at11 = getelementptr float, ptr %at0, i64 6
  %load9 = load float, ptr %at11, align 4
  %at12 = getelementptr float, ptr %at0, i64 10
  %load10 = load float, ptr %at12, align 4
  %at13 = getelementptr float, ptr %at0, i64 14
  %load11 = load float, ptr %at13, align 4
  %stack8 = insertelement <4 x float> poison, float %load8, i64 0
  %stack9 = insertelement <4 x float> %stack8, float %load9, i64 1
  %stack10 = insertelement <4 x float> %stack9, float %load10, i64 2
  %stack11 = insertelement <4 x float> %stack10, float %load11, i64 3
  %at14 = getelementptr float, ptr %at4, i64 12
  %at15 = getelementptr float, ptr %at0, i64 3
  %load12 = load float, ptr %at15, align 4
  %at16 = getelementptr float, ptr %at0, i64 7
  %load13 = load float, ptr %at16, align 4
  %at17 = getelementptr float, ptr %at0, i64 11
  %load14 = load float, ptr %at17, align 4
  %at18 = getelementptr float, ptr %at0, i64 15
  %load15 = load float, ptr %at18, align 4
  %stack12 = insertelement <4 x float> poison, float %load12, i64 0
  %stack13 = insertelement <4 x float> %stack12, float %load13, i64 1
  %stack14 = insertelement <4 x float> %stack13, float %load14, i64 2
  %stack15 = insertelement <4 x float> %stack14, float %load15, i64 3
  %at19 = getelementptr float, ptr %at4, i64 18
  store <4 x float> %stack3, ptr %at4, align 4
  store <4 x float> %stack7, ptr %at9, align 4
  store <4 x float> %stack11, ptr %at14, align 4
  store <4 x float> %stack15, ptr %at19, align 4
  %next0 = add nsw i64 %i0, 1
  %more0 = icmp slt i64 %next0, 2
  br i1 %more0, label %loop0, label %loop0.done
loop0.done:
  ret void
}
attributes #0 = { nounwind "prefer-vector-width"="512" "min-legal-vector-width"="512" }
