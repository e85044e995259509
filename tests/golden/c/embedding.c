typedef float float8 __attribute__((vector_size(32)));
typedef float float8u __attribute__((vector_size(32),aligned(4)));
static inline float8 float8_of(float x) { return (float8){x,x,x,x,x,x,x,x}; }
void E_3_8(void** args, char* scratch, long long begin, long long end) {
  float* data0 = args[0];
  int* data1 = args[1];
  float* data2 = args[2];
  for (long long ridx0 = 0; ridx0 < 3; ridx0++) {
    int val0 = *(data1+ridx0);
    long long alu0 = ((long long)((val0<0)?(val0+10):val0));
    float8 val1 = (((alu0<10)&((-alu0)<1))?*((float8u*)(((data2+(alu0<<3))+0))):float8_of(0.0f));
    *((float8u*)((data0+(ridx0<<3)))) = val1;
  }
}
