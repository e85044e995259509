typedef float float8 __attribute__((vector_size(32)));
typedef float float8u __attribute__((vector_size(32),aligned(4)));
static inline float8 float8_of(float x) { return (float8){x,x,x,x,x,x,x,x}; }
static inline float8 mulacc_float8(float8 x, float8 y, float8 z) { return (float8){__builtin_fmaf(x[0],y[0],z[0]),__builtin_fmaf(x[1],y[1],z[1]),__builtin_fmaf(x[2],y[2],z[2]),__builtin_fmaf(x[3],y[3],z[3]),__builtin_fmaf(x[4],y[4],z[4]),__builtin_fmaf(x[5],y[5],z[5]),__builtin_fmaf(x[6],y[6],z[6]),__builtin_fmaf(x[7],y[7],z[7])}; }
void r_8_4_8(void** args, char* scratch, long long begin, long long end) {
  float* data0 = args[0];
  float* data1 = args[1];
  float* data2 = args[2];
  float8 acc0 = float8_of(0.0f);
  float8 acc1 = float8_of(0.0f);
  float8 acc2 = float8_of(0.0f);
  float8 acc3 = float8_of(0.0f);
  for (long long ridx0 = 0; ridx0 < 8; ridx0++) {
    float val0 = *(data1+ridx0);
    float8 val1 = *((float8u*)((data2+(ridx0<<3))));
    float val2 = *((data1+ridx0)+8);
    float val3 = *((data1+ridx0)+16);
    float val4 = *((data1+ridx0)+24);
    acc0 = mulacc_float8(float8_of(val0),val1,acc0);
    acc1 = mulacc_float8(float8_of(val2),val1,acc1);
    acc2 = mulacc_float8(float8_of(val3),val1,acc2);
    acc3 = mulacc_float8(float8_of(val4),val1,acc3);
  }
  *((float8u*)((data0+0))) = acc0;
  *((float8u*)((data0+8))) = acc1;
  *((float8u*)((data0+16))) = acc2;
  *((float8u*)((data0+24))) = acc3;
}
