typedef float float8 __attribute__((vector_size(32)));
typedef float float8u __attribute__((vector_size(32),aligned(4)));
void E_2_8(void** args, char* scratch, long long begin, long long end) {
  float* data0 = args[0];
  float* data1 = args[1];
  float* data2 = args[2];
  float8 val0 = *((float8u*)((data1+0)));
  float8 val1 = *((float8u*)((data2+0)));
  float8 val2 = *((float8u*)((data1+8)));
  float8 val3 = *((float8u*)((data2+8)));
  *((float8u*)((data0+0))) = (val0+val1);
  *((float8u*)((data0+8))) = (val2+val3);
}
