void E_16(void** args, char* scratch, long long begin, long long end) {
  float* data0 = args[0];
  float* data1 = args[1];
  float* data2 = args[2];
  for (long long ridx0 = 0; ridx0 < 16; ridx0++) {
    float val0 = *(data1+ridx0);
    float val1 = *(data2+ridx0);
    *(data0+ridx0) = (val0+val1);
  }
}
