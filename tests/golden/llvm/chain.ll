define void @"E_8"(ptr %args, ptr %scratch, i64 %begin, i64 %end) #0 {
entry:
  %slot0 = getelementptr i64, ptr %args, i64 1
  %param0 = load ptr, ptr %slot0, align 8
  %at0 = getelementptr float, ptr %param0, i64 0
  %load0 = load <8 x float>, ptr %at0, align 4
  %mul0 = fmul <8 x float> %load0, <float 0x4000000000000000, float 0x4000000000000000, float 0x4000000000000000, float 0x4000000000000000, float 0x4000000000000000, float 0x4000000000000000, float 0x4000000000000000, float 0x4000000000000000>
  %add0 = fadd <8 x float> %mul0, <float 0x3FF0000000000000, float 0x3FF0000000000000, float 0x3FF0000000000000, float 0x3FF0000000000000, float 0x3FF0000000000000, float 0x3FF0000000000000, float 0x3FF0000000000000, float 0x3FF0000000000000>
  %test0 = fcmp ogt <8 x float> <float 0xC05A2A9300000000, float 0xC05A2A9300000000, float 0xC05A2A9300000000, float 0xC05A2A9300000000, float 0xC05A2A9300000000, float 0xC05A2A9300000000, float 0xC05A2A9300000000, float 0xC05A2A9300000000>, %add0
  %max0 = select <8 x i1> %test0, <8 x float> <float 0xC05A2A9300000000, float 0xC05A2A9300000000, float 0xC05A2A9300000000, float 0xC05A2A9300000000, float 0xC05A2A9300000000, float 0xC05A2A9300000000, float 0xC05A2A9300000000, float 0xC05A2A9300000000>, <8 x float> %add0
  %test1 = fcmp olt <8 x float> <float 0x40565A9F80000000, float 0x40565A9F80000000, float 0x40565A9F80000000, float 0x40565A9F80000000, float 0x40565A9F80000000, float 0x40565A9F80000000, float 0x40565A9F80000000, float 0x40565A9F80000000>, %max0
  %min0 = select <8 x i1> %test1, <8 x float> <float 0x40565A9F80000000, float 0x40565A9F80000000, float 0x40565A9F80000000, float 0x40565A9F80000000, float 0x40565A9F80000000, float 0x40565A9F80000000, float 0x40565A9F80000000, float 0x40565A9F80000000>, <8 x float> %max0
  %product0 = fmul contract <8 x float> %min0, <float 0x3FF7154760000000, float 0x3FF7154760000000, float 0x3FF7154760000000, float 0x3FF7154760000000, float 0x3FF7154760000000, float 0x3FF7154760000000, float 0x3FF7154760000000, float 0x3FF7154760000000>
  %mulacc0 = fadd contract <8 x float> %product0, <float 0x4168000000000000, float 0x4168000000000000, float 0x4168000000000000, float 0x4168000000000000, float 0x4168000000000000, float 0x4168000000000000, float 0x4168000000000000, float 0x4168000000000000>
  %add1 = fadd <8 x float> %mulacc0, <float 0xC168000000000000, float 0xC168000000000000, float 0xC168000000000000, float 0xC168000000000000, float 0xC168000000000000, float 0xC168000000000000, float 0xC168000000000000, float 0xC168000000000000>
  %product1 = fmul contract <8 x float> %add1, <float 0xBFE62E0000000000, float 0xBFE62E0000000000, float 0xBFE62E0000000000, float 0xBFE62E0000000000, float 0xBFE62E0000000000, float 0xBFE62E0000000000, float 0xBFE62E0000000000, float 0xBFE62E0000000000>
  %mulacc1 = fadd contract <8 x float> %product1, %min0
  %product2 = fmul contract <8 x float> %add1, <float 0xBF00BFBE80000000, float 0xBF00BFBE80000000, float 0xBF00BFBE80000000, float 0xBF00BFBE80000000, float 0xBF00BFBE80000000, float 0xBF00BFBE80000000, float 0xBF00BFBE80000000, float 0xBF00BFBE80000000>
  %mulacc2 = fadd contract <8 x float> %product2, %mulacc1
  %product3 = fmul contract <8 x float> <float 0x3F56D14060000000, float 0x3F56D14060000000, float 0x3F56D14060000000, float 0x3F56D14060000000, float 0x3F56D14060000000, float 0x3F56D14060000000, float 0x3F56D14060000000, float 0x3F56D14060000000>, %mulacc2
  %mulacc3 = fadd contract <8 x float> %product3, <float 0x3F81273E40000000, float 0x3F81273E40000000, float 0x3F81273E40000000, float 0x3F81273E40000000, float 0x3F81273E40000000, float 0x3F81273E40000000, float 0x3F81273E40000000, float 0x3F81273E40000000>
  %product4 = fmul contract <8 x float> %mulacc3, %mulacc2
  %mulacc4 = fadd contract <8 x float> %product4, <float 0x3FA55550C0000000, float 0x3FA55550C0000000, float 0x3FA55550C0000000, float 0x3FA55550C0000000, float 0x3FA55550C0000000, float 0x3FA55550C0000000, float 0x3FA55550C0000000, float 0x3FA55550C0000000>
  %product5 = fmul contract <8 x float> %mulacc4, %mulacc2
  %mulacc5 = fadd contract <8 x float> %product5, <float 0x3FC5553FC0000000, float 0x3FC5553FC0000000, float 0x3FC5553FC0000000, float 0x3FC5553FC0000000, float 0x3FC5553FC0000000, float 0x3FC5553FC0000000, float 0x3FC5553FC0000000, float 0x3FC5553FC0000000>
  %product6 = fmul contract <8 x float> %mulacc5, %mulacc2
  %mulacc6 = fadd contract <8 x float> %product6, <float 0x3FE0000000000000, float 0x3FE0000000000000, float 0x3FE0000000000000, float 0x3FE0000000000000, float 0x3FE0000000000000, float 0x3FE0000000000000, float 0x3FE0000000000000, float 0x3FE0000000000000>
  %product7 = fmul contract <8 x float> %mulacc6, %mulacc2
  %mulacc7 = fadd contract <8 x float> %product7, <float 0x3FF0000000000000, float 0x3FF0000000000000, float 0x3FF0000000000000, float 0x3FF0000000000000, float 0x3FF0000000000000, float 0x3FF0000000000000, float 0x3FF0000000000000, float 0x3FF0000000000000>
  %product8 = fmul contract <8 x float> %mulacc7, %mulacc2
  %mulacc8 = fadd contract <8 x float> %product8, <float 0x3FF0000000000000, float 0x3FF0000000000000, float 0x3FF0000000000000, float 0x3FF0000000000000, float 0x3FF0000000000000, float 0x3FF0000000000000, float 0x3FF0000000000000, float 0x3FF0000000000000>
  %cast0 = bitcast <8 x float> %mulacc0 to <8 x i32>
  %shr0 = ashr <8 x i32> %cast0, <i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1>
  %shl0 = shl <8 x i32> %shr0, <i32 23, i32 23, i32 23, i32 23, i32 23, i32 23, i32 23, i32 23>
  %add2 = add <8 x i32> %shl0, <i32 1065353216, i32 1065353216, i32 1065353216, i32 1065353216, i32 1065353216, i32 1065353216, i32 1065353216, i32 1065353216>
  %cast1 = bitcast <8 x i32> %add2 to <8 x float>
  %mul1 = fmul <8 x float> %mulacc8, %cast1
  %sub0 = sub <8 x i32> %cast0, %shr0
  %shl1 = shl <8 x i32> %sub0, <i32 23, i32 23, i32 23, i32 23, i32 23, i32 23, i32 23, i32 23>
  %add3 = add <8 x i32> %shl1, <i32 1065353216, i32 1065353216, i32 1065353216, i32 1065353216, i32 1065353216, i32 1065353216, i32 1065353216, i32 1065353216>
  %cast2 = bitcast <8 x i32> %add3 to <8 x float>
  %mul2 = fmul <8 x float> %mul1, %cast2
  %sub1 = fsub <8 x float> %mul2, %load0
  %test2 = fcmp ogt <8 x float> <float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000>, %sub1
  %max1 = select <8 x i1> %test2, <8 x float> <float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000>, <8 x float> %sub1
  %slot1 = getelementptr i64, ptr %args, i64 0
  %param1 = load ptr, ptr %slot1, align 8
  %at1 = getelementptr float, ptr %param1, i64 0
  store <8 x float> %max1, ptr %at1, align 4
  ret void
}
attributes #0 = { nounwind "prefer-vector-width"="512" "min-legal-vector-width"="512" }
