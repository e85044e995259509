#define INFINITY (__int_as_float(0x7f800000))
#define NAN (__int_as_float(0x7fffffff))
extern "C" __global__ void __launch_bounds__(1) r_3_5_5_2_3_3(float* data0, float* data1, float* data2) {
  int gidx0 = blockIdx.x; /* 3 */
  int gidx1 = blockIdx.y; /* 5 */
  int gidx2 = blockIdx.z; /* 5 */
  float acc0 = 0.0f;
  int alu0 = (-gidx1);
  int alu1 = (-gidx2);
  int alu2 = (gidx1*5);
  int alu3 = (alu2+gidx2);
  int alu4 = (gidx0*18);
  for (int ridx0 = 0; ridx0 < 2; ridx0++) {
    int alu5 = (alu3+(ridx0*25));
    int alu6 = (alu4+(ridx0*9));
    for (int ridx1 = 0; ridx1 < 3; ridx1++) {
      bool alu7 = ((gidx1+ridx1)<6);
      bool alu8 = ((alu0-ridx1)<0);
      int alu9 = (alu5+(ridx1*5));
      int alu10 = (alu6+(ridx1*3));
      for (int ridx2 = 0; ridx2 < 3; ridx2++) {
        float val0 = ((((alu7&((gidx2+ridx2)<6))&alu8)&((alu1-ridx2)<0))?*(data1+(alu9+ridx2+-6)):0.0f);
        float val1 = *(data2+(alu10+ridx2));
        acc0 = fma(val0,val1,acc0);
      }
    }
  }
  *(data0+((gidx0*25)+alu2+gidx2)) = acc0;
}
