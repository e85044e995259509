typedef float float4 __attribute__((vector_size(16)));
typedef float float4u __attribute__((vector_size(16),aligned(4)));
void E_2_4_4(void** args, char* scratch, long long begin, long long end) {
  float* data0 = args[0];
  float* data1 = args[1];
  for (long long ridx0 = 0; ridx0 < 2; ridx0++) {
    long long alu0 = (ridx0<<2);
    long long alu1 = (alu0<2?alu0:2);
    long long alu2 = (alu1<<2);
    float4 val0 = *((float4u*)((data1+alu2)));
    float4 val1 = *((float4u*)(((data1+alu2)+4)));
    float4 val2 = *((float4u*)(((data1+alu2)+8)));
    float4 val3 = *((float4u*)(((data1+alu2)+12)));
    float4 alu3 = (float4){val0[0],val1[0],val0[1],val1[1]};
    float4 alu4 = (float4){val2[0],val3[0],val2[1],val3[1]};
    float4 alu5 = (float4){val0[2],val1[2],val0[3],val1[3]};
    float4 alu6 = (float4){val2[2],val3[2],val2[3],val3[3]};
    float4 alu7 = (float4){alu3[0],alu3[1],alu4[0],alu4[1]};
    float4 alu8 = (float4){alu3[2],alu3[3],alu4[2],alu4[3]};
    float4 alu9 = (float4){alu5[0],alu5[1],alu6[0],alu6[1]};
    float4 alu10 = (float4){alu5[2],alu5[3],alu6[2],alu6[3]};
    *((float4u*)((data0+alu1))) = alu7;
    *((float4u*)(((data0+alu1)+6))) = alu8;
    *((float4u*)(((data0+alu1)+12))) = alu9;
    *((float4u*)(((data0+alu1)+18))) = alu10;
  }
}
