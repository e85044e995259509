typedef float float8 __attribute__((vector_size(32)));
typedef float float8u __attribute__((vector_size(32),aligned(4)));
static inline float8 float8_of(float x) { return (float8){x,x,x,x,x,x,x,x}; }
typedef int int8 __attribute__((vector_size(32)));
static inline int8 int8_of(int x) { return (int8){x,x,x,x,x,x,x,x}; }
static inline float8 max_float8(float8 x, float8 y) { int8 mask = (x != x) | (x > y); return (float8)((mask & (int8)x) | (~mask & (int8)y)); }
static inline float8 min_float8(float8 x, float8 y) { int8 mask = (x != x) | (x < y); return (float8)((mask & (int8)x) | (~mask & (int8)y)); }
static inline float8 mulacc_float8(float8 x, float8 y, float8 z) { return (float8){__builtin_fmaf(x[0],y[0],z[0]),__builtin_fmaf(x[1],y[1],z[1]),__builtin_fmaf(x[2],y[2],z[2]),__builtin_fmaf(x[3],y[3],z[3]),__builtin_fmaf(x[4],y[4],z[4]),__builtin_fmaf(x[5],y[5],z[5]),__builtin_fmaf(x[6],y[6],z[6]),__builtin_fmaf(x[7],y[7],z[7])}; }
void E_8(void** args, char* scratch, long long begin, long long end) {
  float* data0 = args[0];
  float* data1 = args[1];
  float8 val0 = *((float8u*)((data1+0)));
  float8 alu0 = min_float8(max_float8(((val0*float8_of(2.0f))+float8_of(1.0f)),float8_of(-104.66522f)),float8_of(89.415985f));
  float8 alu1 = mulacc_float8(alu0,float8_of(1.442695f),float8_of(12582912.0f));
  float8 alu2 = (alu1+float8_of(-12582912.0f));
  float8 alu3 = mulacc_float8(alu2,float8_of(-3.1946183e-05f),mulacc_float8(alu2,float8_of(-0.69311523f),alu0));
  int8 alu4 = ((int8)alu1);
  int8 alu5 = (alu4>>int8_of(1));
  *((float8u*)((data0+0))) = max_float8((((mulacc_float8(mulacc_float8(mulacc_float8(mulacc_float8(mulacc_float8(mulacc_float8(float8_of(0.0013926629f),alu3,float8_of(0.008375632f)),alu3,float8_of(0.04166653f)),alu3,float8_of(0.1666641f)),alu3,float8_of(0.5f)),alu3,float8_of(1.0f)),alu3,float8_of(1.0f))*((float8)((alu5<<int8_of(23))+int8_of(1065353216))))*((float8)(((alu4-alu5)<<int8_of(23))+int8_of(1065353216))))-val0),float8_of(0.0f));
}
