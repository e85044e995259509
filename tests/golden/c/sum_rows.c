typedef float float8 __attribute__((vector_size(32)));
typedef float float8u __attribute__((vector_size(32),aligned(4)));
static inline float8 float8_of(float x) { return (float8){x,x,x,x,x,x,x,x}; }
void r_2_4_4_8(void** args, char* scratch, long long begin, long long end) {
  float* data0 = args[0];
  float* data1 = args[1];
  for (long long ridx0 = 0; ridx0 < 2; ridx0++) {
    float8 acc0 = float8_of(0.0f);
    float8 acc1 = float8_of(0.0f);
    float8 acc2 = float8_of(0.0f);
    float8 acc3 = float8_of(0.0f);
    long long alu0 = (ridx0<<7);
    for (long long ridx1 = 0; ridx1 < 4; ridx1++) {
      float* ptr0 = ((data1+alu0)+(ridx1<<3));
      float8 val0 = *((float8u*)(ptr0));
      float8 val1 = *((float8u*)((ptr0+32)));
      float8 val2 = *((float8u*)((ptr0+64)));
      float8 val3 = *((float8u*)((ptr0+96)));
      acc0 = (acc0+val0);
      acc1 = (acc1+val1);
      acc2 = (acc2+val2);
      acc3 = (acc3+val3);
    }
    float8 alu1 = (float8){acc0[0],acc0[2],acc1[0],acc1[2],acc0[4],acc0[6],acc1[4],acc1[6]};
    float8 alu2 = (float8){acc0[1],acc0[3],acc1[1],acc1[3],acc0[5],acc0[7],acc1[5],acc1[7]};
    float8 alu3 = (alu1+alu2);
    float8 alu4 = (float8){acc2[0],acc2[2],acc3[0],acc3[2],acc2[4],acc2[6],acc3[4],acc3[6]};
    float8 alu5 = (float8){acc2[1],acc2[3],acc3[1],acc3[3],acc2[5],acc2[7],acc3[5],acc3[7]};
    float8 alu6 = (alu4+alu5);
    float8 alu7 = (float8){alu3[0],alu3[2],alu6[0],alu6[2],alu3[4],alu3[6],alu6[4],alu6[6]};
    float8 alu8 = (float8){alu3[1],alu3[3],alu6[1],alu6[3],alu3[5],alu3[7],alu6[5],alu6[7]};
    float8 alu9 = (alu7+alu8);
    float8 alu10 = (float8){alu9[0],alu9[1],alu9[2],alu9[3],alu9[0],alu9[1],alu9[2],alu9[3]};
    float8 alu11 = (float8){alu9[4],alu9[5],alu9[6],alu9[7],alu9[4],alu9[5],alu9[6],alu9[7]};
    float8 alu12 = (alu10+alu11);
    long long alu13 = (ridx0<<2);
    *(data0+alu13) = alu12[0];
    *((data0+alu13)+1) = alu12[1];
    *((data0+alu13)+2) = alu12[2];
    *((data0+alu13)+3) = alu12[3];
  }
}
