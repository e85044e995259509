typedef float float8 __attribute__((vector_size(32)));
typedef float float8u __attribute__((vector_size(32),aligned(4)));
void r_8_8_4(void** args, char* scratch, long long begin, long long end) {
  float* data0 = args[0];
  float* data1 = args[1];
  for (long long ridx0 = 0; ridx0 < 8; ridx0++) {
    long long alu0 = (ridx0<<5);
    float8 val0 = *((float8u*)((data1+alu0)));
    float8 val1 = *((float8u*)(((data1+alu0)+8)));
    float8 val2 = *((float8u*)(((data1+alu0)+16)));
    float8 val3 = *((float8u*)(((data1+alu0)+24)));
    float8 alu1 = ((val0+val1)+(val2+val3));
    *(data0+ridx0) = (alu1[0]+alu1[1]+(alu1[2]+alu1[3])+(alu1[4]+alu1[5]+(alu1[6]+alu1[7])));
  }
}
