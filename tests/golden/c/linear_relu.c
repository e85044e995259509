void r_4_8_8(void** args, char* scratch, long long begin, long long end) {
  float* data0 = args[0];
  float* data1 = args[1];
  float* data2 = args[2];
  float* data3 = args[3];
  for (long long ridx0 = 0; ridx0 < 4; ridx0++) {
    long long alu0 = (ridx0<<3);
    for (long long ridx1 = 0; ridx1 < 8; ridx1++) {
      float acc0 = 0.0f;
      for (long long ridx2 = 0; ridx2 < 8; ridx2++) {
        float val0 = *((data1+alu0)+ridx2);
        float val1 = *((data2+ridx1)+(ridx2<<3));
        acc0 = __builtin_fmaf(val0,val1,acc0);
      }
      float val2 = *(data3+ridx1);
      float alu1 = (acc0+val2);
      *((data0+alu0)+ridx1) = (0.0f>alu1?0.0f:alu1);
    }
  }
}
