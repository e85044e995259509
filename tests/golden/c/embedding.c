typedef float float8 __attribute__((vector_size(32)));
typedef float float8u __attribute__((vector_size(32),aligned(4)));
void E_3_8(void** args, char* scratch, long long begin, long long end) {
  float* data0 = args[0];
  int* data1 = args[1];
  long long* data2 = args[2];
  float* data3 = args[3];
  for (long long ridx0 = 0; ridx0 < 3; ridx0++) {
    int val0 = *(data1+ridx0);
    int alu0 = ((val0<0)?(val0+10):val0);
    _Bool alu1 = (9u<(((union { int from; unsigned int to; }){alu0}).to));
    long long alu2 = ((long long)alu0);
    if (alu1) {
      *(data2+0) = alu2;
    }
    float8 val1 = *((float8u*)((data3+(((long long)(alu1?0:alu0))<<3))));
    *((float8u*)((data0+(ridx0<<3)))) = val1;
  }
}
