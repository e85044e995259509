typedef float float8 __attribute__((vector_size(32)));
typedef float float8u __attribute__((vector_size(32),aligned(4)));
static inline float8 float8_of(float x) { return (float8){x,x,x,x,x,x,x,x}; }
void E_8(void** args, char* scratch, long long begin, long long end) {
  float* data0 = args[0];
  float8 val0 = *((float8u*)((data0+0)));
  *((float8u*)((data0+0))) = ((val0*float8_of(0.5f))+float8_of(1.0f));
}
