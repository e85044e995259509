define void @"r_4_16_16_16"(ptr %args, ptr %scratch, i64 %begin, i64 %end) #0 {
entry:
  %slot0 = getelementptr i64, ptr %args, i64 1
  %param0 = load ptr, ptr %slot0, align 8
  %slot1 = getelementptr i64, ptr %args, i64 0
  %param1 = load ptr, ptr %slot1, align 8
  br label %loop0
loop0:
  %i0 = phi i64 [ 0, %entry ], [ %next3, %loop3.done ]
  %at0 = phi ptr [ %param0, %entry ], [ %at6, %loop3.done ]
  %at1 = phi ptr [ %param1, %entry ], [ %at7, %loop3.done ]
  br label %loop1
loop1:
  %i1 = phi i64 [ 0, %loop0 ], [ %next0, %loop1 ]
  %acc0 = phi float [ 0xFFF0000000000000, %loop0 ], [ %max1, %loop1 ]
  %at2 = getelementptr float, ptr %at0, i64 %i1
  %load0 = load float, ptr %at2, align 4
  %test0 = fcmp ogt float %load0, %acc0
  %max0 = select i1 %test0, float %load0, float %acc0
  %isnan0 = fcmp uno float %load0, %load0
  %max1 = select i1 %isnan0, float %load0, float %max0
  %next0 = add nsw i64 %i1, 1
  %more0 = icmp slt i64 %next0, 16
  br i1 %more0, label %loop1, label %loop1.done, !llvm.loop !2
loop1.done:
  br label %loop2
loop2:
  %i2 = phi i64 [ 0, %loop1.done ], [ %next1, %loop2 ]
  %acc1 = phi float [ 0x0000000000000000, %loop1.done ], [ %mulacc9, %loop2 ]
  %at3 = getelementptr float, ptr %at0, i64 %i2
  %load1 = load float, ptr %at3, align 4
  %sub0 = fsub float %load1, %max1
  %test1 = fcmp ogt float 0xC05A2A9300000000, %sub0
  %max2 = select i1 %test1, float 0xC05A2A9300000000, float %sub0
  %test2 = fcmp olt float 0x40565A9F80000000, %max2
  %min0 = select i1 %test2, float 0x40565A9F80000000, float %max2
  %product0 = fmul contract float %min0, 0x3FF7154760000000
  %mulacc0 = fadd contract float %product0, 0x4168000000000000
  %add0 = fadd float %mulacc0, 0xC168000000000000
  %product1 = fmul contract float %add0, 0xBFE62E0000000000
  %mulacc1 = fadd contract float %product1, %min0
  %product2 = fmul contract float %add0, 0xBF00BFBE80000000
  %mulacc2 = fadd contract float %product2, %mulacc1
  %product3 = fmul contract float 0x3F56D14060000000, %mulacc2
  %mulacc3 = fadd contract float %product3, 0x3F81273E40000000
  %product4 = fmul contract float %mulacc3, %mulacc2
  %mulacc4 = fadd contract float %product4, 0x3FA55550C0000000
  %product5 = fmul contract float %mulacc4, %mulacc2
  %mulacc5 = fadd contract float %product5, 0x3FC5553FC0000000
  %product6 = fmul contract float %mulacc5, %mulacc2
  %mulacc6 = fadd contract float %product6, 0x3FE0000000000000
  %product7 = fmul contract float %mulacc6, %mulacc2
  %mulacc7 = fadd contract float %product7, 0x3FF0000000000000
  %product8 = fmul contract float %mulacc7, %mulacc2
  %mulacc8 = fadd contract float %product8, 0x3FF0000000000000
  %cast0 = bitcast float %mulacc0 to i32
  %shr0 = ashr i32 %cast0, 1
  %shl0 = shl i32 %shr0, 23
  %add1 = add i32 %shl0, 1065353216
  %cast1 = bitcast i32 %add1 to float
  %mul0 = fmul float %mulacc8, %cast1
  %sub1 = sub i32 %cast0, %shr0
  %shl1 = shl i32 %sub1, 23
  %add2 = add i32 %shl1, 1065353216
  %cast2 = bitcast i32 %add2 to float
  %product9 = fmul contract float %mul0, %cast2
  %mulacc9 = fadd contract float %product9, %acc1
  %next1 = add nsw i64 %i2, 1
  %more1 = icmp slt i64 %next1, 16
  br i1 %more1, label %loop2, label %loop2.done, !llvm.loop !3
loop2.done:
  br label %loop3
loop3:
  %i3 = phi i64 [ 0, %loop2.done ], [ %next2, %loop3 ]
  %at4 = getelementptr float, ptr %at0, i64 %i3
  %load2 = load float, ptr %at4, align 4
  %sub2 = fsub float %load2, %max1
  %test3 = fcmp ogt float 0xC05A2A9300000000, %sub2
  %max3 = select i1 %test3, float 0xC05A2A9300000000, float %sub2
  %test4 = fcmp olt float 0x40565A9F80000000, %max3
  %min1 = select i1 %test4, float 0x40565A9F80000000, float %max3
  %product10 = fmul contract float %min1, 0x3FF7154760000000
  %mulacc10 = fadd contract float %product10, 0x4168000000000000
  %add3 = fadd float %mulacc10, 0xC168000000000000
  %product11 = fmul contract float %add3, 0xBFE62E0000000000
  %mulacc11 = fadd contract float %product11, %min1
  %product12 = fmul contract float %add3, 0xBF00BFBE80000000
  %mulacc12 = fadd contract float %product12, %mulacc11
  %product13 = fmul contract float 0x3F56D14060000000, %mulacc12
  %mulacc13 = fadd contract float %product13, 0x3F81273E40000000
  %product14 = fmul contract float %mulacc13, %mulacc12
  %mulacc14 = fadd contract float %product14, 0x3FA55550C0000000
  %product15 = fmul contract float %mulacc14, %mulacc12
  %mulacc15 = fadd contract float %product15, 0x3FC5553FC0000000
  %product16 = fmul contract float %mulacc15, %mulacc12
  %mulacc16 = fadd contract float %product16, 0x3FE0000000000000
  %product17 = fmul contract float %mulacc16, %mulacc12
  %mulacc17 = fadd contract float %product17, 0x3FF0000000000000
  %product18 = fmul contract float %mulacc17, %mulacc12
  %mulacc18 = fadd contract float %product18, 0x3FF0000000000000
  %cast3 = bitcast float %mulacc10 to i32
  %shr1 = ashr i32 %cast3, 1
  %shl2 = shl i32 %shr1, 23
  %add4 = add i32 %shl2, 1065353216
  %cast4 = bitcast i32 %add4 to float
  %mul1 = fmul float %mulacc18, %cast4
  %sub3 = sub i32 %cast3, %shr1
  %shl3 = shl i32 %sub3, 23
  %add5 = add i32 %shl3, 1065353216
  %cast5 = bitcast i32 %add5 to float
  %mul2 = fmul float %mul1, %cast5
  %fdiv0 = fdiv float %mul2, %mulacc9
  %at5 = getelementptr float, ptr %at1, i64 %i3
  store float %fdiv0, ptr %at5, align 4
  %next2 = add nsw i64 %i3, 1
  %more2 = icmp slt i64 %next2, 16
  br i1 %more2, label %loop3, label %loop3.done, !llvm.loop !4
loop3.done:
  %at6 = getelementptr float, ptr %at0, i64 16
  %at7 = getelementptr float, ptr %at1, i64 16
  %next3 = add nsw i64 %i0, 1
  %more3 = icmp slt i64 %next3, 4
  br i1 %more3, label %loop0, label %loop0.done
loop0.done:
  ret void
}
attributes #0 = { nounwind "prefer-vector-width"="512" "min-legal-vector-width"="512" }
!1 = !{!"llvm.loop.align", i32 64}
!2 = distinct !{!2, !1}
!3 = distinct !{!3, !1}
!4 = distinct !{!4, !1}
