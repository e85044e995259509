void r_3_5_5_2_3_3(void** args, char* scratch, long long begin, long long end) {
  float* data0 = args[0];
  float* data1 = args[1];
  float* data2 = args[2];
  for (long long ridx0 = 0; ridx0 < 3; ridx0++) {
    long long alu0 = (ridx0*18);
    long long alu1 = (ridx0*25);
    for (long long ridx1 = 0; ridx1 < 5; ridx1++) {
      long long alu2 = (-ridx1);
      long long alu3 = (ridx1*5);
      float* ptr0 = ((data0+alu1)+alu3);
      for (long long ridx2 = 0; ridx2 < 5; ridx2++) {
        float acc0 = 0.0f;
        long long alu4 = (-ridx2);
        float* ptr1 = ((data1+alu3)+ridx2);
        for (long long ridx3 = 0; ridx3 < 2; ridx3++) {
          float* ptr2 = (ptr1+(ridx3*25));
          float* ptr3 = ((data2+alu0)+(ridx3*9));
          for (long long ridx4 = 0; ridx4 < 3; ridx4++) {
            _Bool alu5 = ((ridx1+ridx4)<6);
            _Bool alu6 = ((alu2-ridx4)<0);
            float* ptr4 = (ptr2+(ridx4*5));
            float* ptr5 = (ptr3+(ridx4*3));
            for (long long ridx5 = 0; ridx5 < 3; ridx5++) {
              float val0 = ((((alu5&((ridx2+ridx5)<6))&alu6)&((alu4-ridx5)<0))?*((ptr4+ridx5)+-6):0.0f);
              float val1 = *(ptr5+ridx5);
              acc0 = __builtin_fmaf(val0,val1,acc0);
            }
          }
        }
        *(ptr0+ridx2) = acc0;
      }
    }
  }
}
