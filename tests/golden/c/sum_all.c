typedef float float8 __attribute__((vector_size(32)));
typedef float float8u __attribute__((vector_size(32),aligned(4)));
static inline float8 float8_of(float x) { return (float8){x,x,x,x,x,x,x,x}; }
void r_128_8_4(void** args, char* scratch, long long begin, long long end) {
  float* data0 = args[0];
  float* data1 = args[1];
  float8 acc0 = float8_of(0.0f);
  float8 acc1 = float8_of(0.0f);
  float8 acc2 = float8_of(0.0f);
  float8 acc3 = float8_of(0.0f);
  for (long long ridx0 = 0; ridx0 < 128; ridx0++) {
    long long alu0 = (ridx0<<5);
    float8 val0 = *((float8u*)((data1+alu0)));
    float8 val1 = *((float8u*)(((data1+alu0)+8)));
    float8 val2 = *((float8u*)(((data1+alu0)+16)));
    float8 val3 = *((float8u*)(((data1+alu0)+24)));
    acc0 = (acc0+val0);
    acc1 = (acc1+val1);
    acc2 = (acc2+val2);
    acc3 = (acc3+val3);
  }
  float8 alu1 = ((acc0+acc1)+(acc2+acc3));
  *(data0+0) = (alu1[0]+alu1[1]+(alu1[2]+alu1[3])+(alu1[4]+alu1[5]+(alu1[6]+alu1[7])));
}
