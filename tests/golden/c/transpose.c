typedef float float4 __attribute__((vector_size(16)));
typedef float float4u __attribute__((vector_size(16),aligned(4)));
void E_2_4_4(void** args, char* scratch, long long begin, long long end) {
  float* data0 = args[0];
  float* data1 = args[1];
  for (long long ridx0 = 0; ridx0 < 2; ridx0++) {
    long long alu0 = (ridx0<<2);
    long long alu1 = (alu0<2?alu0:2);
    long long alu2 = (alu1<<2);
    float val0 = *(data1+alu2);
    float val1 = *((data1+alu2)+4);
    float val2 = *((data1+alu2)+8);
    float val3 = *((data1+alu2)+12);
    float val4 = *((data1+alu2)+1);
    float val5 = *((data1+alu2)+5);
    float val6 = *((data1+alu2)+9);
    float val7 = *((data1+alu2)+13);
    float val8 = *((data1+alu2)+2);
    float val9 = *((data1+alu2)+6);
    float val10 = *((data1+alu2)+10);
    float val11 = *((data1+alu2)+14);
    float val12 = *((data1+alu2)+3);
    float val13 = *((data1+alu2)+7);
    float val14 = *((data1+alu2)+11);
    float val15 = *((data1+alu2)+15);
    *((float4u*)((data0+alu1))) = (float4){val0,val1,val2,val3};
    *((float4u*)(((data0+alu1)+6))) = (float4){val4,val5,val6,val7};
    *((float4u*)(((data0+alu1)+12))) = (float4){val8,val9,val10,val11};
    *((float4u*)(((data0+alu1)+18))) = (float4){val12,val13,val14,val15};
  }
}
