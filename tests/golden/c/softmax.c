void r_4_16_16_16(void** args, char* scratch, long long begin, long long end) {
  float* data0 = args[0];
  float* data1 = args[1];
  for (long long ridx0 = 0; ridx0 < 4; ridx0++) {
    long long alu0 = (ridx0<<4);
    float acc0 = -__builtin_inff();
    for (long long ridx2 = 0; ridx2 < 16; ridx2++) {
      float val0 = *((data1+alu0)+ridx2);
      acc0 = (acc0!=acc0||acc0>val0?acc0:val0);
    }
    float acc1 = 0.0f;
    for (long long ridx3 = 0; ridx3 < 16; ridx3++) {
      float val1 = *((data1+alu0)+ridx3);
      float alu1 = (val1-acc0);
      float alu2 = (-104.66522f>alu1?-104.66522f:alu1);
      float alu3 = (89.415985f<alu2?89.415985f:alu2);
      float alu4 = __builtin_fmaf(alu3,1.442695f,12582912.0f);
      float alu5 = (alu4+-12582912.0f);
      float alu6 = __builtin_fmaf(alu5,-3.1946183e-05f,__builtin_fmaf(alu5,-0.69311523f,alu3));
      int alu7 = (((union { float from; int to; }){alu4}).to);
      int alu8 = (alu7>>1);
      acc1 = __builtin_fmaf((__builtin_fmaf(__builtin_fmaf(__builtin_fmaf(__builtin_fmaf(__builtin_fmaf(__builtin_fmaf(0.0013926629f,alu6,0.008375632f),alu6,0.04166653f),alu6,0.1666641f),alu6,0.5f),alu6,1.0f),alu6,1.0f)*(((union { int from; float to; }){((alu8<<23)+1065353216)}).to)),(((union { int from; float to; }){(((alu7-alu8)<<23)+1065353216)}).to),acc1);
    }
    for (long long ridx1 = 0; ridx1 < 16; ridx1++) {
      float val2 = *((data1+alu0)+ridx1);
      float alu9 = (val2-acc0);
      float alu10 = (-104.66522f>alu9?-104.66522f:alu9);
      float alu11 = (89.415985f<alu10?89.415985f:alu10);
      float alu12 = __builtin_fmaf(alu11,1.442695f,12582912.0f);
      float alu13 = (alu12+-12582912.0f);
      float alu14 = __builtin_fmaf(alu13,-3.1946183e-05f,__builtin_fmaf(alu13,-0.69311523f,alu11));
      int alu15 = (((union { float from; int to; }){alu12}).to);
      int alu16 = (alu15>>1);
      *((data0+alu0)+ridx1) = ((__builtin_fmaf(__builtin_fmaf(__builtin_fmaf(__builtin_fmaf(__builtin_fmaf(__builtin_fmaf(0.0013926629f,alu14,0.008375632f),alu14,0.04166653f),alu14,0.1666641f),alu14,0.5f),alu14,1.0f),alu14,1.0f)*(((union { int from; float to; }){((alu16<<23)+1065353216)}).to)*(((union { int from; float to; }){(((alu15-alu16)<<23)+1065353216)}).to))/acc1);
    }
  }
}
